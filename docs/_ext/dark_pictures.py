"""A picture with a dark twin: where studio-runs-dark.png lies beside studio-runs.png, the book shows one of the two.

The page names the light one alone. The theme shows the one that fits its switch, and the light one on paper.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class DarkTwins(SphinxTransform):
    """Runs while a page is read, before Sphinx collects its pictures."""

    default_priority = 100

    def apply(self, **kwargs: Any) -> None:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in list(self.document.findall(nodes.image)):
            light = Path(image["uri"])
            dark = light.with_name(f"{light.stem}-dark{light.suffix}")
            if (folder / dark).is_file():
                twin = image.deepcopy()
                twin["uri"] = dark.as_posix()
                twin["classes"], image["classes"] = [*image["classes"], "only-dark"], [*image["classes"], "only-light"]
                image.parent.insert(image.parent.index(image) + 1, twin)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(DarkTwins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
