"""Arrays side by side in one piece of memory, so that one launch goes over the numbers of all of them.

An optimizer does the same to every number of every parameter. For thirty parameter arrays it would need thirty
launches, most of them for a bias of a few numbers. Side by side the parameters are one vector. The gradients and the
optimizer's buffers are such vectors, too, with the same places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .arrays import Array, zeros
from .launch import divided

ALIGNED = 64
"""Arrays begin at a multiple of so many numbers, because wide loads need 16 bytes, and a cache's lines have 128."""


class Packed:
    """New arrays of these shapes, of zeros. flat: all their memory, a vector; what lies between two arrays is read and
    written with them, and means nothing. arrays: views of it, in the order of the shapes"""

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: Any) -> None:
        starts = [0]
        for shape in shapes:
            starts.append(starts[-1] + divided(math.prod(shape), ALIGNED) * ALIGNED)
        self.flat = zeros((max(1, starts[-1]),), dtype)
        self.arrays: list[Array] = [
            self.flat[start : start + math.prod(shape)].reshape(*shape)
            for start, shape in zip(starts, shapes, strict=False)
        ]

    def holds(self, arrays: Sequence[Array]) -> bool:
        """Whether these are its arrays, all of them and in their order."""
        return len(arrays) == len(self.arrays) and all(a is b for a, b in zip(arrays, self.arrays, strict=True))
