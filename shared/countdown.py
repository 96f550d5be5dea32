"""How far a long piece of work has come: its share, and about how long the rest takes. Standard library only.

left         the same as a text, for a bar that somebody else draws
Countdown    one line on standard error, where that is a terminal
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

PATIENCE = 2.0
"""Seconds of work without a line: what is over by then needs none."""

REDRAW_EVERY = 0.2


def left(share: float, seconds: float) -> str:
    """'34 %, about 40 s left', for a share from 0 to 1 that took so many seconds; '0 %' while nothing is done."""
    share = min(max(share, 0.0), 1.0)
    if share == 0.0:
        return "0 %"
    rest = seconds * (1 - share) / share
    time_left = f"{rest:.0f} s" if rest < 100 else f"{rest / 60:.0f} min"
    return f"{100 * share:.0f} %, about {time_left} left"


class Countdown:
    """A line that is written over itself, and taken away at the end. Use it as a context."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._begin, self._drawn_at, self._shown = time.monotonic(), 0.0, False

    def __enter__(self) -> Countdown:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, job: str, done: float = 0.0, total: float = 0.0) -> None:
        """What is done now; "" where that is over. done, total: in any unit, a new job begins with 0 of a total; 0, 0
        where the total is not known."""
        now = time.monotonic()
        if not job:
            self.clear()
        if not job or (total and not done):
            self._begin = now
        if not self._stream.isatty() or now - self._begin < PATIENCE or now - self._drawn_at < REDRAW_EVERY:
            return
        self._drawn_at, self._shown = now, True
        words = f"{job}: {left(done / total, now - self._begin)}" if total else f"{job} …"
        self._stream.write(f"\r\x1b[K{words[:100]}")
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
