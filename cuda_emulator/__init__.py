"""CUDA kernels in Python, compiled for the CPU: the same source runs on a GPU under numba-cuda.

    from cuda_emulator import cuda      # in a script or a notebook, in place of `from numba import cuda`

    install()                                        # or so: `from numba import cuda` gives the emulator from here on

`groundup run SCRIPT.py` does the second for a script that knows nothing of the emulator. `options(check=True)` and its
like change how kernels are run. docs/emulator.md follows one kernel through all of this.

    compiler/    from a kernel's source to machine code for the CPU
    helpers/     the functions that generated code calls
    runtime/     what a program sees of CUDA: launches, device arrays, streams, devices
    stepping/    step mode: a kernel run line by line, in Python
    namespace    the `cuda` namespace, and putting it in numba.cuda's place
    intrinsics   what `cuda.NAME` is inside a kernel
    settings     the switches and their environment variables
    errors       what the emulator raises and warns of
    poison       what fresh memory holds
    trace        what a traced launch leaves: an event for each access, branch and collective of a thread
    hooks        where a profiler registers for `kernel.profile(...)`
"""

from .errors import KernelError, KernelWarning
from .namespace import cuda, install, uninstall
from .settings import Settings, current, options

__all__ = ["KernelError", "KernelWarning", "Settings", "cuda", "current", "install", "options", "uninstall"]
