"""Whose folder it is: what lies in a cache is run, so a folder that somebody else may write to is not used.

Compiled code is loaded and run, and pickles run what they name: whoever can put a file into the folder can run code as
this user. cuda_emulator/compiler and shared/machine have this file alike, because the emulator imports nothing of the
project; a test compares them.
"""

from __future__ import annotations

import os
import stat
import warnings
from functools import cache
from pathlib import Path


def make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone, whatever the umask. Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
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
        if about.st_uid not in (os.getuid(), 0):
            _warn(folder, f"{each} belongs to another user", f"sudo chown -R $(id -un) '{each}'")
            return False
        writable = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH if each == folder else stat.S_IWOTH)
        if writable and (
            each == folder or not about.st_mode & stat.S_ISVTX
        ):  # /tmp is sticky: names stay their owner's
            _warn(folder, f"other users may write to {each}", f"chmod go-w '{each}'")
            return False
    return True


def _warn(folder: Path, why: str, command: str) -> None:
    warnings.warn(f"the cache folder {folder} is not used: {why}. To mend it: {command}", stacklevel=2)
