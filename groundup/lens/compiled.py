"""How the lens compiles its own loops: millions of events are too many for Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


def compiled(function: Callable[..., Any]) -> Any:
    """njit, with the machine code kept on disk for the next process.

    Numba keeps it beside the source, or in the user's cache folder where the package is installed read-only. Where
    neither can be written, the function is compiled anew in each process.
    """
    try:
        return njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # no folder to write to
        return njit(error_model="numpy")(function)
