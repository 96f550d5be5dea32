"""Single keys from the terminal, without Enter, while the program does something else."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Pressed = Callable[[float], str]
"""Waits at most so many seconds for a key, and returns it; "" if none was pressed."""

WINDOWS_LOOK = 0.02
"""Seconds between two looks at the keyboard on Windows, where nothing can be waited for."""


def is_interactive() -> bool:
    """Whether both ends are a terminal: somebody presses keys, and sees the answers."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextlib.contextmanager
def keys() -> Iterator[Pressed]:
    """Within the `with`, keys come one by one and are not echoed; Ctrl-C still is a KeyboardInterrupt."""
    if sys.platform == "win32":
        yield _pressed_on_windows
        return
    with _cbreak():
        yield _pressed


@contextlib.contextmanager
def lines() -> Iterator[None]:
    """Within the `with`, inside that of `keys`, the terminal is as other programs expect it, such as an editor."""
    if sys.platform == "win32":
        yield
        return
    import termios

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    after = termios.tcgetattr(file)
    after[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(file, termios.TCSADRAIN, after)
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _cbreak() -> Iterator[None]:
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _pressed(seconds: float) -> str:
    file = sys.stdin.fileno()
    if not select.select([file], [], [], seconds)[0]:
        return ""
    given = os.read(file, 64)
    if not given:
        raise EOFError("the terminal was closed")
    # An arrow or a function key sends several bytes, which begin with an escape: no key of ours.
    return "" if given.startswith(b"\x1b") else given[:1].decode(errors="replace")


def _pressed_on_windows(seconds: float) -> str:
    import importlib

    console: Any = importlib.import_module("msvcrt")  # there on Windows only
    last = time.monotonic() + seconds
    while not console.kbhit():
        if time.monotonic() >= last:
            return ""
        time.sleep(WINDOWS_LOOK)
    key = str(console.getwch())
    if key in ("\x00", "\xe0"):  # an arrow or a function key: a second part follows
        console.getwch()
        return ""
    if key == "\x03":
        raise KeyboardInterrupt
    return key
