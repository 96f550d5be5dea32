"""Functions that make arrays: cuda.to_device, cuda.device_array, and pinned, mapped and managed memory of the host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from .devicearray import NOT_CONTIGUOUS, DeviceNDArray, DeviceRecord, SharedNDArray, is_contiguous, of_interface, poison
from .streams import Stream, checked_stream


def to_device(
    obj: Any, stream: Stream | int = 0, copy: bool = True, to: DeviceNDArray | None = None
) -> DeviceNDArray | DeviceRecord:
    """A copy of `obj` on the device, in the array `to` if it is given.

    obj: an array (or a value that numpy.asarray accepts), or a record; a device array is returned unchanged
    copy: False for memory with the same shape and dtype, without the values
    Raises ValueError for an array with gaps, TypeError for Python objects.
    """
    checked_stream(stream)
    if to is not None:
        if copy:
            to.copy_to_device(obj, stream)
        return to
    if isinstance(obj, DeviceNDArray | DeviceRecord):
        return obj
    if isinstance(obj, np.void) and obj.dtype.names:
        return DeviceRecord(obj.copy())
    array = np.asarray(obj)
    if array.dtype.hasobject:
        raise TypeError(
            f"to_device: expected numbers, got {_described(obj)}: a device cannot hold Python objects; "
            "give it a NumPy array with a dtype like float32"
        )
    if not is_contiguous(array):
        raise ValueError(f"to_device: {NOT_CONTIGUOUS}")
    return DeviceNDArray(array.copy(order="K") if copy else poison(np.empty_like(array)), stream)


def _described(obj: Any) -> str:
    return f"an array of dtype {obj.dtype}" if isinstance(obj, np.ndarray) else f"a {type(obj).__name__}"


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Stream | int = 0
) -> DeviceNDArray:
    """New memory on the device, filled with poison values (NaN in floats), since a GPU's holds arbitrary values.

    shape: an int or a tuple of ints; strides: in bytes, in place of an order; order: "C" by rows, "F" by columns
    """
    checked_stream(stream)
    return DeviceNDArray(poison(_empty(shape, dtype, strides, order)), stream)


def device_array_like(ary: Any, stream: Stream | int = 0) -> DeviceNDArray:
    """New memory on the device with the shape, dtype and order of `ary`."""
    return DeviceNDArray(poison(np.empty_like(_as_array(ary))), stream)


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C") -> np.ndarray:
    """Host memory that the system may not move. Here it is an ordinary NumPy array; kernels treat it like one."""
    return _empty(shape, dtype, strides, order)


def pinned_array_like(ary: Any) -> np.ndarray:
    """Pinned host memory with the shape, dtype and order of `ary`."""
    return np.empty_like(_as_array(ary))


def mapped_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: Stream | int = 0,
    portable: bool = False,
    wc: bool = False,
) -> np.ndarray:
    """Host memory that kernels use in place: host and device see every change at once."""
    checked_stream(stream)
    return _empty(shape, dtype, strides, order).view(SharedNDArray)


def mapped_array_like(ary: Any, stream: Stream | int = 0, portable: bool = False, wc: bool = False) -> np.ndarray:
    """Mapped memory with the shape, dtype and order of `ary`."""
    checked_stream(stream)
    return np.empty_like(_as_array(ary)).view(SharedNDArray)


def managed_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: Stream | int = 0,
    attach_global: bool = True,
) -> np.ndarray:
    """Memory that moves between host and device as needed: both see every change."""
    checked_stream(stream)
    return _empty(shape, dtype, strides, order).view(SharedNDArray)


@contextlib.contextmanager
def pinned(*arylist: np.ndarray) -> Iterator[None]:
    """Pin host arrays for the `with`. On a device that makes copies faster; here it has no effect."""
    for array in arylist:
        _must_be_host_array(array, "pinned")
    yield


@contextlib.contextmanager
def mapped(*arylist: np.ndarray, stream: Stream | int = 0) -> Iterator[Any]:
    """Device arrays that share the memory of host arrays, for the `with`: one for one host array, else a list."""
    checked_stream(stream)
    for array in arylist:
        _must_be_host_array(array, "mapped")
    views = [DeviceNDArray(array, stream) for array in arylist]
    yield views[0] if len(views) == 1 else views


def is_cuda_array(obj: Any) -> bool:
    """Whether `obj` is an array of the emulated device, or has the interface of a GPU's array."""
    return isinstance(obj, DeviceNDArray) or hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceNDArray:
    """The device array itself, or one of the same memory for an object with a __cuda_array_interface__.

    Raises TypeError for others, and for the memory of a GPU, which the emulator cannot read.
    """
    if isinstance(obj, DeviceNDArray):
        return obj
    if hasattr(obj, "__cuda_array_interface__"):
        return of_interface(obj.__cuda_array_interface__, "as_cuda_array")
    raise TypeError(
        f"as_cuda_array: expected an array of the emulated device, got a {type(obj).__name__}: "
        "bring it to the host and call cuda.to_device()"
    )


def from_cuda_array_interface(desc: dict[str, Any], owner: Any = None, sync: bool = True) -> DeviceNDArray:
    """The device array that an interface describes. Raises TypeError for the memory of a GPU."""
    return of_interface(desc, "from_cuda_array_interface")


def _must_be_host_array(array: Any, where: str) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{where}: expected NumPy arrays, got a {type(array).__name__}")


def _as_array(ary: Any) -> np.ndarray:
    return ary._array if isinstance(ary, DeviceNDArray) else np.asarray(ary)


def _empty(shape: Any, dtype: Any, strides: Any, order: str) -> np.ndarray:
    lengths = shape if isinstance(shape, tuple | list) else (shape,)
    for length in lengths:
        if not isinstance(length, Integral) or length < 0:
            raise TypeError(f"shape: expected an int or a tuple of ints of at least 0, got {shape!r}")
    if order not in ("C", "F"):
        raise ValueError(f"order: expected 'C' (by rows) or 'F' (by columns), got {order!r}")
    lengths = tuple(map(int, lengths))
    if strides is None:
        return np.empty(lengths, dtype, order)  # type: ignore[call-overload]
    steps = (strides,) if isinstance(strides, Integral) else tuple(strides)
    if len(steps) != len(lengths):
        raise ValueError(f"strides: expected {len(lengths)}, one for each dimension, got {len(steps)}")
    kind = np.dtype(dtype)
    last = sum((length - 1) * step for length, step in zip(lengths, steps, strict=True)) if 0 not in lengths else 0
    return np.ndarray(lengths, kind, np.empty(last + kind.itemsize, np.uint8), 0, steps)
