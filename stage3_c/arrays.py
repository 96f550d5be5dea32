"""The data of this stage: numpy.ndarray, float32 or float64, used only as memory.

C gets an address and cannot check the memory there. So every array is brought to one form first: C-contiguous (row
after row, no gaps), aligned, in the machine's byte order. Inputs in another form are copied into this form; an `out`
in another form is refused, because the result must be in the caller's own array.

New arrays start on a multiple of 64 bytes, which is a cache line and the widest SIMD register.
"""

import ctypes
import math
from typing import Any

import numpy as np

from shared.machine.hardware import free_memory
from shared.names import check_dtype
from shared.plain_arrays import float_dtype, real_numbers, whole_labels
from shared.shapes import check_alike, check_images, check_matrix, check_vector, label_beyond

from . import library

Array = np.ndarray

ALIGNMENT = 64

LARGE = 1 << 28
"""Bytes from which on an array is asked for with care. Linux gives out more memory than there is, and ends the program
when it is used: a view of one number can have as many gigabytes as somebody cares to write."""

_FLOAT32, _FLOAT64 = np.dtype("float32"), np.dtype("float64")


def asarray(values: Any, dtype: str = "float32") -> Array:
    """Values as a C-contiguous, aligned array of 1, 2 or 4 dimensions; no copy where they already are one.

    values: nested sequences of numbers, or anything numpy.asarray takes
    dtype: "float32" or "float64"
    Raises ValueError for an empty or ragged array, another number of dimensions or an unknown dtype,
    TypeError where something is not a real number or hides behind a mask.

    >>> asarray([(1, 2), (3, 4)]).dtype
    dtype('float32')
    """
    check_dtype("asarray", dtype)
    array = real_numbers(values)
    try:
        return packed(array, np.dtype(dtype))
    except MemoryError as error:
        raise MemoryError(f"asarray: {error}") from error


