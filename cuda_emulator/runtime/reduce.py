"""cuda.reduce: reduce an array to one number with an associative and commutative operation on two numbers.

    add = cuda.reduce(lambda a, b: a + b)
    total = add(array)

Each block of 128 threads reduces its part of the array to one number: every thread reduces the elements that it visits,
then a tree in shared memory reduces the 128 numbers of the block. A second launch with one block reduces the numbers of
the blocks.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numba.np.numpy_support import from_dtype

from ..intrinsics import intrinsics
from .decorators import jit
from .devicearray import DeviceNDArray
from .dispatcher import Kernel
from .places import definition_error
from .streams import Stream, checked_stream

THREADS = 128
MOST_BLOCKS = 64

#: The names of `cuda` for the kernel below. The complete module is in namespace.py, which imports this one.
cuda = ModuleType("numba.cuda")
vars(cuda).update(intrinsics())


class Reduce:
    """A reduction with a given operation.

    functor: an associative and commutative function of two numbers; it may be a lambda
    """

    def __init__(self, functor: Callable[[Any, Any], Any]) -> None:
        self._functor = functor
        self._kernels: dict[np.dtype, Kernel] = {}

    def __call__(
        self,
        arr: Any,
        size: int | None = None,
        res: DeviceNDArray | None = None,
        init: Any = 0,
        stream: Stream | int = 0,
    ) -> Any:
        """The elements of `arr` and `init`, reduced to one number of arr's dtype.

        arr: host or device array of one dimension; size: use the first `size` elements only
        res: a device array whose first element receives the result; then None is returned
        init: one more operand, and the result for an empty array: 1 for a product, the smallest number for a maximum
        """
        checked_stream(stream)
        if arr.ndim != 1:
            raise TypeError(f"reduce: expected an array of 1 dimension, got {arr.ndim}")
        if size is not None:
            arr = arr[:size]
        first = arr.dtype.type(init)
        if arr.size < 1:
            return first
        kernel = self._kernels.get(arr.dtype)
        if kernel is None:
            kernel = self._kernels[arr.dtype] = _fold_kernel(self._functor, arr.dtype)
        blocks = min(-(-arr.size // THREADS), MOST_BLOCKS)
        values = arr if isinstance(arr, DeviceNDArray) else DeviceNDArray(arr)
        partials = DeviceNDArray(np.zeros(blocks, arr.dtype))
        total = DeviceNDArray(np.zeros(1, arr.dtype))
        kernel[blocks, THREADS, stream](values, partials, first, False)
        kernel[1, THREADS, stream](partials, total, first, True)
        if res is None:
            return total[0]
        res[:1].copy_to_device(total, stream=stream)
        return None


def _fold_kernel(functor: Callable[[Any, Any], Any], dtype: np.dtype) -> Kernel:
    """The kernel fold(values, results, init, is_last): results[block] = the reduced part of `values` of that block."""
    fold_two = jit(_with_a_name(functor), device=True)
    number = from_dtype(dtype)

    @jit
    def fold(values, results, init, is_last):  # type: ignore[no-untyped-def]
        partial = cuda.shared.array(THREADS, number)
        thread = cuda.threadIdx.x
        here = cuda.blockIdx.x * THREADS
        filled = min(THREADS, values.size - here)  # number of threads of this block that have an element
        if thread < filled:
            result = values[here + thread]
            for i in range(here + thread + cuda.gridDim.x * THREADS, values.size, cuda.gridDim.x * THREADS):
                result = fold_two(result, values[i])
            partial[thread] = result
        cuda.syncthreads()
        width = THREADS // 2
        while width > 0:
            if thread < width and thread + width < filled:
                partial[thread] = fold_two(partial[thread], partial[thread + width])
            cuda.syncthreads()
            width //= 2
        if thread == 0:
            if is_last:
                results[cuda.blockIdx.x] = fold_two(partial[0], init)
            else:
                results[cuda.blockIdx.x] = partial[0]

    return fold


def _with_a_name(functor: Any) -> Callable[[Any, Any], Any]:
    """The operation as a function that starts with def; a lambda is converted to one."""
    function = getattr(functor, "py_func", functor)
    if getattr(function, "__name__", None) != "<lambda>":
        return function
    arguments = ", ".join(function.__code__.co_varnames[: function.__code__.co_argcount])
    source = f"def operation({arguments}):\n    return {_body(function)}\n"
    # The compiler reads source code. This code has no file, so it is stored where Python looks for a notebook's cells.
    filename = f"<lambda of {function.__code__.co_filename}:{function.__code__.co_firstlineno}, {id(function)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names: dict[str, Any] = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    exec(compile(source, filename, "exec"), names)
    return names["operation"]


def _body(function: Callable[..., Any]) -> str:
    """The source of a lambda's expression."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)).strip())
    except (OSError, SyntaxError):  # its lines cannot be read, or are a part of a longer expression
        tree = ast.Module(body=[], type_ignores=[])
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    if len(found) != 1:
        raise definition_error("the source of this lambda cannot be read: write the operation with def", function)
    return ast.unparse(found[0].body)
