"""The arrays of a walk: which one an access goes to, and to which of its elements.

A thread may use a view of an array, as in `row = a[i]`: so the element is found by its address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..stepping.step_namespace import Namespace
from .marks import Plan
from .record import ArrayInfo, Space
from .threads import WalkThread

LINE = 64
"""Bytes: each shared array of a block starts at a multiple of this, as in the compiled kernel."""

ALIGNED = 256
"""Bytes: an allocation on a device starts at a multiple of this, and so does the copy of an argument."""


class Memory:
    """All arrays that a block's threads can access.

    infos: those that they have accessed, or that are arguments
    """

    def __init__(self, names: Sequence[str], values: Sequence[Any], plan: Plan) -> None:
        self.infos: list[ArrayInfo] = []
        self._owners: dict[int, tuple[int, np.ndarray]] = {}  # id(array): its number, and the array
        self._ranges: list[tuple[int, int, int, int]] = []  # first and last address, number, bytes of an element
        self._local: dict[Any, int] = {}
        self._shared_bytes, self._plan = 0, plan
        for name, value in zip(names, values, strict=True):
            self._argument(name, value)

    def _argument(self, name: str, value: Any) -> None:
        if isinstance(value, tuple):
            for place, part in enumerate(value):
                self._argument(f"{name}[{place}]", part)
        elif isinstance(value, np.ndarray) and value.size:
            low, _ = np.lib.array_utils.byte_bounds(value)
            self._add(name, "global", value, int(low) % ALIGNED)

    def _add(self, name: str, space: Space, array: np.ndarray, offset: int) -> int:
        low, high = np.lib.array_utils.byte_bounds(array)
        number = len(self.infos)
        before = np.array(array, order="K")
        self.infos.append(ArrayInfo(name, space, array.shape, array.dtype, offset, before))
        self._ranges.append((int(low), int(high), number, array.dtype.itemsize))
        self._owners[id(array)] = number, array
        return number

    def shared(self, name: str, array: np.ndarray) -> None:
        """Note a shared array that the block has declared, once."""
        if array.size and id(array) not in self._owners:
            self._add(name, "shared", array, self._shared_bytes)
            self._shared_bytes += -(-array.nbytes // LINE) * LINE

    def finish(self) -> None:
        """Note the values of all arrays at the end."""
        for number, array in self._owners.values():
            if self.infos[number].space != "local":
                self.infos[number].after = array

    def find(self, array: np.ndarray, name: str, index: Any, thread: WalkThread, cuda: Namespace) -> tuple[int, int]:
        """(number of the array, place of the element) of `array[index]`. The index fits; name: in the source"""
        parts = index if isinstance(index, tuple) else (index,)
        owner = self._owners.get(id(array))
        if owner is not None and array.flags.c_contiguous:
            place = 0
            for part, extent in zip(parts, array.shape, strict=False):
                part = int(part)
                place = place * extent + (part + extent if part < 0 else part)
            return owner[0], place
        address = array.__array_interface__["data"][0]
        for part, extent, stride in zip(parts, array.shape, array.strides, strict=False):
            part = int(part)
            address += (part + extent if part < 0 else part) * stride
        for low, high, number, size in self._ranges:
            if low <= address < high:
                return number, (address - low) // size
        return self._elsewhere(array, name, address, thread, cuda)

    def _elsewhere(
        self, array: np.ndarray, name: str, address: int, thread: WalkThread, cuda: Namespace
    ) -> tuple[int, int]:
        """An element of a shared array that is new, of a local array, or of a constant array."""
        sites, dynamic = cuda.memory
        for shared in (*sites.values(), dynamic):
            if shared.size and id(shared) not in self._owners and _holds(shared, address):
                # All views of the dynamic memory are one array, with the type of the first that is used.
                whole = array if shared is dynamic and array.nbytes == dynamic.nbytes else shared
                self.shared(name, whole)
                low, _ = np.lib.array_utils.byte_bounds(whole)
                return len(self.infos) - 1, (address - int(low)) // whole.dtype.itemsize
        for site, local in thread.local.items():
            if _holds(local, address):
                low, _ = np.lib.array_utils.byte_bounds(local)
                number = self._local.get(site)
                if number is None:
                    number = self._local[site] = len(self.infos)
                    named = self._plan.declared.get(site, name)
                    self.infos.append(ArrayInfo(named, "local", local.shape, local.dtype))
                self._owners[id(local)] = number, local
                return number, (address - int(low)) // local.dtype.itemsize
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, _ = np.lib.array_utils.byte_bounds(owner)
        return self._add(name, "constant", owner, 0), (address - int(low)) // owner.dtype.itemsize


def _holds(array: np.ndarray, address: int) -> bool:
    low, high = np.lib.array_utils.byte_bounds(array)
    return bool(low <= address < high)
