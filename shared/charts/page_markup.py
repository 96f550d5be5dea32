"""HTML out of Python calls, escaped by construction: a text is a text until it is an Html."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape


class Html(str):
    """Text that is markup already. Every other str that reaches tag() is escaped."""

    __slots__ = ()


_VOID = frozenset(("meta", "img", "source"))


def tag(name: str, /, *children: str, **attributes: str | int) -> Html:
    """`<name attribute="value">children</name>`. `class_` stands for class, `aria_label` for aria-label.

    A value that is Html already stands as it is.
    """
    given = "".join(f' {_attribute(key)}="{_plain(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """The children one after the other; what is not Html is escaped."""
    return Html("".join(each if isinstance(each, Html) else escape(each) for each in children))


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int], name: str, *, wrap: bool = False
) -> Html:
    """A table in a box that scrolls sideways where it does not fit, also by keyboard.

    The first cell of a row is its heading. numbers: the columns that align right. name: for who cannot see it.
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
    shown = tag("table", tag("thead", head), tag("tbody", *body), class_="wrap" if wrap else "")
    return tag("div", shown, class_="scroll", tabindex=0, role="region", aria_label=name)


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _plain(value: str | int) -> str:
    return value if isinstance(value, Html) else escape(str(value))
