"""What generated kernels call: compiled functions, imported by every generated source with one line.

    from cuda_emulator.helpers import *

Nothing here holds an address or anything else of this process: kernels that use it are kept in a disk cache.
"""

from . import atomics, bits, memory, status, trace, warps
from .atomics import *  # noqa: F403
from .bits import *  # noqa: F403
from .memory import *  # noqa: F403
from .status import *  # noqa: F403
from .trace import *  # noqa: F403
from .warps import *  # noqa: F403

__all__ = [*atomics.__all__, *bits.__all__, *memory.__all__, *status.__all__, *trace.__all__, *warps.__all__]
