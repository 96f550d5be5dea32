"""`numba.vectorize` and `numba.guvectorize` with target="cuda": a function of numbers or of small arrays, made a ufunc.

A ufunc here launches a kernel whose threads each call the function for one element of the broadcast arguments, or for
one place of a gufunc's outer dimensions. So everything that is said of kernels holds for the function's body, too.
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.core import sigutils
from numba.np.numpy_support import as_dtype

from ..compiler.functions import DeviceFunction
from ..intrinsics import Intrinsic
from .devicearray import DeviceNDArray, of_interface
from .dispatcher import Kernel
from .places import definition_error, launch_error
from .transfers import device_array, to_device

THREADS = 128


class CUDAVectorize:
    """What numba.vectorize builds a ufunc with: add() for each signature, then build_ufunc()."""

    def __init__(self, function: Callable[..., Any], identity: Any = None, **options: Any) -> None:
        """Take numba.vectorize's options. Raises KeyError for one that the target does not know, as numba-cuda does."""
        self.function, self.signatures = function, list[tuple[list[Any], Any]]()
        _without_cache(options)
        for option in options.get("targetoptions") or {}:
            if option != "nopython":
                raise KeyError(f"Unrecognized options. vectorize with target 'cuda' does not have {option!r}")
            warnings.warn("nopython kwarg for cuda target is redundant", RuntimeWarning, stacklevel=4)

    def add(self, sig: Any) -> None:
        """Add a signature like "float32(float32, float32)"."""
        arguments, result = sigutils.normalize_signature(sig)
        self.signatures.append((list(arguments), result))

    def disable_compile(self) -> None:
        """Numba calls it after the last signature: the types are known."""

    def build_ufunc(self) -> Ufunc:
        """The ufunc. Raises KernelError without signatures, as numba-cuda needs them, too."""
        if not self.signatures:
            raise definition_error(
                f'{self.function.__name__}: target="cuda" needs signatures: vectorize(["float32(float32)"], ...)',
                self.function,
            )
        if any(result is None for _, result in self.signatures):
            raise definition_error(
                f"{self.function.__name__}: the signature of a ufunc names its result: float32(float32)", self.function
            )
        return Ufunc(self.function, self.signatures)


class CUDAGUFuncVectorize:
    """The same for numba.guvectorize, with a layout like "(m,n),(n,p)->(m,p)"."""

    def __init__(self, function: Callable[..., Any], layout: str, identity: Any = None, **options: Any) -> None:
        """Take numba.guvectorize's options. Raises TypeError for those that the target does not know."""
        self.function, self.signatures = function, list[list[Any]]()
        given = dict(options.get("targetoptions") or {})
        _without_cache(options)
        if not given.pop("nopython", True):
            raise TypeError("nopython flag must be True")
        if given or options.get("writable_args"):
            unknown = [*given, *(["writable_args"] if options.get("writable_args") else [])]
            raise TypeError(f"The following target options are not supported: {', '.join(map(repr, unknown))}")
        inputs, arrow, outputs = layout.replace(" ", "").partition("->")
        if not arrow or not outputs:
            raise definition_error(f'guvectorize: expected a layout like "(n),(n)->()", got {layout!r}', function)
        self.inputs, self.outputs = _dimensions(inputs), _dimensions(outputs)

    def add(self, sig: Any) -> None:
        """Add a signature like "void(float32[:], float32[:])". Raises TypeError if it names a result."""
        arguments, result = sigutils.normalize_signature(sig)
        if result not in (None, types.none):
            raise TypeError(
                f"guvectorized functions cannot return values: signature {sig} specifies {result} return type"
            )
        self.signatures.append(list(arguments))

    def disable_compile(self) -> None:
        """Numba calls it after the last signature: the types are known."""

    def build_ufunc(self) -> GUfunc:
        """The gufunc. Raises KernelError without signatures, as numba-cuda needs them, too."""
        if not self.signatures:
            raise definition_error(
                f'{self.function.__name__}: target="cuda" needs signatures: guvectorize(["void(float32[:])"], ...)',
                self.function,
            )
        return GUfunc(self.function, self.signatures, self.inputs, self.outputs)


