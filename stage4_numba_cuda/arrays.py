"""The data of this stage: arrays in the memory of the device, float32 or float64, row after row.

A kernel gets an address and a shape, and checks neither. So every array is brought to one form before a launch: on the
device, C-contiguous, of the dtype that the kernel is compiled for. Arrays of the host are copied to the device; arrays
that are on the device already stay there. On the emulator "the device" is memory of the same process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from shared.names import check_dtype
from shared.plain_arrays import as_labels as checked_on_host
from shared.plain_arrays import float_dtype, real_numbers
from shared.shapes import DIMENSIONS, check_alike, check_images, check_matrix, check_vector

from .backend import BACKEND, cuda

Array = Any
"""A device array: numba-cuda's DeviceNDArray, or the emulator's."""


def asarray(values: Any, dtype: str = "float32") -> Array:
    """Values as a device array of 1, 2 or 4 dimensions; the same one where it is already on the device in this dtype.

    values: nested sequences of numbers, anything numpy.asarray takes, or a device array
    dtype: "float32" or "float64"
    Raises ValueError for an empty or ragged array, another number of dimensions or an unknown dtype,
    TypeError where something is not a real number or hides behind a mask.

    >>> asarray([(1, 2), (3, 4)]).shape
    (2, 2)
    """
    array = checked_array(values, dtype)
    return array if on_device(array) else cuda.to_device(array)


def checked_array(values: Any, dtype: str) -> Array:
    """What `asarray` copies to the device: a C-contiguous NumPy array of this dtype, or the device array itself.

    Raises as `asarray` does.
    """
    check_dtype("asarray", dtype)
    if on_device(values) and values.dtype == dtype and values.ndim in DIMENSIONS and values.size and is_packed(values):
        return values
    array = real_numbers(to_host(values) if on_device(values) else values)
    with np.errstate(all="ignore"):  # a float64 beyond float32's range becomes inf, as everywhere
        return np.ascontiguousarray(array, dtype)


def sent(array: Array, own: Array) -> Array:
    """The array on the device: itself where it is there, else `own`, of the same shape and dtype, with its numbers."""
    if on_device(array):
        return array
    own.copy_to_device(array)
    return own


def to_host(array: Array) -> np.ndarray:
    """A copy of the array on the host; an array that is there already is handed back as it is."""
    return array.copy_to_host() if on_device(array) else np.asarray(array)


def on_device(array: Any) -> bool:
    """Whether it is a device array: numba-cuda's, the emulator's or the simulator's, all of which carry this mark."""
    return bool(getattr(array, "__cuda_ndarray__", False))


def is_packed(array: Array) -> bool:
    """Whether its numbers lie row after row without gaps."""
    return bool(array.is_c_contiguous())


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """A new device array; what it holds is whatever was there before (NaN on the emulator)."""
    return cuda.device_array(shape, np.dtype(dtype))


def zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """A new device array of zeros."""
    return cuda.to_device(np.zeros(shape, dtype))


def copy(array: Array) -> Array:
    """A device array of its own with the same numbers."""
    fresh = empty(array.shape, array.dtype)
    fresh.copy_to_device(array)
    return fresh


def as_matrix(name: str, values: Any) -> Array:
    """A float32 or float64 matrix on the device: the array itself if it is one, else copied over; or an error that
    names it. What is neither float32 nor float64 becomes float32."""
    array = as_floats(name, values)
    check_matrix(name, array.shape)
    return array


def as_images(name: str, values: Any, axes: str = "batch, channels, rows, columns") -> Array:
    """The same for an array of 4 dimensions, which an error names by its axes."""
    array = as_floats(name, values)
    check_images(name, array.shape, axes)
    return array


def as_vector(name: str, values: Any) -> Array:
    """The same for an array of 1 dimension."""
    array = as_floats(name, values)
    check_vector(name, array.shape)
    return array


def as_floats(name: str, values: Any) -> Array:
    """The same for an array of 1, 2 or 4 dimensions."""
    try:
        return asarray(values, float_dtype(values))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error


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
    Raises ValueError where `out` is not a device array, has another shape or dtype, or overlaps an input.
    """
    if out is None:
        return empty(shape, dtype)
    if not on_device(out):
        raise ValueError(
            f"{function}: out is a {type(out).__name__} on the host; expected a device array {shape}, as asarray and "
            "the operations themselves make"
        )
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise ValueError(f"{function}: out is {out.dtype} {out.shape}, expected {np.dtype(dtype)} {tuple(shape)}")
    if not is_packed(out):
        raise ValueError(f"{function}: out is not C-contiguous (strides {out.strides}); pass an array that is")
    for name, array in inputs.items():
        if overlap(out, array) and not (array is in_place and _same_memory(out, array)):
            raise ValueError(f"{function}: out overlaps {name}, which is still being read; give it memory of its own")
    return out


def address(array: Array) -> int:
    """Where on the device the array begins."""
    if BACKEND.name == "simulator":  # whose arrays are NumPy's in a wrapper
        return int(array.ctypes.data)
    return int(array.device_ctypes_pointer.value or 0)


def overlap(a: Array, b: Array) -> bool:
    """Whether two contiguous device arrays have a byte in common."""
    if not (on_device(a) and on_device(b)):
        return False
    begin, other = address(a), address(b)
    return begin < other + b.nbytes and other < begin + a.nbytes


def _same_memory(a: Array, b: Array) -> bool:
    return a is b or (address(a) == address(b) and a.nbytes == b.nbytes)


def check_layer(function: str, layer: Any, shapes: Mapping[str, tuple[int, ...]], dtype: Any) -> None:
    """A layer's arrays are attributes, so anything may have been put in their place since it was made.

    shapes: by the name of the attribute
    Raises ValueError for what a kernel cannot use as the memory it expects, TypeError for another dtype.
    """
    for name, shape in shapes.items():
        array: Any = getattr(layer, name, None)
        if not on_device(array) or array.shape != shape or not is_packed(array):
            given = getattr(array, "shape", None) if on_device(array) else type(array).__name__
            raise ValueError(
                f"{function}: the layer's {name} was replaced by {given}, expected a C-contiguous device array "
                f"{shape}; change it in place, or make a new {type(layer).__name__}"
            )
        if array.dtype != dtype:
            raise TypeError(f"{function}: x is {dtype} but {name} is {array.dtype}; convert one of them")


def as_labels(function: str, labels: Any, rows: int, classes: int) -> Array:
    """Labels as int32 on the device, one a row and each in 0 … classes - 1, or an error that says which is not."""
    return cuda.to_device(checked_labels(function, labels, rows, classes))


def checked_labels(function: str, labels: Any, rows: int, classes: int) -> np.ndarray:
    """The same on the host: they are checked there, where they come from, for a kernel uses a label as an index."""
    host = to_host(labels) if on_device(labels) else labels
    return checked_on_host(function, host, rows, classes).astype(np.int32)


def element_count(shape: tuple[int, ...]) -> int:
    """How many numbers an array of this shape holds."""
    return math.prod(shape)
