"""Files that may come from a stranger: only regular ones are opened, and only so much of one is read.

A name can stand for a FIFO, a device or a socket, and reading from one may wait for ever or never end. A file can be
longer than the memory. So every file of data is opened here.

    opened(path)               a regular file, open for reading bytes
    read(path, most)           its content, if it has at most so many bytes
    largest(most)              a limit, or the higher one that GROUNDUP_LARGEST_FILE sets
    real(path)                 where a path leads, through all links

The errors are those of `open` (an OSError with the path and the reason in its text), and ValueError for a file that is
too long.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

VARIABLE = "GROUNDUP_LARGEST_FILE"
"""A number of bytes that raises every limit on the length of a file."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO (a named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NoRegularFile(OSError):
    """The name stands for a folder, a FIFO, a device or a socket."""


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """The regular file of this name, open for reading bytes. Raises OSError; never waits for another program."""
    _refuse_others(os.stat(path).st_mode, path)  # first by name: opening a device can do something
    # Without waiting: a FIFO may have taken the name since. For a regular file the flag means nothing.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))  # noqa: SIM115
    try:
        _refuse_others(os.fstat(file.fileno()).st_mode, path)
    except BaseException:
        file.close()
        raise
    return file


def read(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of a regular file. Raises OSError, and ValueError for more bytes than `most` or `largest` allow."""
    most = largest(most)
    with opened(path) as file:
        length = os.fstat(file.fileno()).st_size
        content = file.read(most + 1) if length <= most else b""  # the length may be told wrong, as by /proc
    if max(length, len(content)) > most:
        raise ValueError(too_long(path, max(length, len(content)), most))
    return content


def real(path: str | os.PathLike[str]) -> Path:
    """Where a path leads, through all links: Path.resolve, which raises RuntimeError for a link that leads to itself,
    where this returns the link. Opening that is refused as any missing file is."""
    return Path(os.path.realpath(path))


def largest(most: int) -> int:
    """The limit `most`, or the one of GROUNDUP_LARGEST_FILE if that is higher.

    Raises ValueError if the variable is no whole number.
    """
    told = os.environ.get(VARIABLE, "").strip()
    if told and not (told.isascii() and told.isdigit() and len(told) < 20):
        raise ValueError(f"{VARIABLE}: expected a number of bytes, got {told[:60]!r}")
    return max(most, int(told or 0))


def too_long(path: str | os.PathLike[str], length: int, most: int) -> str:
    """The sentence about a file that is too long."""
    return f"{os.fspath(path)}: {length:,} bytes, more than the {most:,} that are read; {remedy()}"


def remedy() -> str:
    """What to do if a file is right, and too long."""
    return f"if you trust it, set {VARIABLE} to a larger number of bytes"


def _refuse_others(mode: int, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for fits, name in _KINDS if fits(mode)), "no file")
        raise NoRegularFile(f"{os.fspath(path)} is {kind}, expected a regular file")
