"""HTML and style sheets out of Python calls, for every page and picture that this project writes.

tag, join           markup that is escaped by construction: a text is a text until it is an Html
escape              the same for markup that is written by hand
table, scrolling    boxes that scroll sideways where they do not fit, so that the page does not
palettes            colours with names, each with a value for a light and one for a dark screen
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape as _escape

from .text import printable

Palette = Mapping[str, tuple[str, str]]
"""Name of a colour -> what it is on a light and on a dark screen."""


class Html(str):
    """Text that is markup already. Every other str that reaches tag() is escaped."""

    __slots__ = ()


_VOID = frozenset(("br", "col", "img", "input", "meta", "source"))


def tag(name: str, /, *children: str, **attributes: str | int) -> Html:
    """`<name attribute="value">children</name>`. `class_` stands for class, `aria_label` for aria-label.

    A value that is Html already stands as it is.
    """
    given = "".join(f' {_attribute(key)}="{_plain(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """The children one after the other; what is not Html is escaped."""
    return Html("".join(each if isinstance(each, Html) else escape(each) for each in children))


def escape(text: str) -> str:
    """The text as markup shows it: no character of it is markup, and none does anything (text.py)."""
    return _escape(printable(text))


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int], name: str, *, wrap: bool = False
) -> Html:
    """A table in a box that scrolls sideways where it does not fit.

    The first cell of a row is its heading. numbers: the columns that align right. name: for screen readers.
    wrap: whether cells may take several lines.
    """
    side = dict.fromkeys(numbers, "number")
    head = tag("tr", *(tag("th", each, scope="col", class_=side.get(n, "words")) for n, each in enumerate(heads)))
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", class_=side.get(0, "words")),
            *(tag("td", each, class_=side.get(n, "words")) for n, each in enumerate(row[1:], 1)),
        )
        for row in rows
    ]
    wrapping = {"class_": "wrap"} if wrap else {}
    return scrolling(tag("table", tag("thead", head), tag("tbody", *body), **wrapping), name)


def scrolling(content: Html, name: str) -> Html:
    """A box that scrolls sideways instead of the page, also by keyboard. name: for screen readers."""
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=name)


def palettes(selector: str, colours: Palette) -> str:
    """The style sheet that gives what `selector` chooses a variable --NAME for each colour: the reader's light or dark
    value on a screen, the light one on paper."""
    light, dark = (";".join(f"--{name}:{both[look]}" for name, both in colours.items()) for look in (0, 1))
    return f"{selector}{{{light}}}@media screen and (prefers-color-scheme:dark){{{selector}{{{dark}}}}}"


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _plain(value: str | int) -> str:
    return value if isinstance(value, Html) else escape(str(value))
