"""The learner's program of a detective exercise in C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from shared.contract import load_part


def c_program(function: str, arguments: Sequence[str], returns_number: bool = False) -> Callable[..., Any]:
    """A function of a C program in float64, which takes NumPy arrays and sizes.

    arguments: "size" or "array" for each argument
    The first call looks the function up: the examiner (judging/examiner.py) has no program, and calls nothing.
    """
    library = str(load_part("stage3_c", "build").build().library)

    @cache
    def found() -> Callable[..., Any]:
        function_in_c = getattr(ctypes.CDLL(library), f"{function}_f64")
        kinds = {"size": ctypes.c_size_t, "array": np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")}
        function_in_c.argtypes = [kinds[each] for each in arguments]
        function_in_c.restype = ctypes.c_double if returns_number else None
        made: Callable[..., Any] = function_in_c
        return made

    return lambda *values: found()(*values)
