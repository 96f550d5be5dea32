"""Convert the arguments of a launch to those of the compiled kernel.

    a device array           its memory
    a NumPy array            the array itself: numba-cuda copies it to the device and back after the launch, with the
                             same result. Only arguments that overlap in memory are copied here, too
    mapped and managed       the array itself
    numbers, records, tuples numbers keep their NumPy type; a Python int is an int64, a float a float64

If the kernel has a signature, numbers are converted to its types, and arrays must have its types. Where it has a
pointer, the address of a device array is the memory from there to the array's end, so that indices are checked.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.np.numpy_support import as_dtype

from .devicearray import (
    NOT_CONTIGUOUS,
    DeviceNDArray,
    DeviceRecord,
    SharedNDArray,
    is_contiguous,
    of_interface,
    of_pointer,
    poison,
)
from .signatures import without_pointers

CopyBack = Callable[[], None]


class Hint:
    """A host array wrapped in cuda.In, cuda.Out or cuda.InOut, which choose the directions of copying.

    value: the host array; copies_in: whether it is copied before the launch; copies_out: after the launch
    """

    copies_in = copies_out = True

    def __init__(self, value: Any) -> None:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"cuda.{type(self).__name__}: expected a NumPy array, got a {type(value).__name__}")
        self.value = value


class In(Hint):
    """The kernel reads the host array; its writes are lost."""

    copies_out = False


class Out(Hint):
    """The kernel fills the host array; the old values are not copied to the device."""

    copies_in = False


class InOut(Hint):
    """The host array is copied to the device and back, like one without a wrapper."""


class Arguments:
    """The arguments of one launch, ready for the compiled kernel.

    values: arrays, NumPy numbers and records, tuples of them
    types: Numba's type of each
    copy_back: functions to call after the launch, in order
    """

    __slots__ = ("_hosts", "copy_back", "types", "values")

    def __init__(self, given: Sequence[Any], names: Sequence[str], kernel: str) -> None:
        self.copy_back: list[CopyBack] = []
        self._hosts: list[np.ndarray] = []
        self.values = [self._converted(value, names[place], kernel) for place, value in enumerate(given)]
        if len(self._hosts) > 1:
            self._separate()
        self.types = tuple(
            [type_of(value, names[place], kernel) for place, value in enumerate(self.values)]  # a list: it is faster
        )

    def _converted(self, value: Any, name: str, kernel: str) -> Any:
        if isinstance(value, DeviceNDArray):
            return value._array
        if isinstance(value, np.ndarray):
            return self._host_array(value, name, kernel)
        if isinstance(value, bool | int | float | complex | np.generic | enum.Enum):
            return value
        if isinstance(value, DeviceRecord):
            return value._record
        if isinstance(value, Hint):
            return self._hinted(value, name, kernel)
        if isinstance(value, tuple):
            parts = [self._converted(part, f"{name}[{place}]", kernel) for place, part in enumerate(value)]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if hasattr(value, "__cuda_array_interface__"):
            return of_interface(value.__cuda_array_interface__, f"{kernel}: the argument {name!r}")._array
        raise TypeError(f"{kernel}: the argument {name!r} is a {type(value).__name__}: {_way_out(value)}")

    def _host_array(self, array: np.ndarray, name: str, kernel: str) -> np.ndarray:
        if isinstance(array, SharedNDArray):
            return array.view(np.ndarray)
        if not is_contiguous(array):
            raise ValueError(f"{kernel}: the argument {name!r}: {NOT_CONTIGUOUS}")
        plain = array if type(array) is np.ndarray else np.asarray(array)
        self._hosts.append(plain)
        return plain

    def _hinted(self, hint: Hint, name: str, kernel: str) -> np.ndarray:
        host = hint.value
        if not is_contiguous(host):
            raise ValueError(f"{kernel}: the argument {name!r}: {NOT_CONTIGUOUS}")
        device = np.array(host, order="K") if hint.copies_in else poison(np.empty_like(np.asarray(host)))
        if hint.copies_out:
            self.copy_back.append(lambda: np.copyto(host, device))
        return device

    def _separate(self) -> None:
        """Copy host arrays that overlap: on a device each argument is a copy."""
        overlapping = [
            array
            for place, array in enumerate(self._hosts)
            if any(np.may_share_memory(array, other) for i, other in enumerate(self._hosts) if i != place)
        ]
        if overlapping:
            self.values = [self._separated(value, overlapping) for value in self.values]

    def _separated(self, value: Any, overlapping: list[np.ndarray]) -> Any:
        if isinstance(value, tuple):
            parts = [self._separated(part, overlapping) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if not isinstance(value, np.ndarray) or not any(value is array for array in overlapping):
            return value
        device = np.array(value, order="K")
        if value.flags.writeable:
            self.copy_back.append(lambda: np.copyto(value, device))
        return device


def _way_out(value: Any) -> str:
    if isinstance(value, list):
        return "a kernel takes arrays, numbers and tuples; make it an array with numpy.array(), or a tuple"
    if isinstance(value, str | bytes):
        return "a kernel takes arrays, numbers and tuples, no text; pass a number that stands for it"
    if value is None:
        return "a kernel takes arrays, numbers and tuples; a function that changes its array in place returns None"
    if hasattr(value, "__array__"):
        return "pass its NumPy array: numpy.asarray() makes one"
    return "a kernel takes arrays, numbers and tuples; pass the arrays and numbers that it holds one by one"


_array_types: dict[tuple[np.dtype, int, int], Any] = {}
_scalar_types: dict[np.dtype, Any] = {}


def type_of(value: Any, name: str, kernel: str) -> Any:
    """Numba's type of an argument. Raises TypeError with its name if Numba has no type for it."""
    kind = type(value)
    if kind is np.ndarray:
        key = (value.dtype, value.ndim, value.flags.num)
        numba_type = _array_types.get(key)
        if numba_type is None:
            numba_type = _array_types[key] = _typed(value, value.dtype, name, kernel)
        return numba_type
    if kind is bool:
        return types.boolean
    if kind is float:
        return types.float64
    if kind is int:
        if -(2**63) <= value < 2**64:
            return types.int64 if value < 2**63 else types.uint64
        raise TypeError(f"{kernel}: the argument {name!r} is {value}: a kernel's integers have 64 bits")
    if isinstance(value, np.generic) and not isinstance(value, np.void):
        numba_type = _scalar_types.get(value.dtype)
        if numba_type is None:
            numba_type = _scalar_types[value.dtype] = _typed(value, value.dtype, name, kernel)
        return numba_type
    return _typed(value, getattr(value, "dtype", None), name, kernel)


