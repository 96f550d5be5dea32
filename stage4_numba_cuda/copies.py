"""Python's copy and pickle for the device arrays of a GPU.

A network may be copied (copy.deepcopy) and pickled on every floor. numba-cuda's arrays cannot: each holds on to the
driver's context, which has no copy. With `install` a copy of a device array is a new one with the same numbers, and a
pickled one travels as a NumPy array. The emulator's arrays are copied without this.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

import numpy as np


def install(kind: type, to_device: Callable[[np.ndarray], Any]) -> None:
    """Let `copy` and `pickle` copy arrays of this kind.

    to_device: makes a device array of a NumPy array. It must be a function of a module: pickle stores only its name
    """
    copyreg.pickle(kind, lambda array: (to_device, (array.copy_to_host(),)))
