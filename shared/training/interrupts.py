"""Ctrl-C between two steps: the running step ends first, then the training loop saves and stops.

A signal can come between any two instructions, even in the middle of a weight update. So the handler only sets a note,
and the training loop reads the note between two steps. A second Ctrl-C stops the program at once.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Note:
    """Whether a signal has asked the program to stop."""

    requested = False


@contextlib.contextmanager
def noted_interrupts() -> Iterator[Note]:
    """Within this block the first SIGINT or SIGTERM sets `note.requested`, and a second one acts as usual.

    The previous handlers are restored at the end. Python allows handlers in the main thread only, so in another thread
    the block changes nothing.
    """
    note = Note()
    if threading.current_thread() is not threading.main_thread():
        yield note
        return
    previous: dict[signal.Signals, Any] = {}

    def take_note(number: int, frame: FrameType | None) -> None:
        note.requested = True
        for signum, handler in previous.items():
            signal.signal(signum, handler)

    try:
        for signum in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(signum)
            # None: the handler was not set by Python and could not be restored. SIG_IGN: the program is a background
            # job, which a Ctrl-C for another program must not stop.
            if handler not in (None, signal.SIG_IGN):
                previous[signum] = handler
                signal.signal(signum, take_note)
        yield note
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