def _typed(value: Any, dtype: np.dtype | None, name: str, kernel: str) -> Any:
    if dtype is not None and dtype.hasobject:
        raise TypeError(f"{kernel}: the argument {name!r} holds Python objects: give the array a dtype like float32")
    try:
        return numba.typeof(value)
    except (NumbaError, ValueError, TypeError, NotImplementedError):
        what = f"an array of dtype {dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise TypeError(
            f"{kernel}: the argument {name!r} is {what}, which no kernel can take: use arrays of numbers or of records"
        ) from None


def fitting(value: Any, wanted: Any, name: str, kernel: str) -> Any:
    """Convert a number to the type of the kernel's signature; check the type of an array.

    wanted: the Numba type in the signature. Raises TypeError if the value does not fit it.
    """
    if isinstance(wanted, types.Boolean | types.Integer | types.Float | types.Complex):
        return _number(value, wanted, name, kernel)
    if isinstance(wanted, types.BaseTuple) and isinstance(value, tuple) and len(value) == len(wanted):
        parts = [fitting(part, wanted[place], f"{name}[{place}]", kernel) for place, part in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(wanted, types.CPointer) and isinstance(value, int | np.integer):
        return of_pointer(int(value), as_dtype(wanted.dtype), f"{kernel}: the argument {name!r}")
    found = type_of(value, name, kernel)
    if found in (wanted, *without_pointers((wanted,))) or _is_array_of(value, found, wanted):
        return value
    raise TypeError(f"{kernel}: the argument {name!r} must be {wanted} as the signature says, got {found}")


def fit_unchanged(found: tuple[Any, ...], signature: tuple[Any, ...]) -> bool:
    """Whether values of these types need no conversion for a signature, whatever they are."""
    return len(found) == len(signature) and all(
        kind == wanted
        or (
            isinstance(kind, types.Array)
            and isinstance(wanted, types.Array)
            and (kind.dtype, kind.ndim) == (wanted.dtype, wanted.ndim)
            and wanted.layout in ("A", kind.layout)
        )
        for kind, wanted in zip(found, signature, strict=True)
    )


def _is_array_of(value: Any, found: Any, wanted: Any) -> bool:
    """Whether an array of type `found` has the dtype, dimensions and layout of `wanted`; A means any layout."""
    if not (isinstance(wanted, types.Array) and isinstance(found, types.Array)):
        return False
    if found.dtype != wanted.dtype or found.ndim != wanted.ndim:
        return False
    return bool(wanted.layout == "A" or value.flags[f"{wanted.layout}_CONTIGUOUS"])


def _number(value: Any, wanted: Any, name: str, kernel: str) -> Any:
    dtype = as_dtype(wanted)
    plain = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufc" else value
    accepted = {"b": bool | int, "i": bool | int, "u": bool | int, "f": bool | int | float}.get(dtype.kind)
    if not isinstance(plain, accepted or (bool | int | float | complex)):
        raise TypeError(
            f"{kernel}: the argument {name!r} must be {wanted} as the signature says, got {value!r}, "
            f"a {type(value).__name__}"
        )
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= plain <= np.iinfo(dtype).max:
        raise TypeError(f"{kernel}: the argument {name!r} is {plain}, which does not fit into the signature's {wanted}")
    return dtype.type(plain)
