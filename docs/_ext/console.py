"""Console blocks without prompts, highlighted as commands.

Commands stand in the pages without `$ `, so that they can be pasted; Pygments takes such lines for a program's output
and sets all of them in italics.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class ConsoleWithoutPrompts(SphinxTransform):
    """Runs while a page is read."""

    default_priority = 100

    def apply(self, **kwargs: Any) -> None:
        for block in self.document.findall(nodes.literal_block):
            if block.get("language") == "console" and not block.astext().startswith(("$ ", "\n$ ")):
                block["language"] = "bash"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(ConsoleWithoutPrompts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
