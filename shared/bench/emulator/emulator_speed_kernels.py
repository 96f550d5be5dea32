"""The kernels that emulator_speed times: ordinary numba-cuda, so that Numba's simulator can run the same source.

Import it after emulator.install(), or in a process with NUMBA_ENABLE_CUDASIM=1: `from numba import cuda` then means the
one or the other.
"""

from __future__ import annotations

from typing import Any

from numba import cuda, float32


def tiled_matmul(tile: int) -> Any:
    """The kernel that computes c = a @ b, all float32, in blocks of tile x tile threads. Any shapes."""

    @cuda.jit
    def tiled(a, b, c):  # type: ignore[no-untyped-def]
        tile_a = cuda.shared.array((tile, tile), float32)
        tile_b = cuda.shared.array((tile, tile), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = float32(0)
        for start in range(0, a.shape[1], tile):
            tile_a[ty, tx] = a[row, start + tx] if row < a.shape[0] and start + tx < a.shape[1] else float32(0)
            tile_b[ty, tx] = b[start + ty, column] if start + ty < b.shape[0] and column < b.shape[1] else float32(0)
            cuda.syncthreads()
            for k in range(tile):
                total += tile_a[ty, k] * tile_b[k, tx]
            cuda.syncthreads()
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = total

    return tiled


@cuda.jit
def add(a, b, c):  # type: ignore[no-untyped-def]
    """c = a + b, element by element: so little work that what is timed is the launch."""
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]
