"""The page of a week as HTML that the page Course shows: its Markdown, read by markdown-it.

page(week)       the HTML; "" where groundup was installed without its documents
figure(name)     the file of a figure, None where there is none

Only links into the web stay links: the page is not in the folder of the documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import quote

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from shared.machine.processes import ROOT

WEEKS = ROOT / "docs" / "weeks"
FIGURES = ROOT / "docs" / "figures"

BEFORE_A_TABLE = '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>'


def figure(name: str) -> Path | None:
    """The file of a figure that the weeks' pages show."""
    return {path.name: path for path in FIGURES.glob("*.svg")}.get(name)


@cache
def page(week: int) -> str:
    """The page of a week."""
    path = WEEKS / f"week{week:02}.md"
    return as_html(path.read_text(encoding="utf-8")) if path.is_file() else ""


def as_html(text: str) -> str:
    """Markdown as HTML for the page: without HTML of its own, styles and links to other documents."""
    tokens = _markdown().parse(re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL))
    _fit(tokens)
    return _markdown().renderer.render(tokens, _markdown().options, {})


@cache
def _markdown() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin, renderer=_formula)
    reader.add_render_rule("table_open", lambda *_: BEFORE_A_TABLE)
    reader.add_render_rule("table_close", lambda *_: "</table></div>")
    reader.add_render_rule("fence", _code)
    return reader


def _code(renderer: RendererHTML, tokens: Sequence[Token], at: int, *given: object) -> str:
    return f'<pre tabindex="0"><code>{escape(tokens[at].content)}</code></pre>'


def _formula(text: str, options: dict[str, bool]) -> str:
    return convert(text, display="block" if options["display_mode"] else "inline")


def _fit(tokens: Sequence[Token]) -> None:
    """Change the tokens in place to what the page needs."""
    is_inside = False
    for token in tokens:
        token.attrs.pop("style", None)  # the studio's pages allow none
        if token.type.startswith("heading"):
            token.tag = f"h{min(6, int(token.tag[1:]) + 2)}"
        elif token.type == "th_open":
            token.attrs["scope"] = "col"
        elif token.type == "image":
            name = str(token.attrs["src"]).rpartition("/")[2]
            token.attrs |= {"src": f"/api/course/figure?name={quote(name)}", "loading": "lazy"}
        elif token.type == "link_open":
            is_inside = not str(token.attrs["href"]).startswith(("https://", "http://"))
            token.attrs |= {"rel": "noopener noreferrer", "target": "_blank"}
        if token.type.startswith("link") and is_inside:
            token.tag, token.attrs = "em", {}
        _fit(token.children or ())
