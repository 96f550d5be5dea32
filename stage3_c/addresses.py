"""Arrays whose addresses C is told once for many calls: whether they are still the same, and apart from each other."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from .arrays import Array


class KnownArrays:
    """Arrays that were found good, by name. They are kept, so that no other array can get their addresses."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays
        self._known = [(array, array.shape, array.dtype) for array in arrays.values()]

    def are(self, arrays: Sequence[Any]) -> bool:
        """Whether these are the very same objects, of the same shape and dtype, and C may still write to them."""
        if len(arrays) != len(self._known):
            return False
        for array, (known, shape, dtype) in zip(arrays, self._known, strict=True):
            if array is not known or array.shape != shape or array.dtype is not dtype or not array.flags.carray:
                return False
        return True


def claimed(arrays: Mapping[str, Array]) -> list[tuple[int, int]]:
    """Begin and end of each array's memory. Raises ValueError where two share any: C is promised that they do not."""
    ranges = sorted((a.ctypes.data, a.ctypes.data + a.nbytes, name) for name, a in arrays.items())
    for (_, end, name), (begin, _, other) in pairwise(ranges):
        if begin < end:
            raise ValueError(f"Network: {name} overlaps {other}; give each memory of its own")
    return [(begin, end) for begin, end, _ in ranges]


def copied_if_overlapping(taken: Sequence[tuple[int, int]], array: Array) -> Array:
    """The array, or a copy of it where it lies in memory that is taken: what `claimed` returned, in order."""
    begin = array.ctypes.data
    before = bisect_left(taken, (begin + array.nbytes,))  # so many begin before the array ends
    return array.copy() if before > 0 and taken[before - 1][1] > begin else array
