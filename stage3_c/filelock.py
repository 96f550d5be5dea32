"""One process at a time: a lock on a file, which the operating system releases when the process that holds it ends.

If the lock were only a file that exists, it would stay after its process was killed, and no process could build again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RETRY_SECONDS = 0.05
"""How often Windows, which has no lock that waits for longer than ten seconds, is asked again."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on this file, waiting for it as long as another process or thread has it.

    The file is made where it is missing and stays behind, empty. Raises OSError where it cannot be made or locked.
    """
    # Python opens files closed to child processes, so that no compiler inherits the lock and outlives us with it.
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _wait_for(file)
        yield
    finally:
        os.close(file)  # which also gives the lock back


if sys.platform == "win32":
    import msvcrt

    def _wait_for(file: int) -> None:
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
                return
            except PermissionError:  # another has it
                time.sleep(RETRY_SECONDS)

else:
    import fcntl

    def _wait_for(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)
