"""Write a file whole or not at all.

The bytes go into a temporary file in the same folder, are pushed to the disk, and then the file is renamed in one
indivisible step. A reader finds the whole old file or the whole new one, also after a power cut.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

ON_WINDOWS = os.name == "nt"

WAITS = (0.01, 0.05, 0.2, 0.5, 1.0)
"""Seconds before the next try to replace a file that another program has open."""

_PREFIX, _SUFFIX = ".groundup-", ".tmp"


def write_atomically(path: Path, content: bytes, mode: int = 0o666, to_disk: bool = True) -> None:
    """Put content under path, replacing what was there; the folder is made where it is missing.

    mode: the file's permissions, of which the umask takes some away
    to_disk: wait until the bytes are on the disk. Without that, which saves some milliseconds, a reader still finds a
        whole file, but after a power cut the file may be empty

    Raises OSError, with the path and the reason in its text, where that cannot be done; nothing is left behind then.
    """
    write_together({path: content}, mode, to_disk)


def write_together(contents: Mapping[Path, bytes], mode: int = 0o666, to_disk: bool = True) -> None:
    """Replace several files of one folder. All are on the disk before the first is replaced, so that old and new files
    stand side by side for some microseconds only."""
    path, temporaries = Path(), {}
    try:
        try:
            for path, content in contents.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                temporaries[path], file = new_file(path.parent, mode)
                with file:
                    file.write(content)
                    if to_disk:
                        file.flush()
                        os.fsync(file.fileno())
            for path, temporary in temporaries.items():
                _replace(temporary, path)
        except BaseException:
            for temporary in temporaries.values():
                with contextlib.suppress(FileNotFoundError):
                    temporary.unlink()
            raise
        if to_disk:
            _sync_folder(path.parent)
    except OSError as error:
        raise OSError(f"cannot write {path}: {why_not(path, error)}") from error


def new_file(folder: Path, mode: int = 0o666) -> tuple[Path, BinaryIO]:
    """The path of a new temporary file, and the file, open for writing. Raises OSError.

    Nobody can guess its name, and what has the name already, such as a link to another file, is never opened.
    """
    path = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    nofollow = getattr(os, "O_NOFOLLOW", 0)
    return path, open(path, "xb", opener=lambda name, flags: os.open(name, flags | nofollow, mode))


def why_not(path: Path, error: OSError) -> str:
    """The reason for an error of writing to a path, for people: the system's, or which part of the path is a file.

    For a file in the place of a folder the system says "File exists", which sounds as if the path were meant.
    """
    in_the_way = next((str(each) for each in path.parents if os.path.isfile(each)), None)
    return f"{in_the_way} is a file, and no folder" if in_the_way else error.strerror or str(error)


def _replace(temporary: Path, path: Path) -> None:
    """Rename. Windows refuses that while another program reads the file, as one that watches a training often does."""
    for seconds in WAITS if ON_WINDOWS else ():
        try:
            return os.replace(temporary, path)
        except PermissionError:
            time.sleep(seconds)
    os.replace(temporary, path)


def remove_stale(folder: Path) -> None:
    """Remove the temporary files that a killed process left in folder."""
    for temporary in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Push the folder's own list of names to the disk: without it the new name can be lost, though not the bytes."""
    if ON_WINDOWS:  # Windows opens no folders, and needs none of this
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
