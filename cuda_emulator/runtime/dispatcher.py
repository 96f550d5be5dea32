"""Kernels on the host: `kernel[blocks, threads](arrays, numbers)`.

Kernel       the kernel; it is compiled once for each combination of argument types and settings
Configured   the kernel with its grid and block, the value of kernel[...]; a call launches it
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable
from functools import cached_property
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

from ..compiler.reading.source import FunctionSource, Written
from ..errors import KernelError
from ..hooks import find_profiler
from ..settings import Settings, current
from . import check_report, limits
from .arguments import Arguments, fit_unchanged, fitting, type_of
from .facts import Facts
from .launch import Ready, launch
from .places import launch_error
from .signatures import argument_types, without_pointers
from .streams import Stream, checked_stream, observe
from .unwritten import forget

if TYPE_CHECKING:
    from ..compiler.compile import CompiledKernel

THREADS_OF_FORALL = 256
"""Threads of a block in forall() without tpb; numba-cuda asks the device for the best number."""

#: Only one thread at a time compiles a kernel.
_compiling = threading.RLock()


class Kernel(Facts):
    """A function that runs on the device in many threads, made by @cuda.jit.

    py_func: the Python function
    targetoptions: the options of cuda.jit
    signatures: the argument types from cuda.jit, or empty
    """

    is_cuda_kernel = True

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any] | None = None,
        signatures: list[tuple[Any, ...]] | None = None,
    ) -> None:
        self.py_func = function
        self.targetoptions = dict(options or {})
        self.signatures = list(signatures or ())
        self._written = Written(function)
        self._unconverted: set[tuple[Any, ...]] = set()
        self._frozen: set[tuple[Any, ...]] = set()
        self._ready: dict[Any, Ready] = {}
        self._configured: dict[Any, Configured] = {}
        self._traced: dict[tuple[Any, bool], CompiledKernel] = {}
        self._looks: dict[Any, int] = {}
        self.most_shared = limits.SHARED_BYTES
        code = function.__code__
        self.parameters = code.co_varnames[: code.co_argcount]
        bounds = self.targetoptions.get("launch_bounds")
        self._most_threads = bounds[0] if isinstance(bounds, tuple) else bounds
        functools.update_wrapper(self, function)

    def allow_shared(self, size: int) -> None:
        """Let a launch give each block up to `size` bytes of shared memory, where without it 48 KB are the most.

        On a device it is the kernel's attribute CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
        Raises KernelError for more than limits.MOST_SHARED_BYTES, TypeError for a value that is no whole number.
        """
        self.most_shared = max(self.most_shared, limits.allowed_bytes(size, self.py_func.__name__))

    @cached_property
    def source(self) -> FunctionSource:
        """Its source at the time of its definition."""
        return FunctionSource(self.py_func, self._written)

    def _freeze_globals(self, types: tuple[Any, ...]) -> None:
        """Read the values of global names, if these argument types are new: Numba freezes them at each compilation."""
        from ..compiler.reading.names import read_again

        if types not in self._frozen:
            read_again(self.source)
            self._frozen.add(types)

    def __repr__(self) -> str:
        return f"<kernel {self.py_func.__name__}({', '.join(self.parameters)})>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        name = self.py_func.__name__
        raise launch_error(
            f"{name} was called without saying how many threads run it: write {name}[blocks, threads](...)", name
        )

    def __getitem__(self, configuration: Any) -> Configured:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            name = self.py_func.__name__
            raise launch_error(
                f"{name}: expected {name}[blocks, threads], with a stream and the bytes of dynamic shared "
                f"memory after them or without, got [{configuration!r}]",
                name,
            )
        return self.configure(*configuration)

    def configure(self, griddim: Any, blockdim: Any, stream: Stream | int = 0, sharedmem: int = 0) -> Configured:
        """The kernel with its grid and block: the value of kernel[griddim, blockdim, stream, sharedmem].

        griddim, blockdim: blocks of the grid and threads of a block, ints or tuples of up to three
        sharedmem: bytes of dynamic shared memory of each block
        Raises KernelError for a launch that no device accepts, TypeError for a value that is no number.
        """
        # The types are part of the key: 4.0 == 4 and True == 1, but neither is a number of blocks.
        on = checked_stream(stream)
        key = (griddim, blockdim, sharedmem, _types(griddim), _types(blockdim), type(sharedmem), on)
        try:
            configured = self._configured.get(key)
        except TypeError:  # a list, which numba-cuda refuses too
            configured = None
        if configured is None:
            name = self.py_func.__name__
            grid, block = limits.launch_shape(griddim, blockdim, name)
            threads = block[0] * block[1] * block[2]
            if self._most_threads is not None and threads > self._most_threads:
                raise launch_error(
                    f"{name}: a block of {threads} threads is more than the {self._most_threads} that launch_bounds "
                    "promised: change one of them",
                    name,
                )
            configured = Configured(self, grid, block, limits.dynamic_bytes(sharedmem, name, self.most_shared), on)
            if len(self._configured) >= 128:  # the program uses a new grid or block at every launch
                self._configured.clear()
            self._configured[key] = configured
        return configured

    def forall(self, ntasks: int, tpb: int = 0, stream: Stream | int = 0, sharedmem: int = 0) -> Callable[..., None]:
        """The kernel with at least `ntasks` threads in one dimension. It has to check that its index is below `ntasks`.

        tpb: threads of a block; with 0 the emulator chooses
        """
        if not isinstance(ntasks, int) and not hasattr(ntasks, "__index__"):
            raise TypeError(f"forall: expected a whole number of tasks, got {ntasks!r}, a {type(ntasks).__name__}")
        if ntasks < 0:
            raise ValueError(f"forall: expected at least 0 tasks, got {ntasks}")
        if ntasks == 0:
            return lambda *arguments: None
        threads = tpb or min(THREADS_OF_FORALL, self._most_threads or THREADS_OF_FORALL)
        return self.configure(-(-int(ntasks) // threads), threads, stream, sharedmem)

    def run(self, grid: limits.Extent, block: limits.Extent, dynamic_bytes: int, values: tuple[Any, ...]) -> None:
        """Launch the kernel: convert the arguments, compile for new types, run, copy back."""
        settings = current()
        if not settings.check:
            self._run(grid, block, dynamic_bytes, values, settings)
            return
        account = check_report.of(self.py_func.__name__)
        before = account.launches
        try:
            self._run(grid, block, dynamic_bytes, values, settings)
        except KernelError:
            # One launch, whatever the check has counted: it may have begun anew, or not at all.
            account.launches, account.refused = before + 1, account.refused + 1
            raise

    def _run(
        self,
        grid: limits.Extent,
        block: limits.Extent,
        dynamic_bytes: int,
        given: tuple[Any, ...],
        settings: Settings,
    ) -> None:
        arguments = self._arguments(given)
        if not settings.check:
            forget(arguments.values)
        if settings.step:
            self._step(arguments, grid, block, dynamic_bytes, settings)
        else:
            ready = self._get_ready(arguments.types, settings)
            if dynamic_bytes:
                limits.shared_memory(ready.compiled.shared_bytes, dynamic_bytes, ready.name, self.most_shared)
            if ready.compiled.cooperative:
                limits.together(grid, block, ready.compiled.shared_bytes + dynamic_bytes, ready.name)
            if settings.check:
                from .check import CheckedLaunch, check_launch
                from .detector_schedule import looking

                shape = (grid, block, dynamic_bytes)
                checked = CheckedLaunch(self.py_func, ready, arguments.values, self.parameters, *shape, settings.seed)
                checked.wrapping = lambda: self._get_ready(arguments.types, settings, "read")
                check_launch(checked, looking(self, grid, block, arguments.values, dynamic_bytes))
            else:
                launch(ready, arguments.values, grid, block, dynamic_bytes, settings.cores)
        for copy in arguments.copy_back:
            copy()

    def _step(
        self, arguments: Arguments, grid: limits.Extent, block: limits.Extent, dynamic_bytes: int, settings: Settings
    ) -> None:
        from ..stepping import step

        with _compiling:
            self._freeze_globals(arguments.types)
        step.run_kernel(
            self.source,
            arguments.values,
            grid,
            block,
            dynamic_bytes,
            most_shared=self.most_shared,
            divergence=settings.divergence,
        )

    def _arguments(self, given: tuple[Any, ...]) -> Arguments:
        name = self.py_func.__name__
        missing = len(self.parameters) - len(given)
        defaults = self.py_func.__defaults__ or ()
        if not 0 <= missing <= len(defaults):
            of = (
                f"{len(self.parameters) - len(defaults)} to {len(self.parameters)}"
                if defaults
                else str(len(self.parameters))
            )
            raise launch_error(f"{name} takes {of} arguments ({', '.join(self.parameters)}), got {len(given)}", name)
        if missing:
            given = (*given, *defaults[-missing:])
        arguments = Arguments(given, self.parameters, name)
        if self.signatures:
            self._fit(arguments, name)
        return arguments

    def _fit(self, arguments: Arguments, name: str) -> None:
        """Convert the arguments to the first signature that they fit. Raises TypeError if there is none."""
        if arguments.types in self._unconverted:
            return
        refusals: list[TypeError] = []
        # The one that fits exactly first; `sorted` leaves the others in their order.
        ordered = sorted(self.signatures, key=lambda signature: signature != arguments.types)
        if fit_unchanged(arguments.types, ordered[0]):
            self._unconverted.add(arguments.types)
            return
        for signature in ordered:
            try:
                values = [
                    fitting(value, wanted, parameter, name)
                    for value, wanted, parameter in zip(arguments.values, signature, self.parameters, strict=True)
                ]
            except TypeError as refusal:
                refusals.append(refusal)
                continue
            arguments.values = values
            arguments.types = tuple(
                type_of(value, parameter, name) for value, parameter in zip(values, self.parameters, strict=True)
            )
            return
        if len(refusals) == 1:
            raise refusals[0]
        listed = "; ".join(f"({', '.join(map(str, signature))})" for signature in self.signatures)
        raise TypeError(f"{name}: ({', '.join(map(str, arguments.types))}) fits none of its signatures: {listed}")

    def _get_ready(self, types: tuple[Any, ...], settings: Settings, negative: str = "refused") -> Ready:
        """The kernel, compiled for these argument types and settings. negative: see Variant"""
        negative = "meant" if settings.wrap and settings.check else negative
        key = (types, settings.bounds, settings.check, settings.divergence, negative)
        ready = self._ready.get(key)
        if ready is None:
            # Imported here: a program that launches nothing does not need the compiler.
            from ..compiler.compile import Variant, compile_kernel

            with _compiling:
                # Another thread may have compiled it while this one waited.
                ready = self._ready.get(key)
                if ready is None:
                    variant = Variant(
                        bounds=settings.bounds,
                        check=settings.check,
                        fastmath=bool(self.targetoptions.get("fastmath", False)),
                        divergence=settings.divergence,
                        negative=negative,
                    )
                    self._freeze_globals(types)
                    compiled = compile_kernel(self.source, types, variant)
                    limits.shared_memory(compiled.shared_bytes, 0, self.py_func.__name__)
                    ready = self._ready[key] = Ready(compiled, self.py_func.__name__)
                    if settings.show_source:
                        print(f"# {self.py_func.__name__}({', '.join(map(str, types))})\n{compiled.source}")
        return ready

    @property
    def overloads(self) -> dict[tuple[Any, ...], Any]:
        """{argument types: compiled kernel}, of its signatures and of the launches so far."""
        for types in self.signatures:  # numba-cuda compiles these when the kernel is defined
            self._get_ready(without_pointers(types), current())
        return self.compiled

    def traced(self, types: tuple[Any, ...], accesses_only: bool = False) -> CompiledKernel:
        """The kernel, compiled for these argument types with events at every access (tracing.py runs it).

        accesses_only: no events of conditions and shuffles, no counts of operations
        """
        key = types, accesses_only
        found = self._traced.get(key)
        if found is None:
            from ..compiler.compile import Variant, compile_kernel

            with _compiling:
                self._freeze_globals(types)
                fastmath = bool(self.targetoptions.get("fastmath", False))
                variant = Variant(
                    trace=True, fastmath=fastmath, divergence=current().divergence, accesses_only=accesses_only
                )
                found = self._traced[key] = compile_kernel(self.source, types, variant)
                limits.shared_memory(found.shared_bytes, 0, self.py_func.__name__)
        return found

    def plain(self, types: tuple[Any, ...]) -> CompiledKernel:
        """The kernel, compiled for these argument types without events: for the blocks that are not traced."""
        settings = dataclasses.replace(current(), bounds=True, check=False, step=False, show_source=False)
        return cast("CompiledKernel", self._get_ready(types, settings).compiled)

    def profile(self, griddim: Any, blockdim: Any, *arguments: Any, sharedmem: int = 0, **options: Any) -> Any:
        """Trace kernel[griddim, blockdim](*arguments) and return the profiler's account of what it does to memory.

        The arguments keep their values. Raises KernelError where no profiler is installed (hooks.py).

        sharedmem: bytes of dynamic shared memory; options: what the profiler accepts besides
        """
        profiler = find_profiler()
        if profiler is None:
            raise launch_error(
                f"{self.py_func.__name__}.profile(): no profiler is installed. groundup has one: install it "
                "(again) with `pip install -e .` in the folder that holds its pyproject.toml",
                self.py_func.__name__,
            )
        return profiler(self, griddim, blockdim, *arguments, sharedmem=sharedmem, **options)

    def specialize(self, *arguments: Any) -> Kernel:
        """A kernel for arguments of these types only, compiled now."""
        if self.specialized:
            raise RuntimeError(f"{self.py_func.__name__} accepts one combination of types already")
        types = self._arguments(arguments).types
        special = Kernel(self.py_func, self.targetoptions, [types])
        # Its text as it was when the kernel was defined: the file may have been edited since.
        special._written = self._written
        special._get_ready(types, current())
        return special

    def compile(self, signature: Any) -> Any:
        """Compile for the argument types of `signature` now, instead of at the first launch."""
        return self._get_ready(without_pointers(argument_types(signature, device=False)), current()).compiled

    def emulated_source(self, *arguments: Any) -> str:
        """The Python source that the emulator generates for arguments of these types.

        Without arguments, the types are those of the signature, or of the latest launch with new types. Raises
        KernelError if there is neither.
        """
        if arguments:
            return str(self._get_ready(self._arguments(arguments).types, current()).compiled.source)
        if self.signatures:
            return str(self._get_ready(without_pointers(self.signatures[0]), current()).compiled.source)
        if self._ready:
            return str(list(self._ready.values())[-1].compiled.source)
        name = self.py_func.__name__
        raise launch_error(f"{name} has not been launched: give emulated_source() the arguments of a launch", name)

    def recompile(self) -> None:
        """Compile again for all argument types so far, with the current values of globals."""
        known = list(self.compiled)
        with _compiling:
            self._ready.clear()
            self._traced.clear()
            self._frozen.clear()
        for arguments in known:
            self._get_ready(arguments, current())


def _types(extent: Any) -> Any:
    return tuple(map(type, extent)) if type(extent) is tuple else type(extent)


class Configured:
    """A kernel with its grid and block. A call launches it, and returns when every thread is done.

    griddim, blockdim: three ints each; sharedmem: bytes of dynamic shared memory; stream: the queue that it is put into
    """

    __slots__ = ("blockdim", "dispatcher", "griddim", "sharedmem", "stream")

    def __init__(
        self, kernel: Kernel, grid: limits.Extent, block: limits.Extent, dynamic_bytes: int, stream: Stream
    ) -> None:
        self.dispatcher, self.griddim, self.blockdim, self.sharedmem = kernel, grid, block, dynamic_bytes
        self.stream = stream

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        if keywords:
            name = self.dispatcher.py_func.__name__
            raise launch_error(
                f"{name}: a kernel's arguments are given by position, not by name: {', '.join(keywords)}", name
            )
        name = self.dispatcher.py_func.__name__
        observe("launch", self.stream, name, arguments)
        self.dispatcher.run(self.griddim, self.blockdim, self.sharedmem, arguments)
        observe("launched", self.stream, name, arguments)
