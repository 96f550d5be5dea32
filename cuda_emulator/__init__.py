"""CUDA kernels in Python, compiled for the CPU: the same source runs on a GPU under numba-cuda.

    from cuda_emulator import cuda      # in a script or a notebook, in place of `from numba import cuda`

    install()                           # after this, `from numba import cuda` gives the emulator

`cuda-emulator run SCRIPT.py` calls install() for a script that is written for numba-cuda. `options(check=True)` and
other options change how kernels are run. docs/emulator.md follows one kernel through all steps.

    compiler/    compiles a kernel's source to machine code for the CPU
    helpers/     compiled functions that generated code calls
    runtime/     the host's side of CUDA: launches, device arrays, streams, devices
    stepping/    step mode: Python runs a kernel line by line
    walking/     one block, statement by statement, recorded in order to be shown
    lens/        what a kernel does to memory: `kernel.profile(...)`, the command `lens`, and the races of check mode
    words/       numbers, markup and tables as the lens writes them
    surface      the modules below numba.cuda that a program may import
    namespace    the module `cuda`, and install(), which makes it replace numba.cuda
    intrinsics   the names of `cuda` that work inside a kernel only
    settings     the options and their environment variables
    errors       the error and the warning for a wrong kernel
    poison       the values that fill fresh memory
    occupancy    how many blocks of a kernel a multiprocessor holds
    trace        the trace of a launch: an event for each access, branch and collective of a thread
    hooks        what the lens and other packages add to the emulator, and who is told what takes long
    launches     intercepts a launch of a program
    scripts      runs a script, a module or code as python would, on the emulator
    commands     the command cuda-emulator
    startup      puts the emulator into a process whose environment asks for it; child/: into children of such a process
    pytest_plugin    the same for the tests of a project
    inspection   what a grader, a studio or a test may ask of the inside

PYTEST_DONT_REWRITE: a process on the emulator has imported this package before pytest, which would warn of that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

__version__ = "0.1.0"

_HOME = {
    **dict.fromkeys(("KernelError", "KernelWarning"), "errors"),
    **dict.fromkeys(("Settings", "current", "options"), "settings"),
    **dict.fromkeys(("cuda", "install", "uninstall"), "namespace"),
    "register_progress": "hooks",
}


def __getattr__(name: str) -> Any:
    """The public names, imported at their first use: pytest loads the plugin of this package in every project."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value
