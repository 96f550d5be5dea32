"""A figure's SVG, made small enough to stand in a page four times: light and dark, wide and narrow.

matplotlib writes for people who read SVG: indented, six decimals, an id and a group for everything. `compact` leaves
what a browser needs to draw the same picture, less than half of it. `data_uri` puts it where an address is expected.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_SHIFT = re.compile(r"translate\((-?[\d.]+)(?: 0)?\)")


def compact(svg: str) -> str:
    """The same picture in fewer characters: coordinates to a hundredth of a point, no comments, names or empty groups.

    Raises ElementTree.ParseError for what is no XML.
    """
    root = ElementTree.fromstring(svg)
    used = set(re.findall(r"#([\w.:-]+)", svg))
    short: dict[str, str] = {}
    _tidy(root, used, short)
    ElementTree.register_namespace("", SVG.strip("{}"))
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def data_uri(svg: str) -> str:
    """An address that is the picture itself, without spaces, double quotes and ampersands: it may stand in `srcset`,
    and in HTML as it is.

    Base64 would be a third longer than the picture; what is escaped here is a tenth of it.
    """
    plain = svg.replace("'", "&apos;").replace('"', "'")
    for character in "%& #\n":
        plain = plain.replace(character, f"%{ord(character):02X}")
    return f"data:image/svg+xml,{plain}"


def size(svg: str) -> tuple[int, int]:
    """Width and height in CSS pixels, of which there are 96 to an inch and 4 to 3 points."""
    wide, high = re.findall(r'(?:width|height)="([\d.]+)pt"', svg[: svg.index(">")])
    return round(float(wide) * 4 / 3), round(float(high) * 4 / 3)


def _tidy(element: ElementTree.Element, used: set[str], short: dict[str, str]) -> None:
    """Shorten an element and all below it. used: the ids that something points to; short: their new names."""
    element.text = element.text if element.tag == f"{SVG}style" else None
    element.tail = None
    _attributes(element, used, short)
    children: list[ElementTree.Element] = []
    for child in element:
        if child.tag == f"{SVG}metadata":
            continue
        _tidy(child, used, short)
        if child.tag == f"{SVG}g" and not child.attrib:
            children += child  # a group that says nothing
        elif child.tag != f"{SVG}g" or len(child):
            children.append(child)
    element[:] = children


def _attributes(element: ElementTree.Element, used: set[str], short: dict[str, str]) -> None:
    given = dict(element.attrib)
    element.attrib.clear()
    for name, value in given.items():
        if name == "id":
            if value in used:
                element.set("id", _name(value, short))
        elif name == HREF:
            element.set("href", "#" + _name(value.removeprefix("#"), short))
        elif name == "d":
            element.set("d", _path(value))
        elif name == "transform" and element.tag == f"{SVG}use" and (shift := _SHIFT.fullmatch(value)):
            if (x := _rounded(shift[1], 2)) != "0":
                element.set("x", x)
        elif name == "transform":
            # A glyph's scale is about 0.01: it needs more digits than where it stands.
            element.set(name, _NUMBER.sub(lambda found: _rounded(found[0], 4), value))
        elif name in ("x", "y", "width", "height"):
            element.set(name, _NUMBER.sub(lambda found: _rounded(found[0], 2), value))
        else:
            value = value.replace(": ", ":").replace("; ", ";") if name == "style" else value
            value = re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{_name(found[1], short)})", value)
            element.set(name, value)


def _name(own: str, short: dict[str, str]) -> str:
    return short.setdefault(own, f"i{len(short):x}")


def _path(data: str) -> str:
    text = _NUMBER.sub(lambda found: _rounded(found[0], 2), data)
    text = re.sub(r"\s*([A-Za-z])\s*", r"\1", text).strip()
    return re.sub(r"\s+", ",", text).replace(",-", "-")


def _rounded(number: str, digits: int) -> str:
    text = f"{float(number):.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
