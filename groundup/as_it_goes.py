"""Says what a long command is doing: a moving line on a terminal, else a line at a time, so that a log grows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shared.terminal import TextConsole
from shared.text import printable

SELDOM = 2.0
"""Seconds between two lines of a log at the least, for work of hundreds of small steps."""


@contextmanager
def as_it_goes(first: str, *, json: bool, every: float = 0.0) -> Iterator[Callable[[str], None]]:
    """A function that says what is done next.

    On a terminal it changes one line on stderr. Where standard output is a pipe or a file it writes a line there at
    once; to stderr where standard output is kept for one JSON document.
    first: said before the first call, on a terminal alone; every: the least seconds between two lines
    """
    to_terminal = TextConsole(stderr=True)
    lines = sys.stderr if json else sys.stdout
    before = float("-inf")

    def say(what: str) -> None:
        nonlocal before
        status.update(what)
        if not lines.isatty() and not (json and to_terminal.is_terminal) and time.monotonic() - before >= every:
            before = time.monotonic()
            print(printable(what), file=lines, flush=True)

    with to_terminal.status(first) as status:
        yield say
