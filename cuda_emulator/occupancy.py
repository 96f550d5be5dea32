"""Static occupancy: how many blocks of a kernel one multiprocessor holds at a time, from what the compiler tells.

A GPU hides the latency of memory by switching to another warp, so it wants many of them at hand. Four things run out:

    threads      each multiprocessor has a limit of resident threads, and of blocks
    registers    given to whole warps, 256 at a time, out of a quarter of the register file
    shared       given to whole blocks, 128 or 256 bytes at a time; from 8.0 on, 1 KB a block goes to the system

The limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". How they are rounded:
cuda_occupancy.h, which comes with the CUDA toolkit, and the tuning guides (the 1 KB). The shared memory is what a
multiprocessor has when the driver gives it as much as it can of the memory it shares with the L1 cache.

Full occupancy is not a goal in itself: a matrix product with its tile in registers is fastest at a quarter of it.
"""

from __future__ import annotations

from dataclasses import dataclass

Capability = tuple[int, int]
"""A GPU architecture's compute capability: (8, 0), (9, 0)."""

WARP = 32
REGISTERS = 65_536
"""32-bit registers of a multiprocessor, and the most that one block can have, on every device listed here."""

MOST_REGISTERS = 255
PARTS = 4
"""A multiprocessor's schedulers; each has a quarter of its registers and runs every fourth warp."""

REGISTER_UNIT = 256
MOST_THREADS = 1024


@dataclass(frozen=True)
class Limits:
    """What one multiprocessor holds. shared: bytes; shared_unit: they are given out in multiples of this many;
    reserved: bytes of shared memory that each block has besides its own."""

    threads: int
    blocks: int
    shared: int
    shared_unit: int
    reserved: int


LIMITS: dict[Capability, Limits] = {
    (7, 5): Limits(threads=1024, blocks=16, shared=64 * 1024, shared_unit=256, reserved=0),
    (8, 0): Limits(threads=2048, blocks=32, shared=164 * 1024, shared_unit=128, reserved=1024),
    (8, 6): Limits(threads=1536, blocks=16, shared=100 * 1024, shared_unit=128, reserved=1024),
    (8, 9): Limits(threads=1536, blocks=24, shared=100 * 1024, shared_unit=128, reserved=1024),
    (9, 0): Limits(threads=2048, blocks=32, shared=228 * 1024, shared_unit=128, reserved=1024),
    (10, 0): Limits(threads=2048, blocks=32, shared=228 * 1024, shared_unit=128, reserved=1024),
    (12, 0): Limits(threads=1536, blocks=24, shared=100 * 1024, shared_unit=128, reserved=1024),
}


@dataclass(frozen=True)
class Occupancy:
    """blocks: how many a multiprocessor holds, 0 where a launch would fail; share: of its warps, 0 to 1;
    limit: what runs out first, "threads", "blocks", "registers" or "shared"."""

    blocks: int
    share: float
    limit: str


def occupancy(capability: Capability, threads: int, registers: int, shared: int) -> Occupancy:
    """Of a kernel on one multiprocessor.

    threads: of a block; registers: of a thread; shared: bytes of a block
    Raises ValueError for a compute capability that is not in LIMITS, or a block of no or too many threads.

    >>> occupancy((9, 0), threads=256, registers=64, shared=0)
    Occupancy(blocks=4, share=0.5, limit='registers')
    """
    if capability not in LIMITS:
        known = ", ".join(f"{major}.{minor}" for major, minor in LIMITS)
        raise ValueError(f"occupancy: no limits for compute capability {capability}; known are {known}")
    if not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"occupancy: expected 1 to {MOST_THREADS} threads a block, got {threads}")
    limits = LIMITS[capability]
    warps = -(-threads // WARP)
    fits = {
        "threads": limits.threads // (warps * WARP),
        "blocks": limits.blocks,
        "registers": _by_registers(warps, registers),
        "shared": limits.shared // _rounded_up(shared + limits.reserved, limits.shared_unit)
        if shared + limits.reserved
        else limits.blocks,
    }
    limit = min(fits, key=lambda name: fits[name])
    return Occupancy(fits[limit], fits[limit] * warps * WARP / limits.threads, limit)


def _by_registers(warps: int, registers: int) -> int:
    a_warp = _rounded_up(registers * WARP, REGISTER_UNIT)
    # A launch is judged as if every scheduler had as many warps as the busiest one.
    if registers > MOST_REGISTERS or a_warp * _rounded_up(warps, PARTS) > REGISTERS:
        return 0
    return REGISTERS // PARTS // a_warp * PARTS // warps


def _rounded_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit
