"""Arrays on the emulated device. They have their own memory, so that a forgotten copy_to_host() is noticed.

A kernel changes the device's copy; the host's array does not change until it is copied back, as on a GPU. Operations
that numba-cuda does not support (a transpose of 3 dimensions, a reshape that needs a copy) are refused here, too.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numba
import numpy as np

from ..poison import poison_value
from ..settings import current
from .streams import Stream, checked_stream, observe
from .unwritten import forget, note_fresh, note_written

NOT_CONTIGUOUS = (
    "expected an array whose elements lie side by side in memory, got one with gaps (a slice with a step, or a part of "
    "the columns): copy it with numpy.ascontiguousarray() first"
)

NOT_HERE = {
    "gpu_data": "it is the GPU's memory, and there is no GPU; copy_to_host() gives the values",
    "T": "only a 2-dimensional one has it",
    "device_ctypes_pointer": "it is an address in a GPU's memory, and there is no GPU; copy_to_host() gives the values",
}
"""Attributes that numba-cuda's device arrays have and the emulator's do not, each with the reason."""


class DeviceNDArray:
    """An array of the emulated device, made by cuda.to_device(), cuda.device_array() and similar functions.

    array: the device's memory as a NumPy array; it is not copied
    stream: the stream of operations without a stream argument

    Its `__cuda_array_interface__` is for other code on the emulator: the address is one of this process's memory.
    """

    __cuda_ndarray__ = True

    def __init__(self, array: np.ndarray, stream: Stream | int = 0) -> None:
        self._array = array
        self.stream = stream

    shape = property(lambda self: self._array.shape, doc="Its lengths, one for each dimension.")
    strides = property(lambda self: self._array.strides, doc="Bytes from one element to the next, per dimension.")
    dtype = property(lambda self: self._array.dtype, doc="The NumPy type of its elements.")
    size = property(lambda self: self._array.size, doc="The number of its elements.")
    ndim = property(lambda self: self._array.ndim, doc="The number of its dimensions.")
    nbytes = property(lambda self: self._array.nbytes, doc="Bytes of its elements.")
    alloc_size = property(lambda self: self._array.nbytes, doc="Bytes that were allocated for it.")

    def __getattr__(self, name: str) -> Any:
        reason = NOT_HERE.get(name)
        raise AttributeError(f"a device array has no {name!r}" + (f": {reason}" if reason else ""), name=name, obj=self)

    @property
    def T(self) -> DeviceNDArray:
        """A transposed copy. Raises AttributeError unless it has 2 dimensions, so that hasattr() works."""
        if self.ndim != 2:
            raise AttributeError(NOT_HERE["T"])
        return self.transpose()

    @cached_property
    def numba_type(self) -> Any:
        """Numba's type for it, as a kernel's argument."""
        return numba.typeof(self._array)

    @property
    def device_ctypes_pointer(self) -> ctypes.c_void_p:
        """The address of its first element, in the memory of this process."""
        return ctypes.c_void_p(self._array.ctypes.data)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface. cuda.as_cuda_array() and kernels take it back (`of_interface`)."""
        base = self._array
        while isinstance(base.base, np.ndarray):
            base = base.base
        _handed_out[id(base)] = base
        return {
            "shape": self.shape,
            "strides": None if self.is_c_contiguous() else self.strides,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "data": (self._array.ctypes.data if self.size else 0, not self._array.flags.writeable),
            "stream": None,
            "version": 3,
        }

    @property
    def flags(self) -> dict[str, bool]:
        """Whether its elements are contiguous in memory: C by rows, F by columns."""
        return {"C_CONTIGUOUS": self.is_c_contiguous(), "F_CONTIGUOUS": self.is_f_contiguous()}

    def is_c_contiguous(self) -> bool:
        """Whether its elements are contiguous in memory, row by row."""
        return bool(self._array.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        """Whether its elements are contiguous in memory, column by column."""
        return bool(self._array.flags.f_contiguous)

    def __repr__(self) -> str:
        return f"<DeviceNDArray of shape {self.shape} and dtype {self.dtype}; copy_to_host() shows its values>"

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a device array without dimensions has no length")
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a device array cannot become a NumPy array without a copy: leave copy=False out")
        return np.array(self._array, dtype=dtype)

    def bind(self, stream: Stream | int = 0) -> DeviceNDArray:
        """The same memory as an array with another stream."""
        return self._view(self._array, stream)

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Stream | int = 0) -> np.ndarray:
        """Copy its values to `ary`, or to a new NumPy array, and return that array.

        Raises TypeError if the dtypes differ, ValueError if shape or strides differ, NotImplementedError for an array
        with negative strides.
        """
        on = checked_stream(stream)
        if any(step < 0 for step in self.strides):
            raise NotImplementedError(
                "a device array with negative strides cannot be copied to the host: reverse the array on the host"
            )
        if ary is None:
            observe("copy to host", on, self._array, None)
            return self._array.copy(order="K")
        _check_alike(self._array, ary, "copy_to_host")
        observe("copy to host", on, self._array, ary)
        ary[...] = self._array.reshape(ary.shape)
        return ary

    def copy_to_device(self, ary: Any, stream: Stream | int = 0) -> None:
        """Copy the values of `ary`, a host array or a device array of the same shape and dtype."""
        on = checked_stream(stream)
        source = ary._array if isinstance(ary, DeviceNDArray) else np.asarray(ary)
        if not source.size:
            return
        for array in (self._array, source) if isinstance(ary, DeviceNDArray) else (self._array,):
            if not is_contiguous(array):
                raise ValueError(f"copy_to_device: {NOT_CONTIGUOUS}")
        if not isinstance(ary, DeviceNDArray):
            source = np.asarray(source, order="C" if self.is_c_contiguous() else "F")
        _check_alike(self._array, source, "copy_to_device")
        observe("copy to device", on, self._array, source, isinstance(ary, DeviceNDArray))
        self._array[...] = source.reshape(self.shape)
        note_written(self._array)

    def reshape(self, *newshape: Any, order: str = "C") -> DeviceNDArray:
        """The same memory with another shape. Raises NotImplementedError if it needs a copy."""
        shape = newshape[0] if len(newshape) == 1 and isinstance(newshape[0], tuple | list) else newshape
        return self._view(self._without_copy(self._array.reshape(shape, order=order)))  # type: ignore[call-overload]

    def ravel(self, order: str = "C", stream: Stream | int = 0) -> DeviceNDArray:
        """The same memory in one dimension. Raises NotImplementedError if it needs a copy."""
        return self._view(self._without_copy(self._array.ravel(order)), stream)  # type: ignore[arg-type]

    def _without_copy(self, array: np.ndarray) -> np.ndarray:
        if array.size and not np.may_share_memory(array, self._array):
            raise NotImplementedError("this would need a copy of the device array: make it on the host, or in a kernel")
        return array

    def squeeze(self, axis: Any = None, stream: Stream | int = 0) -> DeviceNDArray:
        """The same memory without the axes of length 1."""
        return self._view(self._array.squeeze(axis), stream)

    def transpose(self, axes: Any = None) -> DeviceNDArray:
        """A copy with rows and columns exchanged. Raises NotImplementedError unless it has 2 dimensions."""
        if axes is not None and tuple(axes) == tuple(range(self.ndim)):
            return self
        if self.ndim != 2:
            raise NotImplementedError(f"only 2-dimensional device arrays can be transposed, this one has {self.ndim}")
        if axes is not None and set(axes) != {0, 1}:
            raise ValueError(f"transpose: expected the axes 0 and 1 in some order, got {axes!r}")
        return self._view(self._array.T.copy())

    def view(self, dtype: Any) -> DeviceNDArray:
        """The same bytes read as another type."""
        return self._view(self._array.view(np.dtype(dtype)))

    def split(self, section: int, stream: Stream | int = 0) -> Iterator[DeviceNDArray]:
        """Views of `section` elements each, the last one shorter. The array must have 1 dimension and no gaps."""
        if self.ndim != 1 or not self.is_c_contiguous():
            raise ValueError("split: expected a 1-dimensional device array without gaps")
        for part in range(math.ceil(self.size / section)):
            yield self._view(self._array[part * section : (part + 1) * section], stream)

    def __getitem__(self, item: Any) -> Any:
        return self.getitem(item)

    def getitem(self, item: Any, stream: Stream | int = 0) -> Any:
        """A view for slices, a NumPy scalar for one element, a DeviceRecord for one record."""
        found = self._array[_plain_index(item)]
        if isinstance(found, np.ndarray):
            return self._view(found, stream)
        return DeviceRecord(found) if isinstance(found, np.void) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        self.setitem(key, value)

    def setitem(self, key: Any, value: Any, stream: Stream | int = 0) -> None:
        """Set the part that `key` selects to a scalar, or to the values of a host or device array."""
        checked_stream(stream)
        index = _plain_index(key)
        values = value._array if isinstance(value, DeviceNDArray) else np.asarray(value)
        target = np.ndim(self._array[index])
        if values.ndim > target:
            raise ValueError(f"cannot put an array of {values.ndim} dimensions into a part that has {target}")
        self._array[index] = values
        parts = index if isinstance(index, tuple) else (index,)
        note_written(self._array[parts if ... in parts else (*parts, ...)])

    def _view(self, array: np.ndarray, stream: Stream | int = 0) -> DeviceNDArray:
        return DeviceNDArray(array, stream or self.stream)


_handed_out: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()
"""The memory whose addresses were given away, as long as it is there."""


def of_interface(interface: dict[str, Any], where: str) -> DeviceNDArray:
    """The device array that a __cuda_array_interface__ describes: the same memory.

    Raises TypeError if the address is none that the emulator has given away: it may be a GPU's.
    """
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if dtype.kind == "V" and len(interface.get("descr", ())) > 1:
        dtype = np.dtype(interface["descr"])
    strides = interface.get("strides") or np.empty(shape, np.dtype("V1")).strides
    strides = strides if interface.get("strides") else tuple(step * dtype.itemsize for step in strides)
    if not np.prod(shape):
        return DeviceNDArray(np.empty(shape, dtype))
    address, readonly = interface["data"]
    size = sum((length - 1) * step for length, step in zip(shape, strides, strict=True)) + dtype.itemsize
    if min(strides, default=0) >= 0:
        memory = _memory_at(address, size)
        if memory is not None:
            array: np.ndarray = np.ndarray(shape, dtype, memory, strides=strides)
            array.flags.writeable = not readonly
            return DeviceNDArray(array)
    raise TypeError(
        f"{where}: expected an array of the emulated device, got the address {address:#x} of other memory, perhaps a "
        "GPU's, which the emulator does not see: bring the array to the host as a NumPy array"
    )


