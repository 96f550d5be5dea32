"""Above a notebook's page: the file to download, and the command that opens it. Its plots get a text."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform


class LinesOfANotebook(SphinxTransform):
    """Runs while a notebook is read, before Sphinx collects the files to download."""

    default_priority = 100

    def apply(self, **kwargs: Any) -> None:
        folder, _, name = self.env.docname.rpartition("/")
        title = next(iter(self.document.findall(nodes.title)), None)
        if folder != "notebooks" or title is None:
            return
        file = f"{name}.ipynb"
        download = addnodes.download_reference(
            "", "", nodes.Text(f"Download {file}"), reftarget=file, refdoc=self.env.docname
        )
        command = nodes.literal("", f"jupyter lab docs/notebooks/{file}")
        line = nodes.paragraph("", "", download, nodes.Text(", or open it in the folder of the project: "), command)
        line += nodes.Text(". In Colab, upload the file and put the project's address into its first cell.")
        title.parent.insert(title.parent.index(title) + 1, line)


class WordsForPlots(SphinxPostTransform):
    """Runs when a page is written, after the outputs of its cells have become images."""

    default_priority = 950

    def run(self, **kwargs: Any) -> None:
        if not self.env.docname.startswith("notebooks/"):
            return
        for image in self.document.findall(nodes.image):
            section: Any = image.parent
            while section is not None and not isinstance(section, nodes.section):
                section = section.parent
            if not image.get("alt") and section is not None:
                image["alt"] = f"The plot that the code above draws, for: {section[0].astext()}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(LinesOfANotebook)
    app.add_post_transform(WordsForPlots)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
