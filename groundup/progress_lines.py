"""Says what a long command is doing: a moving line on a terminal, else a line at a time, so that a log grows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn

from shared.countdown import left
from shared.terminal import TextConsole
from shared.text import printable

SELDOM = 2.0
"""Seconds between two lines of a log at the least, for work of hundreds of small steps."""


@contextmanager
def as_it_goes(first: str, *, json: bool, every: float = 0.0) -> Iterator[Callable[..., None]]:
    """A function that says what is done next: say(what, share). share: how much of all is done, from 0 to 1, if known.

    On a terminal it changes one line on stderr, with a bar. Where standard output is a pipe or a file it writes a line
    there at once, if it says something new; to stderr where standard output is kept for one JSON document.
    first: said before the first call, on a terminal alone; every: the least seconds between two lines
    """
    to_terminal = TextConsole(stderr=True)
    lines = sys.stderr if json else sys.stdout
    before, begin, latest = float("-inf"), time.monotonic(), ""
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[left]}")
    bar = Progress(*columns, console=to_terminal, disable=not to_terminal.is_terminal, transient=True)
    task = bar.add_task(first, total=None, left="")

    def say(activity: str, share: float | None = None) -> None:
        nonlocal before, latest
        is_new, latest = activity != latest, activity
        rest = "" if share is None else left(share, time.monotonic() - begin)
        bar.update(task, description=activity, total=None if share is None else 1.0, completed=share or 0.0, left=rest)
        if (
            is_new
            and not lines.isatty()
            and not (json and to_terminal.is_terminal)
            and time.monotonic() - before >= every
        ):
            before = time.monotonic()
            print(printable(f"{activity} ({rest})" if rest else activity), file=lines, flush=True)

    with bar:
        yield say
