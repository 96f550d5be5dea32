"""SIGINT and SIGHUP for the tests that send them: a shell lets its background jobs ignore the one, `nohup` the other.

The program is meant to go on ignoring it then, and so is every process that it starts. The tests that are about such a
signal begin by hearing it again.
"""

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Within this block, or in the test that it decorates, SIGINT raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def hear() -> None:
    """The `preexec_fn` of a process that a test starts, and then interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGHUP"):  # not on Windows
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
