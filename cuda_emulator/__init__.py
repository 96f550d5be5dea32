"""CUDA kernels in Python, compiled for the CPU: the same source runs on a GPU under numba-cuda.

    from cuda_emulator import cuda      # in a script or a notebook, in place of `from numba import cuda`

    install()                                        # or so: `from numba import cuda` gives the emulator from here on

`groundup run SCRIPT.py` does the second for a script that knows nothing of the emulator. `options(check=True)` and its
like change how kernels are run (settings.py).
"""

from .errors import KernelError, KernelWarning
from .namespace import cuda, install, uninstall
from .settings import Settings, current, options

__all__ = ["KernelError", "KernelWarning", "Settings", "cuda", "current", "install", "options", "uninstall"]