def of_pointer(address: int, dtype: np.dtype, where: str) -> np.ndarray:
    """The memory from an address on, to the end of its array: what a kernel sees behind a pointer.

    Raises TypeError if the address is none that the emulator has given away.
    """
    memory = _memory_at(address)
    if memory is None:
        raise TypeError(
            f"{where}: expected the address of a device array, as its __cuda_array_interface__ has it, got {address:#x}"
        )
    return np.frombuffer(memory, dtype, len(memory) // dtype.itemsize)


def _memory_at(address: int, size: int | None = None) -> Any:
    """`size` bytes of an array whose address was given away, or all from there to its end; None if it is no such array.

    The array stays as long as they do.
    """
    for base in list(_handed_out.values()):
        first, end = np.lib.array_utils.byte_bounds(base)
        if first <= address < end and address + (size or 0) <= end:
            memory: Any = (ctypes.c_char * (end - address if size is None else size)).from_address(address)
            memory.owner = base
            return memory
    return None


class DeviceRecord:
    """One record (a NumPy structure) in the device's memory.

    record: a numpy.void, a view of that memory
    """

    def __init__(self, record: np.void) -> None:
        self._record = record
        self.dtype = record.dtype

    def __getitem__(self, field: str) -> Any:
        found = self._record[field]
        if isinstance(found, np.ndarray):
            return DeviceNDArray(found)
        return DeviceRecord(found) if isinstance(found, np.void) else found

    def __setitem__(self, field: str, value: Any) -> None:
        self._record[field] = value
        forget((self._record,))

    def copy_to_host(self, ary: Any = None, stream: Stream | int = 0) -> Any:
        """Its fields as a NumPy record."""
        checked_stream(stream)
        if ary is None:
            return self._record.copy()
        ary[...] = self._record
        return ary

    def __repr__(self) -> str:
        return f"<DeviceRecord of {self.dtype}; copy_to_host() shows its values>"


class SharedNDArray(np.ndarray):
    """A NumPy array that host and device share: mapped or managed memory. A kernel changes it in place."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """That of a device array with the same memory."""
        return DeviceNDArray(self.view(np.ndarray)).__cuda_array_interface__

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Stream | int = 0) -> np.ndarray:
        """Copy its values to `ary` or to a new NumPy array, and return that array."""
        return DeviceNDArray(self.view(np.ndarray)).copy_to_host(ary, stream)

    def copy_to_device(self, ary: Any, stream: Stream | int = 0) -> None:
        """Copy the values of `ary`."""
        DeviceNDArray(self.view(np.ndarray)).copy_to_device(ary, stream)


def is_contiguous(array: np.ndarray) -> bool:
    """Whether the elements are contiguous by rows or by columns; dimensions with stride 0 are ignored."""
    if 0 in array.strides and array.size:
        array = array[tuple(0 if step == 0 else slice(None) for step in array.strides)]
    return bool(array.flags.c_contiguous or array.flags.f_contiguous)


def poison(array: np.ndarray) -> np.ndarray:
    """Fill fresh memory with poison values (poison.py), and note that nobody wrote it, unless bounds checks are off."""
    if current().bounds and array.size:
        array.fill(poison_value(array.dtype))
        note_fresh(array)
    return array


def _check_alike(device: np.ndarray, host: np.ndarray, where: str) -> None:
    """Refuse a copy between arrays that differ in dtype, shape or layout; axes of length 1 are ignored."""
    if device.dtype != host.dtype:
        raise TypeError(f"{where}: expected an array of dtype {device.dtype}, got {host.dtype}")
    if device.squeeze().shape != host.squeeze().shape:
        raise ValueError(f"{where}: expected an array of shape {device.shape}, got {host.shape}")
    if device.size and device.squeeze().strides != host.squeeze().strides:
        raise ValueError(
            f"{where}: expected an array with the strides {device.strides}, got {host.strides}: the same shape, "
            "but another layout in memory"
        )


def _plain_index(item: Any) -> Any:
    """The index, if it consists of ints, slices and `...`; raises TypeError for any other."""
    for part in item if isinstance(item, tuple) else (item,):
        if not isinstance(part, int | np.integer | slice | type(...)) or isinstance(part, bool):
            raise TypeError(
                f"a device array is indexed by ints and slices, got {part!r}, a {type(part).__name__}: "
                "copy_to_host() first, or select in a kernel"
            )
    return item
