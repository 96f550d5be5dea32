"""Formulas as MathML, which browsers draw by themselves: no script, no font and no network.

latex2mathml turns the TeX between dollar signs into MathML when the book is built. What it does not know it would pass
on as plain words, so an unknown command is a warning, and with -W an error.
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

LEFT_OVER = re.compile(r"<mi>(\\[A-Za-z]+)</mi>")
"""How latex2mathml leaves a command that it does not know."""


NAME = "<mi>(?:log|exp|tanh)</mi>"
BEFORE = re.compile(rf"(</m(?:i|n|sub|sup|frac)>)(?={NAME})")
AFTER = re.compile(rf"({NAME})(?=<m(?!o))")
"""Where the name of a function needs space, as in n log n: from a factor before it, and from an argument without
brackets."""

MATRIX = re.compile(r"<mo>&#x000(?:28|5B|7C);</mo><mtable>.*?</mtable><mo>&#x000(?:29|5D|7C);</mo>")
"""A matrix with its brackets. They grow with all that stands in their row, so they need a row of their own."""


def mathml(tex: str, display: str, place: Any = None) -> str:
    """TeX as a <math> element. display: "inline" or "block"; place: the node to name in a warning."""
    try:
        drawn = convert(tex, display=display)
    except Exception as error:  # its errors have no common base; whatever it is, the reader must not get half a formula
        LOGGER.warning("latex2mathml cannot read %r: %s", tex, error or type(error).__name__, location=place)
        return f"<code>{html.escape(tex)}</code>"
    drawn = AFTER.sub(r'\1<mspace width="0.1667em"/>', BEFORE.sub(r'\1<mspace width="0.1667em"/>', drawn))
    drawn = MATRIX.sub(r"<mrow>\g<0></mrow>", drawn)
    for unknown in LEFT_OVER.findall(drawn):
        LOGGER.warning("latex2mathml does not know %s in %r", unknown, tex, location=place)
    return str(drawn)


def visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline", node))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """In a box of its own, which scrolls where the formula is wider than the page."""
    translator.body.append(f'<div class="formula" tabindex="0">{mathml(node.astext(), "block", node)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
