"""Ctrl-C at a good moment: the running step ends first, then the loop saves and stops.

A signal can come between any two instructions, also in the middle of a weight update. So the handler only takes a
note, and the training loop looks at the note between two steps. A second Ctrl-C is not so patient.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Note:
    """Whether somebody asked to stop."""

    requested = False


@contextlib.contextmanager
def noted_interrupts() -> Iterator[Note]:
    """Within this block the first SIGINT or SIGTERM sets `note.requested`; a second one acts as usual.

    The old handlers come back at the end. Python allows handlers in the main thread only: elsewhere nothing changes.
    """
    note = Note()
    if threading.current_thread() is not threading.main_thread():
        yield note
        return
    previous: dict[signal.Signals, Any] = {}

    def take_note(number: int, frame: FrameType | None) -> None:
        note.requested = True
        for each, handler in previous.items():
            signal.signal(each, handler)

    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(each)
            # None: set by someone outside Python, and could not be put back. SIG_IGN: a background job, which a
            # Ctrl-C meant for another program must not stop.
            if handler not in (None, signal.SIG_IGN):
                previous[each] = handler
                signal.signal(each, take_note)
        yield note
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
