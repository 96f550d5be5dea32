"""What limits how many warps live on a multiprocessor, known without a run: block size, shared memory, registers.

Registers come from numba-cuda's compiler, where it is installed (registers.py). Without it the other two still tell
something: the most that the occupancy can be.
"""

from __future__ import annotations

from typing import Any

from groundup.compiling.occupancy import occupancy
from groundup.lens.devices import Device
from groundup.lens.profile import Static
from groundup.lens.registers import RegistersUnknown, registers_of

NO_LIMIT = 1
"""Registers of a thread that never run out."""


def static(kernel: Any, types: tuple[Any, ...], threads: int, shared_bytes: int, device: Device) -> Static:
    """The occupancy of the kernel on that device.

    kernel: of the emulator; types: Numba's types of its arguments; threads: of a block
    shared_bytes: of a block, static and dynamic together
    Raises ValueError for a block of no or too many threads.
    """
    registers, spilled = None, None
    try:
        usage = registers_of(kernel, types, device.capability)
        registers, spilled = usage.registers, usage.spills + usage.stack
        source = f"compiled by numba-cuda for compute capability {_dotted(device)}"
    except RegistersUnknown as reason:
        source = f"from block size and shared memory alone, so the most it can be; registers are unknown: {reason}"
    found = occupancy(device.capability, threads, NO_LIMIT if registers is None else registers, shared_bytes)
    return Static(
        capability=_dotted(device),
        registers=registers,
        spilled_bytes=spilled,
        shared_bytes=shared_bytes,
        threads=threads,
        blocks=found.blocks,
        occupancy=found.share,
        limit="shared memory" if found.limit == "shared" else found.limit,
        source=source,
    )


def _dotted(device: Device) -> str:
    return ".".join(map(str, device.capability))
