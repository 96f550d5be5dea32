"""A figure's SVG: both palettes in one file, and small enough to stand in a page.

of(figure)                 what matplotlib writes, in the colours of a light screen
with_palettes(svg)         the same with a variable for each colour of the palette, light or dark by the reader's
                           setting, in a browser and wherever an `<img>` shows it
on_dark_screen(svg)        the same in the colours of a dark screen alone
inline(svg, prefix, alt)   what a page needs of it; the page defines the variables
"""

from __future__ import annotations

import re
from io import StringIO
from xml.etree import ElementTree

from matplotlib.figure import Figure
from matplotlib.text import Text

from shared.charts.drawing.colours import PALETTE, on_dark
from shared.charts.drawing.style import house_style
from shared.markup import Html, palettes
from shared.text import printable

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
INK_IMAGE = "ink"
"""Beginning of the ids of images that are ink on a transparent ground: a dark screen inverts them."""

_INVERTED = f'[id^="{INK_IMAGE}"]{{filter:invert(1)}}'
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})\b")
_FALLBACK = re.compile(r"\b(?:fill|stroke): #[0-9a-f]{6}; (?=(?:fill|stroke): var)")
_ATTRIBUTE = re.compile(r'\bfill="(#[0-9a-f]{6})"')
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_SHIFT = re.compile(r"translate\((-?[\d.]+)(?: 0)?\)")


def of(figure: Figure) -> str:
    """The figure as matplotlib writes it. The same figure gives the same text."""
    make_printable(figure)
    buffer = StringIO()
    with house_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def make_printable(figure: Figure) -> None:
    """Replace the characters of the figure's texts that XML forbids or that do something (shared/text.py)."""
    for text in figure.findobj(Text):
        text.set_text(printable(text.get_text()))


def with_palettes(svg: str) -> str:
    """The picture with the style sheet of both palettes, as far as it uses them.

    The light colour stands before each variable, for programs that know no variables.
    """
    names = {light.lower(): name for name, (light, _) in reversed(list(PALETTE.items()))}
    used: set[str] = set()

    def variable(match: re.Match[str]) -> str:
        kind, colour = match.groups()
        if colour not in names:
            return match[0]
        used.add(names[colour])
        return f"{match[0]}; {kind}: var(--{names[colour]})"

    told = _COLOUR.sub(variable, _ATTRIBUTE.sub(r'style="fill: \1"', svg))
    sheet = palettes("svg", {name: both for name, both in PALETTE.items() if name in used})
    if f'id="{INK_IMAGE}' in told:
        sheet += f"@media screen and (prefers-color-scheme:dark){{{_INVERTED}}}"
    return re.sub(r"(<svg[^>]*>)", rf"\1<style>{sheet}</style>", told, count=1)


def on_dark_screen(svg: str) -> str:
    """The picture in the colours of a dark screen, wherever it is shown."""
    dark = re.sub(r"#[0-9a-f]{6}\b", lambda found: on_dark(found[0]).lower(), svg)
    if f'id="{INK_IMAGE}' in dark:
        dark = re.sub(r"(<svg[^>]*>)", rf"\1<style>{_INVERTED}</style>", dark, count=1)
    return dark


def inline(svg: str, prefix: str, alt: str) -> Html:
    """The picture, as with_palettes made it, as an element of an HTML page that defines the variables of PALETTE.

    Coordinates are rounded to a hundredth of a point; what a browser does not need is left out: comments, metadata,
    ids that nothing refers to, empty groups. prefix: what the other ids begin with, because they must differ from
    those of all other figures of the page. alt: for screen readers. Raises ElementTree.ParseError for what is no XML.
    """
    root = ElementTree.fromstring(_FALLBACK.sub("", svg))
    _tidy(root, set(re.findall(r"#([\w.:-]+)", svg)), {}, prefix)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    root.set("aria-label", alt)
    ElementTree.register_namespace("", SVG.strip("{}"))
    text = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    return Html(text.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1))


def _tidy(element: ElementTree.Element, used: set[str], short: dict[str, str], prefix: str) -> None:
    """Shorten an element and all below it. used: the ids that something refers to; short: their new names."""
    element.text = element.tail = None
    _attributes(element, used, short, prefix)
    children: list[ElementTree.Element] = []
    for child in element:
        if child.tag in (f"{SVG}metadata", f"{SVG}style"):
            continue
        _tidy(child, used, short, prefix)
        if child.tag == f"{SVG}g" and not child.attrib:
            children += child  # a group without a style or a place of its own
        elif child.tag not in (f"{SVG}g", f"{SVG}defs") or len(child):
            children.append(child)
    element[:] = children


def _attributes(element: ElementTree.Element, used: set[str], short: dict[str, str], prefix: str) -> None:
    def new(own: str) -> str:
        return short.setdefault(own, f"{prefix}-{len(short):x}")

    attributes = dict(element.attrib)
    element.attrib.clear()
    for name, value in attributes.items():
        if name == "id":
            if value in used:
                element.set("id", new(value))
            elif value.startswith(INK_IMAGE):
                element.set("class", INK_IMAGE)  # the page's style turns it round on a dark screen
        elif name == HREF:
            element.set("href", value if value.startswith("data:") else "#" + new(value.removeprefix("#")))
        elif name == "d":
            element.set("d", _path(value))
        elif name == "transform" and element.tag == f"{SVG}use" and (shift := _SHIFT.fullmatch(value)):
            if (x := _rounded(shift[1], 2)) != "0":
                element.set("x", x)
        elif name == "transform":
            # A glyph's scale is about 0.01: it needs more digits than where it stands.
            element.set(name, _NUMBER.sub(lambda match: _rounded(match[0], 4), value))
        elif name in ("x", "y", "width", "height"):
            element.set(name, _NUMBER.sub(lambda match: _rounded(match[0], 2), value))
        else:
            value = value.replace(": ", ":").replace("; ", ";") if name == "style" else value
            element.set(name, re.sub(r"url\(#([^)]+)\)", lambda match: f"url(#{new(match[1])})", value))


def _path(data: str) -> str:
    text = _NUMBER.sub(lambda found: _rounded(found[0], 2), data)
    text = re.sub(r"\s*([A-Za-z])\s*", r"\1", text).strip()
    return re.sub(r"\s+", ",", text).replace(",-", "-")


def _rounded(number: str, digits: int) -> str:
    text = f"{float(number):.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