def to_host(array: Array) -> Array:
    """The array as something numpy.asarray accepts: itself."""
    return array


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """A new C-contiguous array that starts on a multiple of 64 bytes; what it holds is whatever was there before.

    Raises MemoryError where it does not fit.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size >= LARGE and (free := free_memory()) is not None and size > free:
        raise MemoryError(f"there is no memory for an array of {shape} {dtype}, {size:,} bytes: {free:,} are free")
    try:
        memory = np.empty(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than an address can count
        raise MemoryError(f"there is no memory for an array of {shape} {dtype}, {size:,} bytes") from error
    start = -ctypes.addressof(_Byte.from_buffer(memory)) % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


_Byte: Any = ctypes.c_char


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """As aligned_empty, but zeros."""
    zeros = aligned_empty(shape, dtype)
    zeros.fill(0)
    return zeros


def aligned_copy(array: Array, dtype: Any) -> Array:
    """A copy of any array of numbers, in the form that C reads."""
    copy = aligned_empty(array.shape, dtype)
    with np.errstate(all="ignore"):  # a float64 beyond float32's range becomes inf, as everywhere
        _copy_in_pieces(copy, array)
    return copy


def _copy_in_pieces(copy: Array, array: Array) -> None:
    """Copy the numbers. Gigabytes take seconds, so Python hears a Ctrl-C between two pieces."""
    if copy.nbytes < LARGE:
        np.copyto(copy, array, casting="unsafe")
    elif len(copy) == 1:
        _copy_in_pieces(copy[0], array[0])
    else:
        half = len(copy) // 2
        _copy_in_pieces(copy[:half], array[:half])
        _copy_in_pieces(copy[half:], array[half:])


def packed(array: Array, dtype: np.dtype) -> Array:
    """The array in the form that C reads: itself if it is in it, else a copy."""
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array
    return aligned_copy(array, dtype)


def as_matrix(name: str, values: Any) -> Array:
    """A float32 or float64 matrix in the form that C reads: the array itself if it is one, else converted; or an
    error that names it. What is neither float32 nor float64 becomes float32."""
    array = as_floats(name, values)
    if array.ndim == 2 and array.size and array.flags.carray and array.dtype.isnative:
        return array
    check_matrix(name, array.shape)
    return _packed(name, array)


def as_images(name: str, values: Any, axes: str = "batch, channels, rows, columns") -> Array:
    """As `as_matrix`, of 4 dimensions; the error names the axes."""
    array = as_floats(name, values)
    check_images(name, array.shape, axes)
    return _packed(name, array)


def as_vector(name: str, values: Any) -> Array:
    """As `as_matrix`, of 1 dimension."""
    array = as_floats(name, values)
    check_vector(name, array.shape)
    return _packed(name, array)


def as_floats(name: str, values: Any) -> Array:
    """float32 or float64 numbers, in whatever form."""
    if type(values) is np.ndarray and values.dtype.char in "fd":
        return values
    try:
        return asarray(values, float_dtype(values))
    except (TypeError, ValueError, MemoryError) as error:
        raise type(error)(f"{name}: {error}") from error


def _packed(name: str, array: Array) -> Array:
    try:
        return packed(array, _FLOAT32 if array.dtype.char == "f" else _FLOAT64)
    except MemoryError as error:
        raise MemoryError(f"{name}: {error}") from error


def as_same_shape(function: str, **arrays: Any) -> tuple[Array, ...]:
    """All as matrices, after checking that they have one shape and one dtype."""
    matrices = {name: as_matrix(f"{function}: {name}", values) for name, values in arrays.items()}
    check_alike(function, **matrices)
    return tuple(matrices.values())


def output_like(
    function: str, out: Array | None, shape: tuple[int, ...], dtype: Any, in_place: Array | None = None, **inputs: Array
) -> Array:
    """The array to write into: `out` after checking that it fits, or a new one.

    inputs: by name, what is read while `out` is written: it must not overlap any of them
    in_place: the one input that `out` may be, all of it or not at all
    Raises ValueError where `out` has another shape or dtype or is not memory that C can write to, MemoryError where
    there is none for a new one.
    """
    if out is None:
        try:
            return aligned_empty(shape, dtype)
        except MemoryError as error:
            raise MemoryError(f"{function}: out: {error}") from error
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        received = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(f"{function}: out is {received}, expected {np.dtype(dtype)} {shape}")
    if type(out) is not np.ndarray or not out.flags.carray:
        check_writable(f"{function}: out", out)
    for name, array in inputs.items():
        if overlap(out, array) and not (array is in_place and _same_memory(out, array)):
            raise ValueError(f"{function}: out overlaps {name}, which is still being read; give it memory of its own")
    return out


def check_writable(name: str, array: Array) -> None:
    """ValueError unless the array is memory that C can write to: contiguous, aligned, not read-only, not masked."""
    if array.flags.carray and not isinstance(array, np.ma.MaskedArray):
        return
    if isinstance(array, np.ma.MaskedArray):
        problem, remedy = "is a masked array", "C would write under the mask; pass its .data"
    elif not array.flags.c_contiguous:
        problem, remedy = f"is not C-contiguous (strides {array.strides})", "pass an array that is, not such a view"
    elif not array.flags.aligned:
        problem, remedy = f"does not start on a multiple of {array.itemsize} bytes", "pass an aligned array"
    else:
        problem, remedy = "is read-only", "pass an array that may be written to"
    raise ValueError(f"{name} {problem}; {remedy}")


def overlap(a: Array, b: Array) -> bool:
    """Whether two contiguous arrays have a byte in common."""
    return np.may_share_memory(a, b)  # compares first and last bytes only, which for contiguous arrays is exact


def _same_memory(a: Array, b: Array) -> bool:
    return a is b or (a.ctypes.data == b.ctypes.data and a.nbytes == b.nbytes)


def as_labels(function: str, labels: Any, rows: int, classes: int) -> Array:
    """Labels as an int64 array, one a row and each in 0 … classes - 1, or an error that says which is not.

    Always a copy: C uses a label as an index, so no other thread may change it between the check and its use.
    """
    array = whole_labels(function, labels, rows, classes)
    try:
        copy = aligned_copy(array, np.int64)  # a uint64 too large for int64 becomes negative, and so is found below
    except MemoryError as error:
        raise MemoryError(f"{function}: labels: {error}") from error
    i = library.function("first_bad_label", _FLOAT32)(rows, classes, copy)
    if i < rows:
        raise ValueError(label_beyond(function, i, int(array[i]), classes))
    return copy
