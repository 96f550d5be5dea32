"""What every picture of the lens is made of: its colours in light and dark, boxes, labels, and the words for those
who do not see it.

Colours are classes, so that a page says them once; standalone() adds them to a single picture. They are Okabe and Ito's
(https://jfly.uni-koeln.de/color/), lightened for dark screens; no meaning lies in a colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

LIGHT = {
    "used": "#0072B2",  # what a lane asks for
    "needed": "#D3E7F3",  # its column, where some lane asks for it
    "fetched": "#F8DDAA",  # what comes along and nobody asks for
    "edge": "#9A6300",
    "hot": "#D55E00",  # a bank that must give several words
    "on-used": "#FFFFFF",
    "on-hot": "#FFFFFF",
    "store": "#A8457F",
    "good": "#00684B",
    "ink": "#222222",
    "quiet": "#5C5C5C",
    "rule": "#D8D8D8",
    "panel": "#F6F6F4",
    "ground": "#FFFFFF",
}

DARK = {
    "used": "#56B4E9",
    "needed": "#1D3A4A",
    "fetched": "#6B5220",
    "edge": "#E69F00",
    "hot": "#F0803C",
    "on-used": "#111111",
    "on-hot": "#111111",
    "store": "#DD9CC0",
    "good": "#4FD0A5",
    "ink": "#E8E8E6",
    "quiet": "#A8A8A4",
    "rule": "#40403E",
    "panel": "#242423",
    "ground": "#191918",
}


def _palette(colours: dict[str, str]) -> str:
    return ".lens{" + ";".join(f"--{name}:{value}" for name, value in colours.items()) + "}"


STYLE = (
    f"{_palette(LIGHT)}\n@media (prefers-color-scheme:dark){{{_palette(DARK)}}}\n@media print{{{_palette(LIGHT)}}}"
    + """
.lens svg,svg.lens{font:11px system-ui,"DejaVu Sans",sans-serif;display:block}
.lens-rule{stroke:var(--rule);stroke-width:1;fill:none}.lens-edge{fill:none;stroke:var(--edge)}
.lens-outline{fill:none;stroke:var(--rule)}.lens-barrier{stroke:var(--ink);stroke-width:2;stroke-dasharray:4 3}
.lens-middle{text-anchor:middle}.lens-end{text-anchor:end}.lens-small{font-size:10px}
.lens-strong{font-weight:600;font-size:12px}
"""
    + "".join(
        f".lens-{name}{{fill:var(--{name})}}" for name in LIGHT if name not in ("edge", "rule", "panel", "ground")
    )
)
"""The pictures' style sheet, for the page that holds them."""


def standalone(picture: str) -> str:
    """A picture with its colours in it, to be kept as a file of its own."""
    head, rest = picture.split(">", 1)
    return f"{head}><style>{STYLE}</style>{rest}"


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{kind}"/>'


def label(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def svg(width: float, height: float, title: str, description: str, parts: Sequence[str]) -> str:
    """The picture with its name and its words: a screen reader says both."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lens" role="img" '
        f'aria-label="{escape(title)}. {escape(description)}" '
        f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"><title>{escape(title)}</title>'
        f"<desc>{escape(description)}</desc>{''.join(parts)}</svg>"
    )
