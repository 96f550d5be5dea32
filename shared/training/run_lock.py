"""The folder of a run belongs to one training at a time: the lock on its file run.lock.

The operating system holds the lock, and takes it back when its holder ends in whatever way. So a file that a killed
training left behind hinders nobody. While the lock is held, the file names its holder, for the sentence that a second
training gets. Programs that only read a run do not ask for the lock.

    flock             on Linux and macOS
    msvcrt.locking    on Windows, of one byte far behind the text: nobody else can read a locked byte there
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import stat
import time
import warnings
import weakref
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from shared.machine import regular, strict_json
from shared.machine.atomic import why_not
from shared.machine.own_process import is_running, mark_of
from shared.text import one_line

LOCK = "run.lock"

TEXT_BYTES = 1024
"""Of the text about the holder, which is filled up with spaces, so that a new one replaces a longer one as a whole."""

LOCKED_BYTE = 1 << 30
"""The byte that Windows locks."""

LOOKS, PAUSE = 5, 0.02
"""How often, and after how many seconds, the text is read again: a new holder writes it just after it has the lock."""

ON_WINDOWS = os.name == "nt"

HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK, 36}
"""The errors that say that another one holds the lock. 36 is Windows' EDEADLOCK."""

_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


class RunInUse(OSError):
    """Raised where another training holds the folder of the run."""


class RunLock:
    """The lock of one folder. It is taken at the beginning of a `with` block, and given back at its end.

    Taking it never waits. It raises RunInUse if another training has the folder, and OSError if the file cannot be
    made. Where the file system has no locks, as some network folders, there is one warning, and nothing is locked.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        self._file: int | None = None

    def __enter__(self) -> RunLock:
        self._take()
        return self

    def __exit__(self, *error: object) -> None:
        """Give the lock back and remove the file."""
        if self._file is None:
            return
        # Only while the file is locked is it certain that no other training has locked it. But Windows removes no open
        # file; there the removal fails if another training has opened it meanwhile, and so does no harm.
        if ON_WINDOWS:
            self._close()
        if self._file is None or _is_named(self._file, self.path):
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._close()

    def keep(self) -> None:
        """Take the lock again if its file has been removed or replaced, with its folder or without.

        A lock on a file without a name keeps nobody out. Does nothing if the lock is not held.
        """
        if self._file is not None and not _is_named(self._file, self.path):
            self._close()
            self._take()

    def _take(self) -> None:
        while True:
            file = _opened(self.path)
            try:
                _lock(file)
                if not _is_named(file, self.path):  # its last holder has removed it since it was opened
                    os.close(file)
                    continue
                _write_holder(file)
            except OSError as error:
                os.close(file)
                if error.errno in HELD:
                    raise RunInUse(in_use(self.path)) from None
                warnings.warn(
                    f"{self.path.parent}: this file system has no locks ({error.strerror or error}), so nothing keeps "
                    "a second training out of the folder",
                    stacklevel=2,
                )
                return
            self._file = file
            _held.add(self)
            return

    def _close(self) -> None:
        if self._file is not None:
            # Closing the last copy unlocks; a forked child has closed its own, see _let_go_in_a_child.
            _held.discard(self)
            os.close(self._file)
            self._file = None


def in_use(path: Path) -> str:
    """The sentence for whoever finds the lock held by another training."""
    who, since = "another process", ""
    for _ in range(LOOKS):
        try:
            with regular.opened(path) as file:
                told = strict_json.loads(file.read(TEXT_BYTES))
            pid, host, mark = int(told["pid"]), str(told["host"]), str(told["mark"])
            # None is "not known", as of a process of another machine: its name is better than none.
            if is_running(pid, mark) is not False:
                since = f" since {datetime.fromtimestamp(told['since']):%Y-%m-%d %H:%M:%S}"
                who = f"process {pid} on {one_line(host, 100)}"
                break
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            pass  # the text is not there yet, or the file may come from a stranger: the lock itself is certain
        time.sleep(PAUSE)
    return f"{path.parent} is in use: {who} writes into it{since}; wait for its end, or choose another folder"


def _opened(path: Path) -> int:
    """The file, made where it is missing. Raises OSError with the path if that cannot be, or for no regular file."""
    # A link or a pipe of this name may have been put there: it is neither followed nor waited for.
    flags = os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(
                path, os.O_RDWR | flags, 0o666
            )  # Python opens it closed to the programs that this one starts
        except PermissionError:  # left behind by another user: it can be locked, but not written to
            file = os.open(path, os.O_RDONLY | flags & ~os.O_CREAT)
    except OSError as error:
        raise OSError(f"cannot write {path}: {why_not(path, error)}") from error
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:  # the text would be written into another name's file
        os.close(file)
        raise OSError(f"cannot write {path}: it is no regular file with this one name; remove it")
    return file


def _is_named(file: int, path: Path) -> bool:
    """Whether the path still stands for the open file."""
    try:
        named = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(file))


def _lock(file: int) -> None:
    """Lock the file without waiting. Raises OSError, with an error of HELD if it is locked already."""
    if ON_WINDOWS:
        console: Any = import_module("msvcrt")  # there on Windows only
        os.lseek(file, LOCKED_BYTE, os.SEEK_SET)
        console.locking(file, console.LK_NBLCK, 1)
    else:
        unix: Any = import_module("fcntl")
        unix.flock(file, unix.LOCK_EX | unix.LOCK_NB)


def _write_holder(file: int) -> None:
    """Name this process in the file. A disk that is full is left to the checkpoints: they say so better."""
    pid = os.getpid()
    holder = {"pid": pid, "host": platform.node()[:100], "since": time.time(), "mark": mark_of(pid)}
    with contextlib.suppress(OSError):
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, json.dumps(holder).encode().ljust(TEXT_BYTES - 1) + b"\n")


def _let_go_in_a_child() -> None:
    """A process that is forked off inherits the open file, and would keep the lock beyond its holder's end."""
    for each in list(_held):
        each._close()  # which unlocks nothing as long as the parent has the file open


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_a_child)
