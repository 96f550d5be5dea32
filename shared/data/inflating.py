"""A gzip file read in pieces: a few bytes can become many gigabytes, and a reader must be able to stop.

    Inflated(file).read(count)    up to so many bytes of the content, none at its end

The zlib module does the work, and with `wbits` for gzip it reads the header and checks the checksum, too. Python's own
gzip module reads a header byte by byte, so that one of many megabytes takes many seconds.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO

CHUNK = 1 << 18

GZIP = zlib.MAX_WBITS | 16
"""The format for `zlib.decompressobj`: deflated data between gzip's header and checksum."""

MOST_MEMBERS = 10_000
"""A gzip file may be several, one after the other; parallel packers make one for each block of the content."""


class Inflated:
    """The content of a gzip file. Raises zlib.error for damaged data, EOFError if the file is cut short."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._member = zlib.decompressobj(GZIP)
        self._members = 1
        self._waiting = b""  # read from the file, and not inflated yet

    def read(self, count: int) -> bytes:
        """Between 1 and `count` bytes, or none at the end of the content. count: at least 1"""
        while True:
            if self._member.eof and not self._next_member():
                return b""
            arrived = self._waiting or self._file.read(CHUNK)
            data = self._member.decompress(arrived, count)
            self._waiting = self._member.unconsumed_tail
            if data:
                return data
            if not arrived and not self._member.eof:
                raise EOFError("it ends before its content does")

    def _next_member(self) -> bool:
        """Begin the next of several; False at the end of the file. Zeros after the last one are padding."""
        rest = self._member.unused_data
        while not (rest := rest.lstrip(b"\0")):
            if not (rest := self._file.read(CHUNK)):
                return False
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise zlib.error(f"it has more than {MOST_MEMBERS:,} parts")
        self._member, self._waiting = zlib.decompressobj(GZIP), rest
        return True
