"""Whatever a file, a name or a learner's program says is shown as text: nothing raw comes out."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from shared.machine.results import as_json
from shared.terminal import TextConsole, say
from shared.text import one_line, printable
from tests.wide import WIDE

HOSTILE = [
    "\x1b[2J\x1b[H",  # clears the screen
    "\x1b]0;title\x07",  # sets the window's title
    "\x1b]8;;http://elsewhere.example\x07a link\x1b]8;;\x07",
    "\x9b31m",  # the same escape in one character of eight bits
    "before\rafter",  # hides what stood there
    "a\x08b\x7f",
    "\x00",
    "\u202egnp.exe",  # reads backwards
    "\u2066\u2069\u200f",
    "\ud800",
    "\ufffe\uffff",
    "line\u2028separator",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_character_that_does_something_is_left(text):
    shown = printable(text)
    assert not any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in shown)
    assert not any(
        unicodedata.bidirectional(each) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        for each in shown
    )
    assert "\\u" in shown
    shown.encode()


@given(st.text())
def test_ordinary_text_stays_as_it_is_and_twice_is_once(text):
    shown = printable(text)
    assert printable(shown) == shown
    assert printable("Zürich µs 数字 \t\n") == "Zürich µs 数字 \t\n"
    if text.isprintable():
        assert shown == text or any(0x200E <= ord(each) <= 0x2069 or ord(each) == 0x61C for each in text)


@settings(max_examples=100 if WIDE else 25)
@given(
    st.recursive(st.text() | st.floats() | st.none(), lambda deep: st.lists(deep) | st.dictionaries(st.text(), deep))
)
def test_json_stays_the_same_document_and_strict(value):
    text = as_json({"value": value})
    assert json.loads(printable(text), parse_constant=pytest.fail) == json.loads(text, parse_constant=pytest.fail)


def test_one_line_is_one_line():
    assert one_line("a\nb\t\x1b[0m c") == "a b \\u001b[0m c"
    assert one_line("x" * 1000, most=10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    "text", [*HOSTILE, "[bold]loud[/bold]", "[/x]", "[link=http://elsewhere.example]x[/link]", ":warning:"]
)
@pytest.mark.parametrize("colours", [True, False])
def test_a_console_shows_it_as_text_wherever_it_stands(text, colours):
    written = io.StringIO()
    console = TextConsole(
        file=written, force_terminal=colours, color_system="truecolor" if colours else None, width=200
    )
    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)
    table.add_row(Text(text, style="red"))
    console.print(text)
    console.print(Text(text))
    console.print(table)
    out = written.getvalue()
    for raw in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\x08", "\x00", "\u202e", "\ud800", "\u2028"):
        assert raw not in out
    if "[" in text and text.isprintable():
        assert text in out
    assert out.count("\r") == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_said_is_text(text, capsys):
    say(text)
    say(text, err=True, nl=False)
    captured = capsys.readouterr()
    assert captured.out == printable(text) + "\n"
    assert captured.err == printable(text)
