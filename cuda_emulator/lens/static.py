"""The occupancy of a launch: block size, shared memory and registers limit the warps on a multiprocessor, and the
number of blocks limits the multiprocessors that have work.

The number of registers is from a compiler for GPUs, if a package offers one (hooks.py; groundup asks numba-cuda's).
Without it, block size and shared memory give an upper limit of the occupancy.
"""

from __future__ import annotations

from typing import Any

from ..hooks import RegistersUnknown, extensions
from ..occupancy import occupancy
from .devices import Device
from .profile import Static

NO_LIMIT = 1
"""A number of registers that does not limit the occupancy."""


def static(
    kernel: Any,
    types: tuple[Any, ...],
    threads: int,
    shared_bytes: int,
    device: Device,
    grid_blocks: int | None = None,
) -> Static:
    """The occupancy of a launch of the kernel on that device.

    kernel: a kernel of the emulator; types: Numba's types of its arguments; threads: threads of a block
    shared_bytes: static and dynamic shared memory of a block
    grid_blocks: the number of blocks; None for as many as the device can hold
    Raises ValueError for a block without threads, or with too many.
    """
    registers, spilled = None, None
    try:
        ask = extensions().registers
        if ask is None:
            raise RegistersUnknown("no installed package compiles kernels for a GPU; groundup does")
        usage = ask(kernel, types, device.capability)
        registers, spilled = usage.registers, usage.spills + usage.stack
        source = f"compiled by numba-cuda for compute capability {_dotted(device)}"
    except RegistersUnknown as reason:
        source = f"an upper limit from block size and shared memory; the number of registers is unknown: {reason}"
    estimated = occupancy(device.capability, threads, NO_LIMIT if registers is None else registers, shared_bytes)
    held = estimated.blocks * device.multiprocessors
    launched = held if grid_blocks is None else grid_blocks
    waves = launched / held if held else 0.0
    few = 0 < waves < 1
    return Static(
        capability=_dotted(device),
        registers=registers,
        spilled_bytes=spilled,
        shared_bytes=shared_bytes,
        threads=threads,
        blocks=estimated.blocks,
        occupancy=estimated.share * min(waves, 1.0),
        limit="grid" if few else "shared memory" if estimated.limit == "shared" else estimated.limit,
        source=source,
        allowed=estimated.share,
        multiprocessors=device.multiprocessors,
        busy=min(launched, device.multiprocessors),
        waves=waves,
    )


def _dotted(device: Device) -> str:
    return ".".join(map(str, device.capability))
