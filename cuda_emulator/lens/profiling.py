"""Profile a launch: trace a few blocks, analyse the events, and add occupancy and roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..runtime.dispatcher import Kernel
from ..runtime.tracing import MOST_EVENTS, trace_launch
from ..trace import Trace
from .analysis import analyse
from .devices import DEFAULT, Device
from .devices import device as find_device
from .profile import Profile
from .roofline import estimate
from .static import static

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass
class ShownProfile(Profile):
    """A profile that shows itself: print() writes the terminal's report, and a notebook displays the page.

    Its views are imported when they are asked for: a check or a page of the studio needs the numbers alone.
    """

    def __str__(self) -> str:
        from . import terminal

        return terminal.text(self)

    def _repr_html_(self) -> str:
        from . import page

        return page.embedded(self)

    def __rich__(self) -> RenderableType:
        from . import terminal

        return terminal.report(self)


def profile(
    kernel: Any,
    griddim: Any,
    blockdim: Any,
    *arguments: Any,
    sharedmem: int = 0,
    blocks: int | Sequence[int] | None = None,
    device: str = DEFAULT,
    most_events: int = MOST_EVENTS,
) -> ShownProfile:
    """The profile of kernel[griddim, blockdim](*arguments), from a few of its blocks.

    kernel: made by @cuda.jit on the emulator; arguments: those of the launch, which are never changed
    sharedmem: bytes of dynamic shared memory
    blocks: the number of blocks to trace, spread over the grid; or their linear numbers, x fastest; None for four, or
        as many of these as fit
    device: the name of a device in devices.py, for occupancy and roofline
    most_events: the largest number of events of the trace, 40 bytes each
    Raises TypeError for a value that is no kernel, KernelError for a kernel that cannot be compiled or launched,
    ValueError for wrong arguments, an unknown device, or a trace that would be too large. An error while the kernel
    runs, such as an index out of bounds, is in the profile: `fault`.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"profile: expected a kernel made by the emulator's @cuda.jit, got {kernel!r}, a {type(kernel).__name__}"
        )
    chosen = find_device(device)
    trace = trace_launch(kernel, griddim, blockdim, arguments, sharedmem, blocks, most_events)
    return profile_of_trace(trace, kernel, arguments, chosen)


def profile_of_trace(trace: Trace, kernel: Kernel, arguments: Sequence[Any], chosen: Device) -> ShownProfile:
    """The profile of a traced launch. kernel, arguments: those of the launch; chosen: for occupancy and roofline"""
    found = ShownProfile(**vars(analyse(trace)))
    types = kernel._arguments(tuple(arguments)).types
    shared_bytes = trace.shared_bytes + trace.dynamic_bytes
    found.static = static(kernel, types, trace.threads, shared_bytes, chosen, trace.grid_blocks)
    found.roofline = estimate(found, chosen)
    return found
