"""Numbers as callers have them, as NumPy arrays that lose nothing on the way: the check at the edge of floors 2 to 4,
and of the data (`shared.data.accepted_data`).

NumPy forgets a mask where a list of masked rows becomes one array, and takes True for 1. Both are refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shared.shapes import DIMENSIONS, Shape, check_indices, label_beyond

MASKED = "a masked array would lose its mask; fill it first, with .filled(value)"


def float_dtype(values: object) -> str:
    """ "float64" for numbers of float64 in any order of bytes; everything else becomes "float32"."""
    return "float64" if getattr(getattr(values, "dtype", None), "char", "") == "d" else "float32"


_NUMBERS = frozenset({float, int, bool})


def plain_array(values: object) -> np.ndarray:
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


def check_held(name: str, array: np.ndarray, dtype: Any) -> None:
    """ValueError where a finite number of the array would become infinite in this dtype."""
    if np.can_cast(array.dtype, dtype):
        return
    with np.errstate(all="ignore"):
        for number in (array.min(), array.max()):
            if np.isfinite(number) and not np.isfinite(number.astype(dtype)):
                raise ValueError(f"{name}: expected numbers that {np.dtype(dtype)} holds, got {number:.6g}")


def check_changeable(running: Mapping[str, Any]) -> None:
    """Training changes the running statistics in place: they must be arrays that may be written to."""
    for name, array in running.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(f"batch_norm: {name}: expected an array to change in place, got {type(array).__name__}")
        if array.dtype.char not in "fd":
            raise TypeError(f"batch_norm: {name}: expected float32 or float64 to change in place, got {array.dtype}")
        if not array.flags.writeable:
            raise ValueError(f"batch_norm: {name} is read-only; pass an array that may be written to")


def real_numbers(values: object) -> np.ndarray:
    """The values as an array of 1, 2 or 4 dimensions, of any dtype of real numbers: what a stage's `asarray` takes.

    Raises ValueError for an empty or ragged array or another number of dimensions, TypeError where something is not a
    real number, has more than 64 bits or hides behind a mask.
    """
    try:
        array = plain_array(values)
    except ValueError as error:
        raise ValueError("asarray: expected rows of equal length, got ragged ones") from error
    except TypeError as error:
        raise TypeError(f"asarray: {error}") from error
    if array.dtype.kind not in "fiub":
        hint = (
            ": something in it is no number, or has more than 64 bits"
            if isinstance(values, list) and array.dtype == object
            else ""
        )
        raise TypeError(f"asarray: expected real numbers, got {type(values).__name__} of {array.dtype}{hint}")
    if array.ndim not in DIMENSIONS:
        raise ValueError(f"asarray: expected 1, 2 or 4 dimensions, got {array.ndim}")
    if array.size == 0:
        raise ValueError(f"asarray: expected at least one value, got shape {array.shape}")
    return array


def whole_indices(function: str, indices: object, expected: Shape, input_shape: Shape) -> np.ndarray:
    """The indices of a pool as an integer array of the expected shape, that of grad_output; no range is checked."""
    expected_kind = f"{function}: indices must be whole numbers, as max_pool2d returned them"
    try:
        array = plain_array(indices)
    except ValueError as error:
        raise TypeError(f"{expected_kind}, got ragged ones") from error
    if array.dtype.kind not in "iu":
        raise TypeError(f"{expected_kind}, got {array.dtype}")
    check_indices(function, array.shape, expected, input_shape)
    return array


def as_indices(function: str, indices: object, expected: Shape, input_shape: Shape) -> np.ndarray:
    """The indices of a max pooling as int64. Raises ValueError if one lies outside its channel, and names it."""
    array, last = whole_indices(function, indices, expected, input_shape), input_shape[2] * input_shape[3] - 1
    if array.min() < 0 or array.max() > last:
        raise ValueError(index_beyond(function, array, int(np.argmax((array < 0) | (array > last))), last))
    return array.astype(np.int64, copy=False)


def index_beyond(function: str, indices: np.ndarray, bad: int, last: int) -> str:
    """The sentence about an index, number `bad` of all, that is not within its channel."""
    place = ", ".join(str(int(number)) for number in np.unravel_index(bad, indices.shape))
    return f"{function}: indices[{place}] is {indices.flat[bad]}, expected 0 to {last}"


def as_labels(function: str, labels: object, rows: int, classes: int) -> np.ndarray:
    """Labels as an integer array, one a row and each in 0 … classes - 1, or an error that says which is not."""
    array = whole_labels(function, labels, rows, classes)
    if array.min() < 0 or array.max() >= classes:
        i = int(np.argmax((array < 0) | (array >= classes)))
        raise ValueError(label_beyond(function, i, int(array[i]), classes))
    return array


def whole_labels(function: str, labels: object, rows: int, classes: int) -> np.ndarray:
    """Labels as an integer array (rows,), of whatever width; their range is not looked at if they fit in 64 bits.

    Raises TypeError for what is no whole number: bool, object and float labels among them, and a bool within a list.
    """
    try:
        array = plain_array(labels)
    except ValueError:
        raise ValueError(f"{function}: expected {rows} labels, one a row, got ragged rows of them") from None
    except TypeError as error:
        raise TypeError(f"{function}: labels: {error}") from error
    if array.ndim < 2 and array.size and array.dtype.kind not in "iu":
        if isinstance(labels, list | tuple) and all(type(label) is int for label in labels):
            # NumPy has made objects or float64 of them, because no dtype of whole numbers holds them all
            i = next(i for i, label in enumerate(labels) if not 0 <= label < classes)
            raise ValueError(label_beyond(function, i, labels[i], classes))
        raise TypeError(f"{function}: labels must be whole numbers, got {type(labels).__name__} of {array.dtype}")
    if array.shape != (rows,):
        raise ValueError(f"{function}: expected {rows} labels, one a row, got shape {array.shape}")
    if isinstance(labels, list | tuple):
        for i, label in enumerate(labels):
            if isinstance(label, bool | np.bool_):
                raise TypeError(f"{function}: labels must be whole numbers, got {label!r} as labels[{i}]")
    return array
