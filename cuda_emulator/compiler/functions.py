"""`@cuda.jit(device=True)`: a function that kernels call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..errors import KernelError
from .reading.source import FunctionSource, Written


class DeviceFunction:
    """A function that runs on the device: kernels and other device functions can call it, the host cannot.

    py_func: the Python function
    options: the options of cuda.jit, without device=True
    moves: 1 for an ordinary function; for one that stands for a wide load or store of a device, the number of
        neighbouring elements that the device moves in that one access. The first element in its source has the lowest
        address
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any] | None = None) -> None:
        self.py_func = function
        self.options = dict(options or {})
        self.moves = 1
        self._written = Written(function)
        functools.update_wrapper(self, function)

    @cached_property
    def source(self) -> FunctionSource:
        """Its source, as it was when the function was defined."""
        return FunctionSource(self.py_func, self._written)

    def __call__(self, *arguments: Any) -> Any:
        raise KernelError(
            f"{self.py_func.__name__} is a device function: a kernel can call it, the host cannot",
            filename=self.py_func.__code__.co_filename,
            line=self.py_func.__code__.co_firstlineno,
        )
