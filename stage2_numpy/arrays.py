"""The data of this stage: numpy.ndarray, float32 or float64, and buffers that are used again.

NumPy makes a new array for every result unless it is given one to write into. In a training step, which
does the same on every batch, that is wasted work: `Scratch` hands out the same memory each time, and
every function on this stage takes `out=`.
"""

import math
from collections.abc import Callable, Hashable
from functools import wraps
from threading import local
from typing import Any, ParamSpec, TypeVar

import numpy as np

from shared.names import check_dtype
from shared.plain_arrays import float_dtype, real_numbers
from shared.shapes import check_alike, check_images, check_matrix, check_vector

Array = np.ndarray


P = ParamSpec("P")
R = TypeVar("R")


class _Quiet(local):
    now = False  # of each thread, as NumPy's own setting


_quiet = _Quiet()


def ieee(function: Callable[P, R]) -> Callable[P, R]:
    """Too large a number becomes inf and too small a one 0, as on every stage, even after numpy.seterr(all="raise").

    The outermost of such functions sets this for all that it calls: doing so for each costs a tenth of a small step.
    """

    @wraps(function)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> R:
        if _quiet.now:
            return function(*args, **kwargs)
        _quiet.now = True
        try:
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)
        finally:
            _quiet.now = False

    return quiet


def asarray(values: Any, dtype: str = "float32") -> Array:
    """Values as a C-contiguous array of 1, 2 or 4 dimensions; no copy where they already are one.

    values: nested sequences of numbers, or anything numpy.asarray takes
    dtype: "float32" or "float64"
    Raises ValueError for an empty or ragged array, another number of dimensions or an unknown dtype,
    TypeError where something is not a real number or hides behind a mask.

    >>> asarray([(1, 2), (3, 4)]).dtype
    dtype('float32')
    """
    check_dtype("asarray", dtype)
    array = real_numbers(values)
    return array if array.dtype == dtype and array.flags.carray else _converted(array, dtype)


@ieee  # a float64 beyond float32's range becomes inf
def _converted(array: Array, dtype: str) -> Array:
    return np.ascontiguousarray(array, dtype=dtype)


def to_host(array: Array) -> Array:
    """The array as something numpy.asarray accepts: itself."""
    return array


class Scratch:
    """Named memory that is used again: scratch("z", (64, 128), dtype) is the same memory on every call.

    It grows when a larger array is asked for and never shrinks, so the short last batch of an epoch is a view of
    the memory of the full ones. What it holds is whatever was there before: write before you read.
    """

    def __init__(self) -> None:
        self._memory: dict[tuple[Hashable, np.dtype[Any]], Array] = {}
        self._latest: dict[Hashable, Array] = {}

    def __call__(self, name: Hashable, shape: tuple[int, ...], dtype: Any) -> Array:
        latest = self._latest.get(name)
        if latest is not None and latest.shape == shape and latest.dtype == dtype:
            return latest
        size = math.prod(shape)
        key = (name, np.dtype(dtype))
        memory = self._memory.get(key)
        if memory is None or memory.size < size:
            memory = self._memory[key] = np.empty(size, dtype)
        view = self._latest[name] = memory[:size].reshape(shape)
        return view


def borrow(scratch: Scratch | None, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Memory from the scratch where there is one, new memory where there is not."""
    return np.empty(shape, dtype) if scratch is None else scratch(name, shape, dtype)


def as_matrix(name: str, values: Any) -> Array:
    """A float32 or float64 matrix: the array itself if it is one, else converted; or an error that names it."""
    array = as_floats(name, values)
    check_matrix(name, array.shape)
    return array


def as_images(name: str, values: Any, axes: str = "batch, channels, rows, columns") -> Array:
    """The same for 4 dimensions, of which the error names the axes."""
    array = as_floats(name, values)
    check_images(name, array.shape, axes)
    return array


def as_vector(name: str, values: Any) -> Array:
    """The same for 1 dimension."""
    array = as_floats(name, values)
    check_vector(name, array.shape)
    return array


def as_same_shape(function: str, **arrays: Any) -> tuple[Array, ...]:
    """All as matrices, after checking that they have one shape and one dtype."""
    matrices = {name: as_matrix(f"{function}: {name}", values) for name, values in arrays.items()}
    check_alike(function, **matrices)
    return tuple(matrices.values())


def output_like(function: str, out: Array | None, shape: tuple[int, ...], dtype: Any, **inputs: Array) -> Array:
    """The array to write into: `out` after checking that it fits, or a new one.

    inputs: by name, what is read while `out` is written: it must not overlap any of them
    """
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        given = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(f"{function}: out is {given}, expected {np.dtype(dtype)} {shape}")
    for name, array in inputs.items():
        # The first of the two is fast; only the second one knows that columns of one matrix lie beside each other.
        if np.may_share_memory(out, array) and np.shares_memory(out, array):
            raise ValueError(f"{function}: out overlaps {name}, which is still being read; give it memory of its own")
    return out


def as_floats(name: str, values: Any) -> Array:
    """A float32 or float64 array of any dimensions: the array itself if it is one, else converted; or an error."""
    if type(values) is np.ndarray and values.dtype.char in "fd" and values.dtype.isnative:
        return values
    try:
        return asarray(values, float_dtype(values))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error
