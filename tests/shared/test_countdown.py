"""How far a long piece of work has come is said on a terminal alone, after a while, and taken away."""

from __future__ import annotations

import io

import pytest

from shared import countdown
from shared.countdown import Countdown, left


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(countdown.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("share", "seconds", "text"),
    [
        (0.0, 50.0, "0 %"),
        (0.25, 10.0, "25 %, about 30 s left"),
        (0.5, 240.0, "50 %, about 4 min left"),
        (1.0, 9.0, "100 %, about 0 s left"),
        (1.7, 9.0, "100 %, about 0 s left"),
        (-1.0, 9.0, "0 %"),
    ],
)
def test_the_share_and_the_time_left(share: float, seconds: float, text: str) -> None:
    assert left(share, seconds) == text


def test_what_is_over_soon_has_no_line(clock: list[float]) -> None:
    terminal = Terminal()
    with Countdown(terminal) as line:
        for done in range(5):
            clock[0] += 0.3
            line.show("compiling", done, 5)
    assert terminal.getvalue() == ""


def test_a_long_job_has_a_line_that_is_taken_away(clock: list[float]) -> None:
    terminal = Terminal()
    with Countdown(terminal) as line:
        line.show("compiling stage 3", 0, 10)
        for done in range(1, 4):
            clock[0] += 2
            line.show("compiling stage 3", done, 10)
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines[1:] == [
        "compiling stage 3: 10 %, about 18 s left",
        "compiling stage 3: 20 %, about 16 s left",
        "compiling stage 3: 30 %, about 14 s left",
        "",
    ]


def test_a_new_job_begins_anew_and_an_end_takes_the_line_away(clock: list[float]) -> None:
    terminal = Terminal()
    line = Countdown(terminal)
    line.show("one", 0, 2)
    clock[0] += 5
    line.show("one", 1, 2)
    line.show("")
    assert terminal.getvalue().endswith("\r\x1b[K")
    line.show("two", 0, 2)
    clock[0] += 1
    line.show("two", 1, 2)
    assert "two" not in terminal.getvalue()
    clock[0] += 2
    line.show("without a total")
    assert terminal.getvalue().endswith("without a total …")


def test_a_file_gets_no_line(clock: list[float]) -> None:
    file = io.StringIO()
    with Countdown(file) as line:
        clock[0] += 60
        line.show("compiling", 1, 2)
    assert file.getvalue() == ""
