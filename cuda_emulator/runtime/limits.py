"""The limits of a launch. The emulator refuses every launch that a device would refuse.

The limits are those of every NVIDIA GPU since compute capability 3.0 (CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability"). The CPU could run a block of 5,000 threads, but no GPU can.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from .places import launch_error

WARP_SIZE = 32
MAX_THREADS = 1024
"""Threads in one block."""

MAX_BLOCK = (1024, 1024, 64)
"""Threads of a block along x, y and z."""

MAX_GRID = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z."""

SHARED_BYTES = 48 * 1024
"""Shared memory of one block: static and dynamic together."""

MOST_SHARED_BYTES = 99 * 1024
"""The same where the driver was asked to allow more: what every device since compute capability 8.0 has."""

MULTIPROCESSORS, BLOCKS_EACH, THREADS_EACH, SHARED_EACH = 40, 16, 1024, 64 * 1024
"""Of a T4, the GPU of compute capability 7.5 that most people meet: its multiprocessors, and the blocks, threads and
bytes of shared memory that each holds at the same time. They decide how many blocks can meet at a barrier across the
grid, so that the emulator gives the same answer on every machine."""

Extent = tuple[int, int, int]


def launch_shape(grid: Any, block: Any, kernel: str) -> tuple[Extent, Extent]:
    """Check grid and block, and return each as three ints.

    grid, block: an int, or a tuple of one to three ints
    kernel: the kernel's name, for messages
    Raises TypeError for a value that is no whole number, KernelError for a launch that no device accepts.
    """
    blocks, threads = _extent(grid, "grid", kernel), _extent(block, "block", kernel)
    _check(
        blocks, MAX_GRID, "grid", "blocks", "use fewer blocks, and let each thread loop over several elements", kernel
    )
    _check(threads, MAX_BLOCK, "block", "threads", "use smaller blocks and more of them", kernel)
    in_block = threads[0] * threads[1] * threads[2]
    if in_block > MAX_THREADS:
        shape = " x ".join(map(str, _trimmed(threads)))
        raise launch_error(
            f"{kernel}: a block of {shape}{f' = {in_block}' if 'x' in shape else ''} threads is more than the "
            f"{MAX_THREADS} that a device allows: use smaller blocks and more of them",
            kernel,
        )
    return blocks, threads


def _extent(value: Any, what: str, kernel: str) -> Extent:
    parts = value if isinstance(value, tuple) else (value,)
    if value is None or not 1 <= len(parts) <= 3:
        raise launch_error(f"{kernel}: the {what} must be an int or a tuple of 1 to 3 ints, got {value!r}", kernel)
    for part in parts:
        if not isinstance(part, Integral) or isinstance(part, bool):
            hint = "; divide with //, not with /" if isinstance(part, float) else ""
            raise TypeError(
                f"{kernel}: the {what} must be an int or a tuple of 1 to 3 ints, got {part!r}, "
                f"a {type(part).__name__}{hint}"
            )
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


def _check(extent: Extent, most: Extent, what: str, units: str, way_out: str, kernel: str) -> None:
    for axis, length, limit in zip("xyz", extent, most, strict=True):
        if length < 1:
            raise launch_error(
                f"{kernel}: the {what} must have at least 1 along {axis}, got {extent}; where there is nothing to "
                "compute, do not launch",
                kernel,
            )
        if length > limit:
            raise launch_error(
                f"{kernel}: a {what} of {length} {units} along {axis} is more than the {limit} that a device allows: "
                f"{way_out}",
                kernel,
            )


def _trimmed(extent: Extent) -> tuple[int, ...]:
    """The extent without trailing ones: (256, 1, 1) becomes (256,)."""
    x, y, z = extent
    return (x, y, z) if z != 1 else (x, y) if y != 1 else (x,)


def dynamic_bytes(value: Any, kernel: str, most: int = SHARED_BYTES) -> int:
    """Check the fourth number of a launch: bytes of dynamic shared memory, of which this kernel may have `most`."""
    size = _bytes(value, kernel)
    shared_memory(0, size, kernel, most)
    return size


def allowed_bytes(value: Any, kernel: str) -> int:
    """Check the bytes of shared memory that a kernel's launches shall be allowed."""
    size = _bytes(value, kernel)
    if size > MOST_SHARED_BYTES:
        raise launch_error(
            f"{kernel}: its launches cannot be allowed {size} bytes of shared memory for a block; {MOST_SHARED_BYTES} "
            "(99 KB) is what every device since compute capability 8.0 has: use smaller tiles, or a narrower type",
            kernel,
        )
    return size


def _bytes(value: Any, kernel: str) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(
            f"{kernel}: the dynamic shared memory must be a whole number of bytes, got {value!r}, "
            f"a {type(value).__name__}"
        )
    if value < 0:
        raise launch_error(f"{kernel}: the dynamic shared memory must be at least 0 bytes, got {value}", kernel)
    return int(value)


def shared_memory(static: int, dynamic: int, kernel: str, most: int = SHARED_BYTES) -> None:
    """Refuse a block whose shared arrays (`static` bytes) and dynamic shared memory exceed the limit together."""
    if static + dynamic > most:
        parts = f"{static} bytes in shared arrays and {dynamic} dynamic ones" if static else f"{dynamic} bytes, dynamic"
        raise launch_error(
            f"{kernel}: a block may use {most} bytes of shared memory, this launch needs "
            f"{static + dynamic} ({parts}): use smaller tiles, or a narrower type",
            kernel,
        )


def most_together(threads: int, shared: int) -> int:
    """How many blocks of so many threads and bytes of shared memory the emulated device holds at the same time."""
    warps = -(-max(threads, 1) // WARP_SIZE)
    each = min(BLOCKS_EACH, THREADS_EACH // (warps * WARP_SIZE), SHARED_EACH // max(shared, 1))
    return MULTIPROCESSORS * each


def together(grid: Extent, block: Extent, shared: int, kernel: str) -> None:
    """Refuse a grid whose blocks meet at barriers, and that the device cannot hold at the same time."""
    blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    most = most_together(threads, shared)
    if blocks > most:
        way_out = (
            "Use fewer blocks, and let each loop over several parts of the work: "
            "kernel.overloads[types].max_cooperative_grid_blocks(threads, bytes) says how many fit"
            if most
            else f"Use smaller tiles, or a narrower type: each of its multiprocessors has {SHARED_EACH} bytes"
        )
        raise launch_error(
            f"{kernel} calls cuda.cg.this_grid().sync(), so all blocks of its grid must run at the same time, and this "
            f"device holds {most} blocks of {threads} threads and {shared} bytes of shared memory; this launch has "
            f"{blocks}. {way_out}",
            kernel,
        )
