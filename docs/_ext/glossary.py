"""Links from a page's first use of a word to the word in the glossary.

docs/glossary.md has a heading for each word. Where a paragraph of another page uses one for the first time on that
page, the word becomes a link. Headings, code, formulas and links stay as they are.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PAGE = Path(__file__).resolve().parents[1] / "glossary.md"

LEFT_OUT = ("index", "glossary", "references", "benchmarks/", "reference/", "teaching/")
"""Pages without such links: lists of words, numbers and names."""

INSIDE = (nodes.reference, nodes.literal, nodes.title, nodes.math, nodes.caption, nodes.image)


@cache
def words() -> dict[str, str]:
    """Each word of the glossary in small letters, with its anchor."""
    found = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {word.lower(): re.sub(r"[^\w -]", "", word.lower()).replace(" ", "-") for word in found}


@cache
def pattern() -> re.Pattern[str]:
    """Any of the words, the longest first."""
    longest = sorted(words(), key=len, reverse=True)
    return re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, longest))})(?:e?s)?(?![\w/-])", re.IGNORECASE)


class FirstUses(SphinxTransform):
    """Runs after a page is read, when its links are known."""

    default_priority = 900

    def apply(self, **kwargs: Any) -> None:
        page = self.env.docname
        if page.startswith(LEFT_OUT):
            return
        seen: set[str] = set()
        up = "../" * page.count("/")
        for text in list(self.document.findall(nodes.Text)):
            if self._is_prose(text):
                self._link(text, seen, up)

    def _is_prose(self, text: nodes.Text) -> bool:
        above = text.parent
        while above is not None and not isinstance(above, nodes.paragraph):
            if isinstance(above, INSIDE) or "pending_xref" in type(above).__name__:
                return False
            above = above.parent
        return above is not None and text.parent is not None

    def _link(self, text: nodes.Text, seen: set[str], up: str) -> None:
        parts: list[nodes.Node] = []
        written, end = text.astext(), 0
        for match in pattern().finditer(written):
            word = match[1].lower()
            if word in seen:
                continue
            seen.add(word)
            parts.append(nodes.Text(written[end : match.start()]))
            anchor = f"{up}glossary.html#{words()[word]}"
            parts.append(nodes.reference("", match[0], internal=True, refuri=anchor, classes=["glossary-word"]))
            end = match.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(written[end:])])


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(FirstUses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
