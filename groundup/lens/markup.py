"""HTML out of Python calls, escaped by construction: a text is a text until it is an Html."""

from __future__ import annotations

from html import escape


class Html(str):
    """Text that is markup already. Every other str that reaches tag() is escaped."""

    __slots__ = ()


_VOID = frozenset(("meta", "br", "col"))


def tag(name: str, /, *children: str, **attributes: str | int) -> Html:
    """`<name attribute="value">children</name>`. `class_` stands for class, `aria_label` for aria-label."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """The children one after the other; what is not Html is escaped."""
    return Html("".join(each if isinstance(each, Html) else escape(each) for each in children))


def table(heads: list[str], rows: list[list[str]], numbers: frozenset[int], name: str) -> Html:
    """A table in a box that scrolls sideways where it does not fit. numbers: the columns that align right."""
    side = dict.fromkeys(numbers, "number")
    head = tag("tr", *(tag("th", each, scope="col", class_=side.get(n, "words")) for n, each in enumerate(heads)))
    body = []
    for row in rows:
        cells = [tag("th", row[0], scope="row", class_=side.get(0, "words"))]
        body.append(
            tag("tr", *cells, *(tag("td", each, class_=side.get(n, "words")) for n, each in enumerate(row[1:], 1)))
        )
    return scrolling(tag("table", tag("thead", head), tag("tbody", *body)), name)


def scrolling(content: Html, name: str) -> Html:
    """A box that scrolls sideways instead of the page, also by keyboard."""
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=name)
