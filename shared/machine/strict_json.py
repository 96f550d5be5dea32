"""JSON of a stranger, read with limits: what a text may make of the memory is known before it is read.

    loads(text)                     the value, or a ValueError that says what is wrong
    is_count(value), is_number      whether a value is what a reader may count with

A list without anything in it takes three characters in a file and sixty bytes in the memory. So the values are counted
before they are made. A number that is none in JSON (NaN, Infinity), one that no float holds (1e999, four hundred
digits), a name that an object has twice, and a text nested deeper than Python's stack are errors as any other.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any, NoReturn

from shared.machine import regular

MOST_BYTES = 32 * 2**20
"""Of a text. The longest that groundup writes itself are results of some megabytes."""

MOST_VALUES = 1_000_000
"""Values in a text: a training of 90,000 epochs has as many in its checkpoint."""


MOST_DIGITS = 308
"""Of a whole number: as many as every float has room for."""


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
        return json.loads(
            text, parse_constant=_no_constant, parse_float=_float, parse_int=_int, object_pairs_hook=_object
        )
    except RecursionError:
        raise ValueError("lists or objects are nested too deep") from None


def is_count(value: object) -> bool:
    """Whether a value of JSON is a whole number of at least 0, and one that can be counted to."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def is_number(value: object) -> bool:
    """Whether a value of JSON is a finite number that a float holds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{_shortened(digits)} is a larger number than a float holds")
    return value


def _int(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"{_shortened(digits)}, a number of {len(digits):,} digits, is larger than a float holds")
    return int(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the name {_shortened(twice)!r} stands twice in one object")
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:17]}..."


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")
