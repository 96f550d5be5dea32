"""Whose folder and file it is: what lies in a cache is run, so what somebody else could have written is not used.

Compiled code is loaded and run, and pickles run what they name: whoever can put a file into the folder can run code as
this user. A folder to which others could write once may still hold what they have put there. So the owner and the mode
of every file are looked at, too, and the advice is to remove such a folder.

cuda_emulator/compiler and shared/machine have this file alike, because the emulator imports nothing of the project; a
test compares them.
"""

from __future__ import annotations

import os
import secrets
import shlex
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path

ASIDE = "building-"
"""The name of what was put aside begins so: stage 3 removes such folders before it builds."""


def or_temporary(folder: Path) -> Path:
    """The folder, which need not exist; if it cannot be written, one for this user among the temporary files."""
    nearest = next((each for each in (folder, *folder.parents) if os.path.exists(each)), folder)
    if os.name != "posix" or (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        return folder
    return Path(tempfile.gettempdir(), f"groundup-{os.getuid()}")


def make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone, whatever the umask. Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not os.path.exists(each)]
    for each in reversed(missing):
        try:
            each.mkdir(mode=0o700)  # a umask can only take permissions away
        except FileExistsError:  # another process was faster
            if not each.is_dir():
                raise


def is_private(folder: Path) -> bool:
    """Whether only this user (and the administrator) can write into an existing folder, or replace it.

    A warning, once in a process, names the folder that is not and the command that mends it. Windows, whose folders
    below the user's own are private unless somebody shares them, always answers True.
    """
    return os.name != "posix" or _is_private(folder.absolute())


@cache
def _is_private(folder: Path) -> bool:
    for each in (folder, *folder.parents):
        about = each.stat()
        if not {about.st_uid, each.lstat().st_uid} <= {os.getuid(), 0}:  # a link may lead elsewhere a moment later
            _warn(folder, each, f"{each} belongs to another user", "sudo rm -r")
            return False
        writable = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH if each == folder else stat.S_IWOTH)
        if writable and (
            each == folder or not about.st_mode & stat.S_ISVTX
        ):  # /tmp is sticky: names stay their owner's
            _warn(folder, each, f"other users may write to {each}", "rm -r")
            return False
    return True


def _warn(folder: Path, where: Path, why: str, remove: str) -> None:
    advice = f"To mend it: {remove} {shlex.quote(str(folder))}; what lies there may be theirs"
    if where != folder:
        advice = "Set GROUNDUP_CACHE to a folder that only you can reach"
    warnings.warn(f"the cache folder {folder} is not used: {why}. {advice}", stacklevel=2)


def make_below(folder: Path) -> None:
    """Make a folder in a private one where it is missing; put one aside that somebody else could have put there.
    Raises OSError."""
    if os.path.lexists(folder) and not (folder.is_dir() and not folder.is_symlink() and is_private(folder)):
        os.rename(folder, folder.with_name(f"{ASIDE}{secrets.token_hex(8)}"))
        _is_private.cache_clear()
    folder.mkdir(mode=0o700, exist_ok=True)


def read(path: Path) -> bytes:
    """The content of a file in a folder for which `is_private` is true. Raises OSError, and NotOwn for a file that
    somebody else could have written, or put there while others could write to the folder."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link; a FIFO is not waited for
    with open(path, "rb", opener=lambda name, given: os.open(name, given | flags)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise NotOwn(f"{path} is no regular file")
        if os.name == "posix" and about.st_uid not in (os.getuid(), 0):
            raise NotOwn(f"{path} belongs to another user")
        if os.name == "posix" and about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise NotOwn(f"other users may write to {path}")
        return file.read()


class NotOwn(OSError):
    """A file in a cache that is not this user's alone."""
