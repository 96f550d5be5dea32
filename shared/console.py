"""rich's console for texts that may come from anywhere, and its tables for a terminal of any width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table

from .text import printable

ENDLESS = 10_000
"""Columns of a terminal in which every table fits."""

FOLDED = 16
"""Columns that are left at least to a text which may be broken inside of a word."""


class TextConsole(Console):
    """rich's console for texts that may come from anywhere: `[bold]` is shown as it stands, and so is an escape."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """rich's own rendering; what is text in it is made printable, and what rich itself orders stays."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


class Whole:
    """A table of which no number is cut off, in a terminal of any width. To be printed with crop=False.

    If the terminal is too narrow, the columns come nearer to each other, and texts are broken between words. If even
    that does not suffice, the lines are longer than the terminal, which breaks them itself. rich alone would put "…" in
    the place of the digits that have no room.
    """

    def __init__(self, table: Table, indent: int = 0) -> None:
        self.table, self.indent = table, indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What is printed."""
        table, width = deepcopy(self.table), options.max_width - self.indent
        endless = console.options.update(width=ENDLESS)
        if Measurement.get(console, endless, table).maximum > width:
            table.padding = (0, 0) if table.box else (0, 1, 0, 0)
            needs = [_needs(console, endless, column, table.show_header) for column in table.columns]
            between = Measurement.get(console, endless, table).maximum - sum(most for _, most in needs)
            widths = _widths(needs, width - between)
            for column, each in zip(table.columns, widths, strict=True):
                column.width = each
            width = between + sum(widths)
        yield from console.render(
            Padding(table, (0, 0, 0, self.indent), expand=False), options.update(width=width + self.indent)
        )


def _needs(console: Console, endless: ConsoleOptions, column: Column, headed: bool) -> tuple[int, int]:
    """(least, most): the width of a column that cuts nothing off, and the one that breaks no line.

    headed: whether the table shows the columns' headings
    """
    shown = (*([column.header] if headed else []), *column.cells)
    cells = [Measurement.get(console, endless, each) for each in shown]
    most = max((each.maximum for each in cells), default=0)
    if column.no_wrap:
        return most, most
    word = max((each.minimum for each in cells), default=0)
    return (min(word, FOLDED) if column.overflow == "fold" else word), most


def _widths(needs: Sequence[tuple[int, int]], room: int) -> list[int]:
    """The widths of columns that need (least, most): the least, and what room is left shared out among them."""
    widths = [least for least, _ in needs]
    spare = room - sum(widths)
    by_want = sorted(range(len(needs)), key=lambda i: needs[i][1] - needs[i][0])
    for place, i in enumerate(by_want):
        more = max(0, min(needs[i][1] - needs[i][0], spare // (len(needs) - place)))
        widths[i] += more
        spare -= more
    return widths