def _without_cache(options: dict[str, Any]) -> None:
    if options.get("cache"):
        raise TypeError("caching is not supported: leave cache=True out; the emulator's own cache holds ufuncs, too")


def _dimensions(layout: str) -> list[tuple[str, ...]]:
    return [tuple(filter(None, part.split(","))) for part in re.findall(r"\(([^)]*)\)", layout)]


def _kernel(function: Callable[..., Any], parameters: Sequence[str], size: str, line: str) -> Kernel:
    """A kernel with one line of code for each thread below `size`; `f` in it is the function."""
    device = DeviceFunction(getattr(function, "py_func", function))
    text = f"def kernel({', '.join(parameters)}):\n    i = grid(1)\n    if i < {size}:\n        {line}\n"
    name = f"<ufunc {function.__name__}({', '.join(parameters)})>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"grid": Intrinsic("grid"), "f": device}
    exec(compile(text, name, "exec"), names)
    made = names["kernel"]
    made.__name__ = made.__qualname__ = function.__name__
    made.__module__ = function.__module__
    return Kernel(made)


def _launch(kernel: Kernel, threads: int, arguments: Sequence[Any]) -> None:
    if threads:
        kernel[-(-threads // THREADS), THREADS](*arguments)


def _host(value: Any) -> np.ndarray:
    if not isinstance(value, DeviceNDArray | np.ndarray) and hasattr(value, "__cuda_array_interface__"):
        value = of_interface(value.__cuda_array_interface__, "an argument of a ufunc")
    return value._array if isinstance(value, DeviceNDArray) else np.asarray(value)


def _chosen(signatures: Sequence[Any], given: Sequence[np.ndarray], name: str) -> Any:
    """The first signature to whose types the arguments can be converted safely, else with a loss of precision."""
    for casting in ("safe", "same_kind"):
        for signature in signatures:
            wanted = [as_dtype(getattr(each, "dtype", each)) for each in signature[: len(given)]]
            if all(np.can_cast(a.dtype, b, casting) for a, b in zip(given, wanted, strict=True)):
                return signature
    kinds = ", ".join(str(each.dtype) for each in given)
    raise TypeError(f"{name}: no signature takes ({kinds})")


class Ufunc:
    """A function of numbers for arrays: broadcasting, device arrays in and out, reduce()."""

    def __init__(self, function: Callable[..., Any], signatures: list[tuple[list[Any], Any]]) -> None:
        self.__name__, self.signatures = function.__name__, [(*arguments, result) for arguments, result in signatures]
        self.nin = len(signatures[0][0])
        inputs = [f"x{number}" for number in range(self.nin)]
        line = f"out[i] = f({', '.join(f'{each}[i]' for each in inputs)})"
        self._kernel = _kernel(function, [*inputs, "out"], "out.size", line)

    def __call__(self, *arguments: Any, out: Any = None, stream: Any = 0) -> Any:
        """The result: on the device if an argument is there, else on the host; a number for numbers.

        Raises TypeError for a wrong number of arguments, and for types that no signature takes.
        """
        if len(arguments) == self.nin + 1 and out is None:
            *arguments, out = arguments  # type: ignore[assignment]
        if len(arguments) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arguments, got {len(arguments)}")
        on_device = any(isinstance(each, DeviceNDArray) for each in (*arguments, out))
        given = [_host(each) for each in arguments]
        *wanted, result = _chosen(self.signatures, given, self.__name__)
        shape = np.broadcast_shapes(*(each.shape for each in given))
        flat = [
            np.ascontiguousarray(np.broadcast_to(each, shape), as_dtype(kind)).ravel()
            for each, kind in zip(given, wanted, strict=True)
        ]
        values = device_array(shape, as_dtype(result))
        _launch(self._kernel, values.size, [*map(to_device, flat), values.ravel() if shape else values.reshape(1)])
        if out is not None:
            _host(out)[...] = values._array
            return out
        if on_device:
            return values
        return values._array if shape else values._array[()]

    def reduce(self, arg: Any, stream: Any = 0) -> Any:
        """The function of two numbers, applied over all elements of a one-dimensional array, in order of pairs."""
        values = _host(arg)
        if self.nin != 2 or values.ndim != 1 or not values.size:
            raise launch_error(f"{self.__name__}.reduce: expected a function of two numbers and a filled 1-d array")
        while values.size > 1:
            half = values.size // 2
            rest = values[2 * half :]
            values = np.concatenate([self(values[:half], values[half : 2 * half]), rest])
        return values[0]


class GUfunc:
    """A function of small arrays, for arrays with more dimensions in front, which the grid goes along."""

    def __init__(
        self,
        function: Callable[..., Any],
        signatures: list[list[Any]],
        inputs: list[tuple[str, ...]],
        outputs: list[tuple[str, ...]],
    ) -> None:
        self.__name__, self.signatures, self.inputs, self.outputs = function.__name__, signatures, inputs, outputs
        parameters = [f"x{number}" for number in range(len(inputs) + len(outputs))]
        line = f"f({', '.join(f'{each}[i]' for each in parameters)})"
        self._kernel = _kernel(function, parameters, f"{parameters[-1]}.shape[0]", line)

    def __call__(self, *arguments: Any, out: Any = None, stream: Any = 0) -> Any:
        """The result, or a tuple of them; on the device if an argument is there. Raises ValueError for shapes that do
        not fit the layout."""
        count = len(self.inputs)
        extra = list(arguments[count:]) if out is None else [out]
        whole_count = count + len(self.outputs)
        if len(arguments) not in (count, whole_count):
            raise TypeError(
                f"{self.__name__}: this gufunc accepts {count} positional arguments, or {whole_count} positional "
                f"arguments with its outputs. Got {len(arguments)} positional argument{'s' * (len(arguments) != 1)}."
            )
        if out is not None and len(arguments) == whole_count:
            raise ValueError("cannot specify argument 'out' as both positional and keyword")
        on_device = any(isinstance(each, DeviceNDArray) for each in (*arguments, *extra))
        given = [_host(each) for each in arguments[:count]]
        signature = _chosen(self.signatures, given, self.__name__)
        sizes: dict[str, int] = {}
        outer = []
        for array, names in zip(given, self.inputs, strict=True):
            if array.ndim < len(names):
                raise ValueError(f"{self.__name__}: expected {len(names)} dimensions or more, got {array.ndim}")
            split = array.ndim - len(names)
            outer.append(array.shape[:split])
            for name, size in zip(names, array.shape[split:], strict=True):
                if sizes.setdefault(name, size) != size:
                    raise ValueError(f"{self.__name__}: {name} is {sizes[name]} in one argument, {size} in another")
        loop = np.broadcast_shapes(*outer)
        rows = int(np.prod(loop))
        device = []
        for array, names, kind in zip(given, self.inputs, signature, strict=False):
            core = tuple(sizes[name] for name in names)
            dtype = as_dtype(getattr(kind, "dtype", kind))
            whole = np.ascontiguousarray(np.broadcast_to(array, loop + core), dtype)
            device.append(to_device(whole.reshape(rows, *_shown(core, kind))))
        results = []
        for names, kind in zip(self.outputs, signature[count:], strict=True):
            unknown = [name for name in names if name not in sizes]
            if unknown and not extra:
                raise ValueError(f"{self.__name__}: the size of {unknown[0]} is known from no input; give out=")
            core = tuple(sizes[name] for name in names) if not unknown else _host(extra[0]).shape[len(loop) :]
            made = device_array((rows, *_shown(core, kind)), as_dtype(kind.dtype))
            device.append(made)
            results.append(made._array.reshape(loop + core))
        for mine, theirs in zip(results, extra, strict=False):
            if _host(theirs).shape == mine.shape:
                mine[...] = _host(theirs)  # a function may add to what is there
        _launch(self._kernel, rows, device)
        for mine, theirs in zip(results, extra, strict=False):
            _host(theirs)[...] = mine
        shown = extra or [to_device(each) if on_device else each for each in results]
        return shown[0] if len(shown) == 1 else tuple(shown)


def _shown(core: tuple[int, ...], kind: Any) -> tuple[int, ...]:
    """The shape of an argument as the function sees it: a scalar of the layout may be an array of one element."""
    return (1,) if not core and isinstance(kind, types.Array) else core
