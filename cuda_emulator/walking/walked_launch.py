"""A launch whose blocks can be walked through, each from the arrays as they were before the launch.

    launched = Launched(kernel, grid, block, arguments)
    walk = launched.walk(number=3)

No other block runs: a block that needs the result of another one finds the array as it was before the launch.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ..runtime import limits
from ..runtime.dispatcher import Kernel
from ..runtime.tracing import Copies
from .record import Walk
from .walk import MOST_STOPS, Block, Groups, walk_block


class Launched:
    """The launch kernel[grid, block, 0, dynamic_bytes](*arguments). The arguments keep their values.

    Raises KernelError, TypeError or ValueError for a launch that no device accepts.
    """

    def __init__(self, kernel: Kernel, grid: Any, block: Any, arguments: Sequence[Any], dynamic_bytes: int = 0) -> None:
        configured = kernel.configure(grid, block, 0, dynamic_bytes)
        self.kernel = kernel
        self.grid: limits.Extent = configured.griddim
        self.block: limits.Extent = configured.blockdim
        self.dynamic_bytes = configured.sharedmem
        self._given = tuple(arguments)
        taken = kernel._arguments(self._given)
        kernel._freeze_globals(taken.types)
        self._values = taken.values

    @property
    def blocks(self) -> int:
        """The number of blocks of the grid."""
        x, y, z = self.grid
        return x * y * z

    def fresh(self) -> list[Any]:
        """The arguments, with arrays that are copies."""
        return Copies(self._given, self._values, self.kernel.parameters).values

    def values(self) -> dict[str, Any]:
        """{parameter: its value}, the arrays as they are before the launch."""
        return dict(zip(self.kernel.parameters, self._values, strict=True))

    def walk(
        self,
        number: int = 0,
        removed: frozenset[tuple[str, int]] = frozenset(),
        groups: Groups | None = None,
        watched: Container[int] | None = None,
        most: int = MOST_STOPS,
    ) -> Walk:
        """Walk through a block. The arguments are those of walk_block.

        Raises ValueError for a block that the grid does not have.
        """
        if not 0 <= number < self.blocks:
            raise ValueError(f"block: expected a number from 0 to {self.blocks - 1}, got {number}")
        kernel, shape = self.kernel, (self.grid, self.block)
        block = Block(kernel.source, kernel.parameters, *shape, number, self.dynamic_bytes, kernel.most_shared)
        return walk_block(block, self.fresh(), removed=removed, groups=groups, watched=watched, most=most)
