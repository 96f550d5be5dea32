"""A table in a terminal that is too narrow for it: no number is cut off."""

import io

import pytest
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from shared.terminal import TextConsole, Whole

ROWS = [
    ("stage 1: pure Python", "1,234,567", "0.00398", "one long sentence"),
    ("C", "12", "3", "LADDER['kernel_loops']"),
]


def made() -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("stage")
    for heading in ("samples/s", "speed"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("where", overflow="fold")
    for row in ROWS:
        table.add_row(*row)
    return table


def printed(renderable: Whole | Table, width: int) -> str:
    written = io.StringIO()
    TextConsole(file=written, width=width).print(renderable, crop=False)
    return written.getvalue()


@pytest.mark.parametrize("width", [20, 40, 46, 50, 60, 70])
def test_a_narrow_terminal_gets_every_number_whole(width: int) -> None:
    text = printed(Whole(made()), width)
    assert "…" not in text
    for row in ROWS:
        for number in row[1:3]:
            assert f" {number} " in text


def test_texts_are_broken_as_little_as_the_width_allows_and_the_table_itself_stays_as_it_was() -> None:
    table = made()
    assert [line.rstrip() for line in printed(Whole(table), 20).splitlines()] == [
        "stage  samples/s   speed where",
        "─────────────────────────────────────────",
        "stage  1,234,567 0.00398 one long",
        "1:                       sentence",
        "pure",
        "Python",
        "C             12       3 LADDER['kernel_l",
        "                         oops']",
    ]
    assert [line.rstrip() for line in printed(Whole(table), 60).splitlines()][2:] == [
        "stage 1: pure       1,234,567 0.00398 one long sentence",
        "Python",
        "C                          12       3 LADDER['kernel_loops']",
    ]
    assert printed(table, 100) == printed(made(), 100)


def test_a_heading_that_may_not_be_broken_is_not() -> None:
    table = Table(Column("of one thread", no_wrap=True), box=SIMPLE_HEAD)
    assert "of one thread" in printed(Whole(table), 5)


def test_the_lines_fit_where_texts_can_be_broken() -> None:
    needed = max(map(len, printed(Whole(made()), 20).splitlines()))
    assert max(map(len, printed(Whole(made()), needed).splitlines())) == needed
    assert max(map(len, printed(Whole(made()), needed + 7).splitlines())) <= needed + 7


def test_a_wide_terminal_gets_the_table_as_rich_prints_it() -> None:
    assert printed(Whole(made()), 100) == printed(made(), 100)
    plain, indented = (printed(each, 100).splitlines() for each in (made(), Whole(made(), indent=2)))
    assert indented == [f"  {line}" for line in plain]
