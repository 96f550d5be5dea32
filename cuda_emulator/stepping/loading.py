"""Load a kernel that was rewritten, and the device functions that it calls, each once.

loader(cuda, numbers, compiled)(source, True)    the kernel as a function; its device functions when they are called
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from ..compiler.reading.names import is_cuda
from ..compiler.reading.source import FunctionSource
from ..intrinsics import Intrinsic
from .step_namespace import Namespace
from .step_rewrite import CUDA, FUNCTION, NUMBERS, device_source

Load = Callable[[FunctionSource, bool], Callable[..., Any]]
"""(source, whether it is the kernel) -> its function."""


def loader(cuda: Namespace, numbers: Any, compiled: Callable[[FunctionSource, bool], CodeType]) -> Load:
    """The functions of one run.

    cuda: stands for the module `cuda` in them; numbers: the module of arithmetic
    compiled: the code of a module that defines the rewritten function; called once for each function
    """
    loaded: dict[FunctionSource, Callable[..., Any]] = {}

    def load(source: FunctionSource, is_kernel: bool) -> Callable[..., Any]:
        if source not in loaded:
            code = compiled(source, is_kernel)  # before its names are read: it adds the functions made for a call
            names: dict[str, Any] = {name: cuda if is_cuda(value) else value for name, value in source.names.items()}
            names |= {name: cuda.at_path(value.path) for name, value in names.items() if isinstance(value, Intrinsic)}
            names |= {CUDA: cuda, NUMBERS: numbers, FUNCTION: device}
            exec(code, names)
            loaded[source] = names[source.tree.name]  # the name in the `def` statement; __name__ may have been changed
        return loaded[source]

    def device(value: Any) -> Callable[..., Any]:
        source = device_source(value)
        assert source is not None  # the rewriter has checked it
        return load(source, False)

    return load
