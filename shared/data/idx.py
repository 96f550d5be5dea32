"""The IDX file format: how MNIST is stored, and how to read a file without trusting its header.

An IDX file is one array, big-endian throughout:

    bytes 0-1           0 0
    byte  2             the element type: 08 uint8, 09 int8, 0B int16, 0C int32, 0D float32, 0E float64
    byte  3             the number of dimensions, n
    4 bytes each        the n dimensions, unsigned
    the rest            the elements, last dimension fastest

The format is described at http://yann.lecun.com/exdb/mnist/. Files usually come gzipped; gzip adds a
checksum of the content, so that a flipped bit is noticed. A header can claim any size at all, so memory
is only ever taken for bytes that have arrived.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

ELEMENT_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""The format's type byte -> NumPy's name for the same thing, big-endian."""

MAX_DIMENSIONS = 32
"""The most dimensions that an array can have in the oldest NumPy supported."""

GZIP_MAGIC = b"\x1f\x8b"
CHUNK = 1 << 20


class DataError(ValueError):
    """A data file is missing, damaged or not what it should be; the message names it and says what to do."""


def read_idx(path: str | PathLike[str]) -> np.ndarray:
    """The array in an IDX file, gzipped or not (told apart by content, not by name).

    Returns an array of the file's shape and element type, in this machine's byte order, writable.
    Raises DataError, naming the file, where it is missing or unreadable, is not IDX, is shorter or longer
    than its header says, has a dimension of zero, or fails gzip's checksum.
    """
    path = Path(path)
    with open_content(path) as stream:
        dtype, shape = _read_header(stream, path)
        expected = math.prod(shape) * dtype.itemsize
        # One byte more than expected: it shows surplus, and reaching the end is what makes gzip verify its checksum.
        data = _read_up_to(stream, expected + 1)
    if len(data) != expected:
        came = f"only {len(data):,}" if len(data) < expected else "more"
        raise DataError(
            f"{path}: its header says {_times(shape)} elements of {dtype.name}, {expected:,} bytes, "
            f"but {came} follow; the file is damaged, get a fresh copy"
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def content_sha256(path: str | PathLike[str]) -> str:
    """The SHA-256, in hex, of the file's content: of what is inside, where the file is gzipped.

    The same data gzipped by two programs differs as a file and agrees in content.
    Raises DataError as `read_idx` does for a file that is missing, unreadable or damaged gzip.
    """
    with open_content(Path(path)) as stream:
        # A GzipFile reads as any binary file does; the type stubs are narrower than file_digest's needs.
        return hashlib.file_digest(cast(Any, stream), "sha256").hexdigest()


@contextmanager
def open_content(path: Path) -> Iterator[IO[bytes]]:
    """The file opened for reading bytes, inflated on the way where it is gzipped.

    Errors while opening and while reading inside the `with` block become DataError.
    """
    try:
        with open(path, "rb") as file:
            if file.peek(2)[:2] == GZIP_MAGIC:
                with gzip.GzipFile(fileobj=file) as inflated:
                    yield cast(IO[bytes], inflated)
            else:
                yield file
    except FileNotFoundError:
        raise DataError(f"{path}: expected an IDX file, but there is no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip data is damaged ({error}); get a fresh copy") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


def _read_header(stream: IO[bytes], path: Path) -> tuple[np.dtype[Any], tuple[int, ...]]:
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
        raise DataError(f"{path}: expected an array with something in it, but its header says {_times(shape)}")
    return np.dtype(ELEMENT_TYPES[type_code]), shape


def _read_up_to(stream: IO[bytes], count: int) -> bytearray:
    """At most count bytes, in chunks: a large count costs nothing where the bytes do not exist."""
    data = bytearray()
    while len(data) < count:
        chunk = stream.read(min(CHUNK, count - len(data)))
        if not chunk:
            break
        data += chunk
    return data


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
