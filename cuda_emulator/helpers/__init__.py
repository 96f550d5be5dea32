"""Compiled functions that generated kernels call; each generated source imports those that it uses.

    from cuda_emulator.helpers import *

No function here depends on an address or other data of this process: kernels that use them are cached on disk.

    elements        elements of arrays, with checked indices
    memory          a thread's own memory, masks and barriers
    atomics         read, change and write one array element without interruption
    half            float16 for Numba's CPU target
    bits            device instructions without an operator in Python
    warps, lanes    operations of the 32 lanes of a warp; the state of one warp as 32-bit masks
    whole_warps     the same of a warp whose lanes all take part, in vector instructions
    status          the report of an error in running code
    variables       variables that may have no value yet
    trace           the events of a traced launch
    linking         the decorators of the functions in generated source, and of the helpers
"""

from . import atomics, bits, elements, linking, memory, status, trace, variables, warps
from .atomics import *  # noqa: F403
from .bits import *  # noqa: F403
from .elements import *  # noqa: F403
from .linking import *  # noqa: F403
from .memory import *  # noqa: F403
from .status import *  # noqa: F403
from .trace import *  # noqa: F403
from .variables import *  # noqa: F403
from .warps import *  # noqa: F403

__all__ = [
    *atomics.__all__,
    *bits.__all__,
    *elements.__all__,
    *linking.__all__,
    *memory.__all__,
    *status.__all__,
    *trace.__all__,
    *variables.__all__,
    *warps.__all__,
]
