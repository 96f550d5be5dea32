"""JSON of a stranger, read with limits: what a text may make of the memory is known before it is read.

    loads(text)                     the value, or a ValueError that says what is wrong
    load(path)                      the same of a regular file, with its name in the error

A list without anything in it takes three characters in a file and sixty bytes in the memory. So the values are counted
before they are made. A number that is none in JSON (NaN, Infinity) and a text nested deeper than Python's stack are
errors as any other.
"""

from __future__ import annotations

import json
import os
from typing import Any, NoReturn

from shared.machine import regular

MOST_BYTES = 32 * 2**20
"""Of a text. The longest that groundup writes itself are results of some megabytes."""

MOST_VALUES = 1_000_000
"""Values in a text: a training of 90,000 epochs has as many in its checkpoint."""


def loads(text: str | bytes, most_values: int = MOST_VALUES) -> Any:
    """The value of a text. Raises ValueError, with no name in its sentence, for anything but JSON within the limits."""
    if len(text) > regular.largest(MOST_BYTES):
        raise ValueError(f"{len(text):,} characters are more than the {regular.largest(MOST_BYTES):,} that are read")
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    values = sum(map(text.count, ",[{"))
    if values > most_values:
        raise ValueError(f"about {values:,} values are more than the {most_values:,} that are read")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("lists or objects are nested too deep") from None


def load(path: str | os.PathLike[str]) -> Any:
    """The value in a file. Raises ValueError with the file's name; OSError if it is no regular file, or unreadable."""
    text = regular.read(path, MOST_BYTES)
    try:
        return loads(text)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")
