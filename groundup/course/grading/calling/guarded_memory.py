"""What C does to memory, and no result shows: reads outside an array, its own memory that it writes, or never frees.

guarded          an array with a page that may not be read right after it, or right before it: an access ends it
Static           the variables of the learner's library that outlive a call
leaks            whether calls leave memory behind
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE

CALLS = 64
"""That are made to see whether memory is left behind; a block of malloc's has at least 16 bytes."""

_mappings: dict[int, mmap.mmap] = {}
"""By argument; each begins and ends with a page that may not be read."""


def can_guard() -> bool:
    """Whether pages can be made unreadable on this system."""
    return sys.platform != "win32"


def guarded(place: int, values: np.ndarray, behind: bool) -> np.ndarray:
    """A copy of an array, with an unreadable page right behind its last number, or right before its first.

    place: of the argument in the call; the memory is used again by the next call
    """
    pages = -(-max(values.nbytes, 1) // PAGE)
    known = _mappings.get(place)
    if known is None or len(known) < (pages + 2) * PAGE:
        known = _mappings[place] = mmap.mmap(-1, (pages + 2) * PAGE)
        first = ctypes.addressof(ctypes.c_char.from_buffer(known))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for address in (first, first + len(known) - PAGE):
            if protect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect: a page could not be made unreadable")
    begin = len(known) - PAGE - values.nbytes if behind else PAGE
    found = np.frombuffer(known, values.dtype, values.size, begin).reshape(values.shape)
    found[...] = values
    return found


class Static:
    """The variables of a library that outlive a call: static and global ones. On Linux only."""

    def __init__(self, library: str) -> None:
        self._parts: list[tuple[int, int]] = []
        if sys.platform != "linux":
            return
        with open("/proc/self/maps", encoding="utf-8") as maps:
            starts = [int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(library)]
        data = Path(library).read_bytes()
        if not starts or data[:5] != b"\x7fELF\x02":
            return
        offset, size, count = (
            struct.unpack_from(form, data, at)[0] for form, at in (("<Q", 32), ("<H", 54), ("<H", 56))
        )
        for header in range(offset, offset + size * count, size):
            kind, flags, _, address, _, _, length = struct.unpack_from("<IIQQQQQ", data, header)
            if kind == 1 and flags & 2:  # loaded, and writable
                self._parts.append((min(starts) + address, length))

    def content(self) -> list[bytes]:
        """The bytes that the variables hold now."""
        return [ctypes.string_at(*part) for part in self._parts]


class _Counts(ctypes.Structure):
    """What glibc's mallinfo2 returns."""

    _fields_ = (("numbers", ctypes.c_size_t * 10),)


@cache
def static(library: str) -> Static:
    """The Static of a library that is loaded."""
    return Static(library)


def leaks(call: Callable[[], Any]) -> int:
    """The bytes that each of some calls leaves behind, 0 if none, or where the C library does not count them."""
    counted = getattr(ctypes.CDLL(None), "mallinfo2", None) if os.name == "posix" else None
    if counted is None:
        return 0
    counted.restype = _Counts

    def in_use() -> int:
        numbers = counted().numbers
        return int(numbers[4] + numbers[7])  # hblkhd, from mmap, and uordblks

    growth = []
    for _ in range(3):  # the first fills what malloc keeps
        before = in_use()
        for _ in range(CALLS):
            call()
        growth.append(in_use() - before)
    return max(0, min(growth[1:])) // CALLS
