"""What generated kernels call: compiled functions, imported by every generated source with one line.

    from cuda_emulator.helpers import *

Nothing here holds an address or anything else of this process: kernels that use it are kept in a disk cache.

    memory          checked indices, a thread's own memory, masks and barriers
    atomics         read, change and write one cell, with no other thread in between
    bits            single instructions that Python has no word for
    warps, lanes    what the 32 lanes of a warp do together; the facts of one warp as 32-bit numbers
    status          how running code reports what went wrong
    trace           the events of a traced launch
"""

from . import atomics, bits, memory, status, trace, warps
from .atomics import *  # noqa: F403
from .bits import *  # noqa: F403
from .memory import *  # noqa: F403
from .status import *  # noqa: F403
from .trace import *  # noqa: F403
from .warps import *  # noqa: F403

__all__ = [*atomics.__all__, *bits.__all__, *memory.__all__, *status.__all__, *trace.__all__, *warps.__all__]
