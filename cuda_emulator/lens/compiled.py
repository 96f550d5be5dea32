"""Compile the lens's own loops with Numba: Python is too slow for millions of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


def compiled(function: Callable[..., Any]) -> Any:
    """numba.njit with the machine code stored on disk for the next process.

    Numba stores it beside the source, or in the user's cache folder if the package is installed read-only. If neither
    can be written, each process compiles the function again.
    """
    try:
        return njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # no folder can be written
        return njit(error_model="numpy")(function)
