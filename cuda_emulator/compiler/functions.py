"""`@cuda.jit(device=True)`: a function that kernels call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..errors import KernelError
from .source import FunctionSource, read_lines


class DeviceFunction:
    """A function that runs on the device: kernels and other device functions call it, the host cannot.

    py_func: the Python function
    options: what cuda.jit was given besides device=True
    moves: how many neighbouring elements of one array it moves in what a device does as one access; the first that it
        names has the lowest address. 1 for any function that does not stand for such an instruction
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any] | None = None) -> None:
        self.py_func = function
        self.options = dict(options or {})
        self.moves = 1
        self._lines = read_lines(function)
        functools.update_wrapper(self, function)

    @cached_property
    def source(self) -> FunctionSource:
        """Its source, as it was when the function was defined."""
        return FunctionSource(self.py_func, self._lines)

    def __call__(self, *arguments: Any) -> Any:
        raise KernelError(
            f"{self.py_func.__name__} is a device function: a kernel can call it, the host cannot",
            filename=self.py_func.__code__.co_filename,
            line=self.py_func.__code__.co_firstlineno,
        )
