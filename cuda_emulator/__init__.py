"""CUDA kernels in Python, compiled for the CPU: the same source runs on a GPU under numba-cuda.

    from cuda_emulator import cuda      # in a script or a notebook, in place of `from numba import cuda`

    install()                           # after this, `from numba import cuda` gives the emulator

`groundup run SCRIPT.py` calls install() for a script that is written for numba-cuda. `options(check=True)` and other
options change how kernels are run. docs/emulator.md follows one kernel through all steps.

    compiler/    compiles a kernel's source to machine code for the CPU
    helpers/     compiled functions that generated code calls
    runtime/     the host's side of CUDA: launches, device arrays, streams, devices
    stepping/    step mode: Python runs a kernel line by line
    walking/     one block, statement by statement, recorded in order to be shown
    lens/        what a kernel does to memory: `kernel.profile(...)`, the command `lens`, and the races of check mode
    words/       numbers, markup and tables as the lens writes them
    namespace    the module `cuda`, and install(), which makes it replace numba.cuda
    intrinsics   the names of `cuda` that work inside a kernel only
    settings     the options and their environment variables
    errors       the error and the warning for a wrong kernel
    poison       the values that fill fresh memory
    trace        the trace of a launch: an event for each access, branch and collective of a thread
    hooks        what the lens and other packages add to the emulator, and who is told what takes long
    launches     intercepts a launch of a program
    scripts      runs a script, a module or code as python would, on the emulator
    inspection   what a grader, a studio or a test may ask of the inside
"""

from .errors import KernelError, KernelWarning
from .hooks import register_progress
from .namespace import cuda, install, uninstall
from .settings import Settings, current, options

__all__ = [
    "KernelError",
    "KernelWarning",
    "Settings",
    "cuda",
    "current",
    "install",
    "options",
    "register_progress",
    "uninstall",
]
