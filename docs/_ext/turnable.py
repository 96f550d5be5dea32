"""Small figures with a knob: ```{turnable} sectors``` puts docs/turnable/sectors.html into the page.

Such a file is a fragment of HTML with its own script, and asks nothing of the network. On paper it stands still.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).resolve().parents[1] / "turnable"


class Turnable(SphinxDirective):
    """The directive. Its argument: the file's name; its content: what to try."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        path = FOLDER / f"{self.arguments[0]}.html"
        if not path.is_file():
            raise self.error(f"turnable: there is no {path}")
        self.env.note_dependency(str(path))
        box = nodes.container(classes=["turnable"])
        self.state.nested_parse(self.content, self.content_offset, box)
        box += nodes.raw("", path.read_text(encoding="utf-8"), format="html")
        return [box]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("turnable", Turnable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
