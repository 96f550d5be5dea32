"""The IDX file format: how MNIST is stored, and how to read a file without trusting its header.

An IDX file is one array, big-endian throughout:

    bytes 0-1           0 0
    byte  2             the element type: 08 uint8, 09 int8, 0B int16, 0C int32, 0D float32, 0E float64
    byte  3             the number of dimensions, n
    4 bytes each        the n dimensions, unsigned
    the rest            the elements, last dimension fastest

The format is described at http://yann.lecun.com/exdb/mnist/. Files usually come gzipped; gzip adds a
checksum of the content, so that a flipped bit is noticed. A header can claim any size at all, so memory
is only ever taken for bytes that have arrived, and a limit says how many may arrive: a small .gz can hold gigabytes.
"""

from __future__ import annotations

import hashlib
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from shared.data.accepted_data import DataError
from shared.data.inflating import Inflated
from shared.layers import times
from shared.machine import regular

ELEMENT_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""The format's type byte -> NumPy's name for the same thing, big-endian."""

MAX_DIMENSIONS = 32
"""The most dimensions that an array can have in the oldest NumPy supported."""

GZIP_MAGIC = b"\x1f\x8b"
CHUNK = 1 << 20

MOST_BYTES = 1 << 28
"""Of the content of a file of which it is not known how long it should be: five times the largest file of MNIST."""


class Stream(Protocol):
    """What a file's content is read from."""

    def read(self, count: int, /) -> bytes:
        """Between 1 and `count` bytes, or none at the end."""


def read_idx(path: str | PathLike[str], most: int = MOST_BYTES) -> np.ndarray:
    """The array in an IDX file, gzipped or not (told apart by content, not by name).

    most: bytes of content that are read; the environment variable GROUNDUP_LARGEST_FILE raises it
    Returns an array of the file's shape and element type, in this machine's byte order, writable.
    Raises DataError, naming the file, where it is missing or unreadable, is not IDX, is shorter or longer
    than its header says, has a dimension of zero, fails gzip's checksum, or has more than `most` bytes.
    """
    path = Path(path)
    most = regular.largest(most)
    with open_content(path) as stream:
        dtype, shape = _read_header(stream, path)
        expected = math.prod(shape) * dtype.itemsize
        if 4 + 4 * len(shape) + expected > most:
            raise _too_long(path, f"its header says {times(shape)} elements of {dtype.name}, {expected:,} bytes", most)
        # One byte more than expected: it shows surplus, and reaching the end is what makes gzip verify its checksum.
        data = _read_up_to(stream, expected + 1)
    if len(data) != expected:
        came = f"only {len(data):,}" if len(data) < expected else "more"
        raise DataError(
            f"{path}: its header says {times(shape)} elements of {dtype.name}, {expected:,} bytes, "
            f"but {came} follow; the file is damaged, get a fresh copy"
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def idx_bytes(array: np.ndarray) -> bytes:
    """The content of an IDX file that holds this array: what `read_idx` reads again.

    array: uint8 of any shape without a 0 in it. Raises ValueError for another one.
    """
    if array.dtype != np.uint8 or array.ndim == 0 or array.size == 0:
        raise ValueError(f"idx_bytes: expected an array of uint8 with something in it, got {array.dtype} {array.shape}")
    return idx_header(array) + array.tobytes()


def idx_header(array: np.ndarray) -> bytes:
    """What stands before the elements of an array of uint8 in an IDX file."""
    return bytes([0, 0, 0x08, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)


def content_sha256(path: str | PathLike[str], most: int = MOST_BYTES) -> str:
    """The SHA-256, in hex, of the file's content: of what is inside, where the file is gzipped.

    The same data gzipped by two programs differs as a file and agrees in content. most: as for `read_idx`
    Raises DataError as `read_idx` does for a file that is missing, unreadable, damaged gzip or too long.
    """
    path, most = Path(path), regular.largest(most)
    digest, came = hashlib.sha256(), 0
    with open_content(path) as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
            came += len(chunk)
            if came > most:
                raise _too_long(path, "its content has more", most)
    return digest.hexdigest()


@contextmanager
def open_content(path: Path) -> Iterator[Stream]:
    """The file opened for reading bytes, inflated on the way where it is gzipped.

    Errors while opening and while reading inside the `with` block become DataError.
    """
    try:
        with regular.opened(path) as file:
            magic = file.read(2)
            file.seek(0, os.SEEK_SET)
            yield Inflated(file) if magic == GZIP_MAGIC else file
    except FileNotFoundError:
        raise DataError(f"{path}: expected an IDX file, but there is no such file") from None
    except (EOFError, zlib.error) as error:
        raise DataError(f"{path}: the gzip data is damaged ({error}); get a fresh copy") from error
    except regular.NoRegularFile as error:
        raise DataError(str(error)) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


def _too_long(path: Path, why: str, most: int) -> DataError:
    return DataError(f"{path}: expected at most {most:,} bytes, but {why}; get a fresh copy, or {regular.remedy()}")


def _read_header(stream: Stream, path: Path) -> tuple[np.dtype[Any], tuple[int, ...]]:
    magic = _read_up_to(stream, 4)
    if len(magic) < 4:
        raise DataError(f"{path}: expected an IDX file, which starts with 4 bytes, but it holds {len(magic)}")
    type_code, dimensions = magic[2], magic[3]
    if magic[:2] != b"\0\0" or type_code not in ELEMENT_TYPES or not 1 <= dimensions <= MAX_DIMENSIONS:
        raise DataError(
            f"{path}: not an IDX file: expected it to start with 00 00, an element type (08 to 0E) and a number "
            f"of dimensions (1 to {MAX_DIMENSIONS}), but it starts with {magic.hex(' ')}"
        )
    sizes = _read_up_to(stream, 4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise DataError(
            f"{path}: expected {dimensions} dimensions of 4 bytes each after the first 4 bytes, "
            f"but only {len(sizes)} bytes follow; the file is cut short, get a fresh copy"
        )
    shape = tuple(int(size) for size in np.frombuffer(sizes, ">u4"))
    if 0 in shape:
        raise DataError(f"{path}: expected an array with something in it, but its header says {times(shape)}")
    return np.dtype(ELEMENT_TYPES[type_code]), shape


def _read_up_to(stream: Stream, count: int) -> bytearray:
    """At most count bytes, in chunks: a large count costs nothing where the bytes do not exist."""
    data = bytearray()
    while len(data) < count:
        chunk = stream.read(min(CHUNK, count - len(data)))
        if not chunk:
            break
        data += chunk
    return data
