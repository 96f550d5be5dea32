"""The file of a checkpoint, read with distrust: its form and its checksum, before an array is made.

A safetensors file is 8 bytes with the length of a header, the header, and the numbers of all tensors one after the
other. The header is JSON: the type, the shape and the place of each tensor, and under "__metadata__" texts. Here it is
read in Python, and not by the safetensors package, which takes memory for every tensor before it can be asked what the
file says. (Format: https://github.com/huggingface/safetensors)

Stored.opened    the header of a file, which says nothing impossible
Stored.damaged   whether the checksum is wrong; the file is read in pieces
Stored.tensors   the arrays
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from shared.layers import Shape, shortened
from shared.machine import regular, strict_json

MOST_BYTES = 4 * 2**30
"""Of a file: a network of 350 million parameters with its Adam. GROUNDUP_LARGEST_FILE raises it."""

MOST_DIMENSIONS = 8
CHUNK = 1 << 20

DTYPES = {"F32": "float32", "F64": "float64", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool"}
DTYPES |= {f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
"""The format's names of the types -> NumPy's."""


@dataclass(frozen=True)
class Form:
    """The type (NumPy's name), the shape and the place of a tensor: bytes from `begin` to `end` after the header."""

    dtype: str
    shape: Shape
    begin: int
    end: int


@dataclass(frozen=True)
class Stored:
    """The header of a file that is open.

    texts: of "__metadata__"; forms: of the tensors, by name; start: the place of the first tensor
    """

    file: BinaryIO
    texts: Mapping[str, str]
    forms: Mapping[str, Form]
    start: int

    @classmethod
    def opened(cls, file: BinaryIO, most: int | None = None) -> Stored:
        """Read the header. Raises ValueError for one that is damaged, or does not fit the length of the file.

        most: bytes of the header; None for those of any JSON
        """
        length = os.fstat(file.fileno()).st_size
        if length > regular.largest(MOST_BYTES):
            most = regular.largest(MOST_BYTES)
            raise ValueError(f"it has {length:,} bytes, more than the {most:,} that are read; {regular.remedy()}")
        head = file.read(8)
        header_size = int.from_bytes(head, "little")
        if len(head) < 8 or 8 + header_size > length:
            raise ValueError(f"it has {length:,} bytes, and its header would end at {8 + header_size:,}")
        if most is not None and header_size > most:
            raise ValueError(f"its header has {header_size:,} bytes, more than the {most:,} that are read for a list")
        header = strict_json.loads(_whole(file, header_size))
        if not isinstance(header, dict):
            raise ValueError(f"its header is {shortened(header)}, not an object")
        texts = header.pop("__metadata__", {})
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise ValueError(f"__metadata__: expected texts, got {shortened(texts)}")
        forms = {name: _form(name, entry) for name, entry in header.items()}
        _check_places(forms, length - 8 - header_size)
        return cls(file, texts, forms, 8 + header_size)

    def damaged(self, text: str, checksum: str) -> bool:
        """Whether the text and the tensors are not those of the checksum, see `checksum` below."""
        return digest(text, self.forms, self._pieces) != checksum

    def tensors(self) -> dict[str, np.ndarray]:
        """The arrays, all of float32 or float64. Raises ValueError if the file became shorter meanwhile."""
        found = {}
        for name, form in self.forms.items():
            array = np.empty(form.shape, form.dtype)
            content, done = array.reshape(-1).view(np.uint8), 0
            for piece in self._pieces(name):
                content[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
                done += len(piece)
            found[name] = array
        return found

    def _pieces(self, name: str) -> Iterator[bytes]:
        form = self.forms[name]
        self.file.seek(self.start + form.begin)
        for begin in range(form.begin, form.end, CHUNK):
            yield _whole(self.file, min(CHUNK, form.end - begin))


def digest(text: str, forms: Mapping[str, Any], pieces: Any) -> str:
    """The checksum, in hex, of a text and of the tensors' names, types, shapes and bytes, in the order of the names.

    forms: what has a dtype and a shape, by name; pieces: of a name, the bytes of its tensor
    """
    sha = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name in sorted(forms):
        form = forms[name]
        sha.update(f"{name} {np.dtype(form.dtype).str} {form.shape}".encode(errors="surrogatepass"))
        for piece in pieces(name):
            sha.update(piece)
    return sha.hexdigest()


def _form(name: str, told: object) -> Form:
    if not isinstance(told, dict) or set(told) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{shortened(name)}: expected dtype, shape and data_offsets, got {shortened(told)}")
    dtype, shape, places = told["dtype"], told["shape"], told["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"{shortened(name)}: dtype: expected one of {', '.join(DTYPES)}, got {shortened(dtype)}")
    if not _counts(shape) or len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"{shortened(name)}: shape: expected up to {MOST_DIMENSIONS} sizes, got {shortened(shape)}")
    if not _counts(places) or len(places) != 2 or places[0] > places[1]:
        raise ValueError(f"{shortened(name)}: data_offsets: expected a begin and an end, got {shortened(places)}")
    size = 2 if dtype == "BF16" else np.dtype(DTYPES[dtype]).itemsize
    if math.prod(shape) * size != places[1] - places[0]:
        raise ValueError(f"{shortened(name)}: expected {math.prod(shape) * size} bytes, got {places[1] - places[0]}")
    return Form(DTYPES[dtype], tuple(shape), *places)


def _counts(values: object) -> bool:
    """Whether it is a list of whole numbers of at least 0 that a file's length can have."""
    return isinstance(values, list) and all(map(strict_json.is_count, values))


def _check_places(forms: Mapping[str, Form], length: int) -> None:
    """Raise ValueError unless the tensors lie one after the other, from the header to the end of the file."""
    places = sorted((form.begin, form.end) for form in forms.values())
    for (_, end), (begin, _) in pairwise([(0, 0), *places, (length, length)]):
        if end != begin:
            raise ValueError(f"expected a tensor from byte {end:,} after the header on, got one from {begin:,} on")


def _whole(file: BinaryIO, count: int) -> bytes:
    content = file.read(count)
    if len(content) != count:
        raise ValueError("it became shorter while it was read")
    return content
