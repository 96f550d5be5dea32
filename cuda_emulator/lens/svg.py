"""The parts of the lens's pictures: colours for light and dark screens, boxes, labels, and descriptions for screen
readers.

Colours are CSS classes, so that a page defines them once; standalone() adds the definitions to a single picture. They
are Okabe and Ito's (https://jfly.uni-koeln.de/color/), lightened for dark screens. No meaning is in a colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..words.markup import escape, palettes

COLOURS = {
    "used": ("#0072B2", "#56B4E9"),  # bytes that a lane asks for
    "needed": ("#D3E7F3", "#1D3A4A"),  # the columns of bytes that some lane asks for
    "fetched": ("#F8DDAA", "#6B5220"),  # bytes that are fetched and not used
    "edge": ("#9A6300", "#E69F00"),
    "hot": ("#D55E00", "#F0803C"),  # a bank that gives several words
    "on-used": ("#FFFFFF", "#111111"),
    "on-hot": ("#FFFFFF", "#111111"),
    "store": ("#A8457F", "#DD9CC0"),
    "good": ("#00684B", "#4FD0A5"),
    "ink": ("#222222", "#E8E8E6"),
    "quiet": ("#5C5C5C", "#A8A8A4"),
    "rule": ("#D8D8D8", "#40403E"),
    "panel": ("#F6F6F4", "#242423"),
    "ground": ("#FFFFFF", "#191918"),
}
"""Name -> what it is on a light and on a dark screen."""

STYLE = (
    palettes(".lens", COLOURS)
    + """
.lens svg,svg.lens{font:11px system-ui,"DejaVu Sans",sans-serif;display:block}
.lens-rule{stroke:var(--rule);stroke-width:1;fill:none}.lens-edge{fill:none;stroke:var(--edge)}
.lens-outline{fill:none;stroke:var(--rule)}.lens-barrier{stroke:var(--ink);stroke-width:2;stroke-dasharray:4 3}
.lens-middle{text-anchor:middle}.lens-end{text-anchor:end}.lens-small{font-size:10px}
.lens-strong{font-weight:600;font-size:12px}
"""
    + "".join(
        f".lens-{name}{{fill:var(--{name})}}" for name in COLOURS if name not in ("edge", "rule", "panel", "ground")
    )
)
"""The pictures' style sheet, for the page that holds them."""


def standalone(picture: str) -> str:
    """A picture with the definitions of its colours, for a file of its own."""
    head, rest = picture.split(">", 1)
    return f"{head}><style>{STYLE}</style>{rest}"


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{kind}"/>'


def label(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def svg(width: float, height: float, title: str, description: str, parts: Sequence[str]) -> str:
    """The picture with its title and description, which a screen reader reads."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lens" role="img" '
        f'aria-label="{escape(title)}. {escape(description)}" '
        f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"><title>{escape(title)}</title>'
        f"<desc>{escape(description)}</desc>{''.join(parts)}</svg>"
    )
