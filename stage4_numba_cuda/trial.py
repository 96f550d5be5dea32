"""One kernel that is compiled and launched on the GPU before any other.

If libraries do not fit each other or the driver, the first compilation fails, deep inside numba-cuda. This file
compiles one small kernel first, and explains the failure in one sentence with the command that mends it.
"""

from __future__ import annotations

import importlib.metadata
import sys

import numpy as np

from shared.machine.misfits import PACKAGES, misfit

from .backend import BACKEND, BackendError, cuda

COUNT = 8


@cuda.jit
def double(x):  # type: ignore[no-untyped-def]
    """Multiply each number of x by two, a thread for each."""
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] + x[i]


def attempt() -> None:
    """Compile the kernel, launch it and look at its numbers.

    Raises BackendError, in one sentence with the known cause, where that fails.
    """
    try:
        numbers = cuda.to_device(np.arange(COUNT, dtype=np.float32))
        double[1, COUNT](numbers)
        computed = numbers.copy_to_host().tolist()
    except Exception as error:  # numba-cuda's and the driver's own kinds: every one of them means no kernel will run
        raise _failed(" ".join(f"{type(error).__name__}: {error}".split())) from error
    if computed != [2.0 * i for i in range(COUNT)]:
        raise _failed(f"it should double 0, 1, 2, … and gave {computed}")


def _failed(said: str) -> BackendError:
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    known = misfit(installed)
    begin = f"a trial kernel does not run on {BACKEND.reason}"
    if known is None:
        versions = ", ".join(f"{name} {version}" for name, version in installed.items())
        return BackendError(f"{begin}: {said} ({versions}); `groundup doctor` looks for the cause")
    fix = f'"{sys.executable}" -m pip install "{known.requirement}"'
    return BackendError(f"{begin}: {known.text}; this mends it: {fix}", fix)
