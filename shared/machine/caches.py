"""The folders in which this project keeps files between two runs, and the variables that move them.

    GROUNDUP_CACHE      stage 3's library, stage 4's compiled kernels and what a compiler needs; data does not follow it
    GROUNDUP_DATA       the full data sets, to be read; without it they are looked for, and downloaded, in `user_cache`

The emulator finds its folder by itself (cuda_emulator/compiler/cache.py), since it imports nothing of this project.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from shared.machine import private_folder

PACKAGE = "groundup"
CACHE_VARIABLE = "GROUNDUP_CACHE"
DATA_VARIABLE = "GROUNDUP_DATA"


def user_cache() -> Path:
    """The user's cache folder for this project, where the operating system has its caches. It need not exist.

    The same folder as pooch.os_cache("groundup") and platformdirs.user_cache_dir("groundup").
    """
    home = Path.home()
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        return local / PACKAGE / PACKAGE / "Cache"
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if chosen.startswith("/"):  # the standard says that a relative one is to be ignored
        return Path(chosen) / PACKAGE
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / PACKAGE


def compiled() -> Path:
    """The folder for what is compiled: GROUNDUP_CACHE, else the user's cache, or a temporary one if that is locked."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else private_folder.or_temporary(user_cache())


def private(folder: Path) -> Path:
    """A folder of `compiled()`, made where it is missing, if code may be loaded from it.

    If others may write to it: an empty one for this process alone, after a warning that says why.

    Raises OSError where the folder cannot be made.
    """
    private_folder.make(folder)
    return folder if private_folder.is_private(folder) else _for_this_process(folder.name)


@cache
def _for_this_process(name: str) -> Path:
    made = Path(tempfile.mkdtemp(prefix=f"groundup-{name}-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def data() -> Path:
    """The folder of the full data sets: GROUNDUP_DATA, else the user's cache."""
    chosen = os.environ.get(DATA_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache()


def may_be_written(folder: Path) -> bool:
    """Whether files can be written into the folder, or the folder can be made where it is missing."""
    there = _nearest(folder)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def free_bytes(folder: Path) -> int | None:
    """How much room is left on the folder's disk; None where the system does not tell."""
    try:
        return shutil.disk_usage(_nearest(folder)).free
    except OSError:
        return None


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    while not os.path.exists(folder) and folder != folder.parent:  # Path.exists raises where a folder is closed to us
        folder = folder.parent
    return folder
