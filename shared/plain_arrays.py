"""Numbers as callers have them, as NumPy arrays that lose nothing on the way: the check at the edge of floors 2 to 4,
and of the data (`shared.data.door`).

NumPy forgets a mask where a list of masked rows becomes one array, and takes True for 1. Both are refused here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MASKED = "a masked array would lose its mask; fill it first, with .filled(value)"


def float_dtype(values: Any) -> str:
    """ "float64" for numbers of float64 in any order of bytes; everything else becomes "float32"."""
    return "float64" if getattr(getattr(values, "dtype", None), "char", "") == "d" else "float32"


_NUMBERS = frozenset({float, int, bool})


def plain_array(values: Any) -> np.ndarray:
    """numpy.asarray. Raises TypeError for a masked array, and for one within lists or behind `__array__`.

    Raises ValueError for rows of different lengths, as numpy.asarray does.
    """
    if type(values) is np.ndarray:
        return values
    if isinstance(values, list | tuple):
        _refuse_masked_parts(values)
        return np.asarray(values)
    array = np.asanyarray(values)  # keeps the mask of what an object's __array__ gives
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(MASKED)
    return np.asarray(array)


def _refuse_masked_parts(values: list[Any] | tuple[Any, ...]) -> None:
    """Raise TypeError for a masked array at any depth of lists."""
    for kind in set(map(type, values)) - _NUMBERS:  # a row of plain numbers is not looked at one by one
        if issubclass(kind, np.ma.MaskedArray):
            raise TypeError(MASKED)
        if issubclass(kind, list | tuple):
            for part in values:
                if type(part) is kind:
                    _refuse_masked_parts(part)
        elif hasattr(kind, "__array__") and not issubclass(kind, np.ndarray | np.generic):
            for part in values:
                if type(part) is kind:
                    plain_array(part)


def whole_labels(function: str, labels: Any, rows: int) -> np.ndarray:
    """Labels as an integer array (rows,), of whatever width; their range is not looked at.

    Raises TypeError for what is no whole number: bool, object and float labels among them, and a bool within a list.
    """
    try:
        array = plain_array(labels)
    except ValueError:
        raise ValueError(f"{function}: expected {rows} labels, one a row, got ragged rows of them") from None
    except TypeError as error:
        raise TypeError(f"{function}: labels: {error}") from error
    if array.ndim < 2 and array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{function}: labels must be whole numbers, got {type(labels).__name__} of {array.dtype}")
    if array.shape != (rows,):
        raise ValueError(f"{function}: expected {rows} labels, one a row, got shape {array.shape}")
    if isinstance(labels, list | tuple):
        for i, label in enumerate(labels):
            if isinstance(label, bool | np.bool_):
                raise TypeError(f"{function}: labels must be whole numbers, got {label!r} as labels[{i}]")
    return array
