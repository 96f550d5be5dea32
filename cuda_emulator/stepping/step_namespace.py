"""The module `cuda` in step mode.

One object replaces the module `cuda` in the learner's code while the kernel runs. The scheduler (step.py) sets its
`thread` before it runs a thread; then cuda.threadIdx.x belongs to that thread. So `p cuda.grid(1)` works at a pdb
prompt, too.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Generator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..compiler.diagnoses import position, unassigned
from ..compiler.reading.statics import as_dtype
from ..errors import KernelError
from ..intrinsics import FP16
from ..runtime.limits import SHARED_BYTES, shared_memory
from .step_memory import Atomics, Checked, fresh_array
from .step_numbers import convert, exact, plain, strong

#: (file, line, column) of a call that declares an array.
Site = tuple[str, int, int]


class Dim3(NamedTuple):
    """Three ints: threadIdx, blockIdx, blockDim or gridDim."""

    x: int
    y: int
    z: int


def dim3_at(linear: int, extent: tuple[int, int, int]) -> Dim3:
    """The index of the thread or block with this linear number, x fastest."""
    return Dim3(*position(linear, extent))


@dataclass(eq=False)
class Thread:
    """One CUDA thread.

    linear: its linear number in its block, x fastest
    request: (name, *arguments) of the collective where it waits; None while it runs and after its end
    answer: the collective's result for this thread
    left: the line of the `return` that ended it; LAST if it reached the kernel's end; None while it is alive
    """

    linear: int
    index: Dim3
    block: Dim3
    generator: Generator[tuple[Any, ...], Any, int | None] | None = None
    request: tuple[Any, ...] | None = None
    answer: Any = None
    left: int | None = None
    local: dict[Site, np.ndarray] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"block {tuple(self.block)}, thread {tuple(self.index)}"


LAST = sys.maxsize


class Arrays:
    """cuda.shared, cuda.local or cuda.const: it has one function, which the rewritten kernel calls with a site."""

    def __init__(self, **functions: Any) -> None:
        self.__dict__.update(functions)


class Namespace:
    """`cuda` inside a kernel.

    grid_dim, block_dim: gridDim and blockDim of the launch
    dynamic_bytes: bytes of dynamic shared memory; most_shared: the most that a block may have, with its shared arrays
    kernel: its name, for messages
    """

    warpsize = 32

    def __init__(
        self,
        grid_dim: Dim3,
        block_dim: Dim3,
        dynamic_bytes: int,
        poison: bool,
        kernel: str,
        most_shared: int = SHARED_BYTES,
    ) -> None:
        self.gridDim, self.blockDim = grid_dim, block_dim
        self.thread: Thread | None = None
        self._dynamic_bytes, self._poison, self._kernel = dynamic_bytes, poison, kernel
        self._most_shared = most_shared
        self._constants: dict[Site, np.ndarray] = {}
        self.shared, self.local = Arrays(array=self._shared_array), Arrays(array=self._local_array)
        self.const, self.atomic = Arrays(array_like=self._constant_array), Atomics()
        self.fp16 = Arrays(**HALVES)
        self.cg = Arrays(this_grid=lambda: None)  # its sync() is rewritten, and nothing else is asked of it
        self.new_block()

    def new_block(self) -> None:
        """Remove the shared memory of the last block."""
        self.memory = {}, fresh_array(self._dynamic_bytes, np.dtype(np.uint8), self._poison)

    @property
    def memory(self) -> tuple[dict[Site, np.ndarray], np.ndarray]:
        """The shared memory of the running block: its arrays, and the dynamic memory."""
        return self._shared, self._dynamic

    @memory.setter
    def memory(self, memory: tuple[dict[Site, np.ndarray], np.ndarray]) -> None:
        self._shared, self._dynamic = memory

    def __getattr__(self, name: str) -> Any:
        """cuda.random and cuda.libdevice, whose functions are written for kernels."""
        if name in ("random", "libdevice"):
            return importlib.import_module(f"..runtime.{name}", __package__)
        raise AttributeError(f"the emulator's cuda has no {name!r}")

    # ---- the running thread

    @property
    def running(self) -> Thread:
        """The running thread. Raises KernelError if none runs."""
        if self.thread is None:
            raise KernelError("no thread of a kernel is running")
        return self.thread

    @property
    def threadIdx(self) -> Dim3:
        return self.running.index

    @property
    def blockIdx(self) -> Dim3:
        return self.running.block

    @property
    def laneid(self) -> int:
        return self.running.linear % self.warpsize

    def grid(self, ndim: int) -> Any:
        """The thread's position in the whole grid: an int, or a tuple of 2 or 3."""
        thread = self.running
        place = tuple(thread.block[i] * self.blockDim[i] + thread.index[i] for i in range(ndim))
        return place[0] if ndim == 1 else place

    def gridsize(self, ndim: int) -> Any:
        """The number of threads of the grid along each axis: an int, or a tuple of 2 or 3."""
        size = tuple(self.gridDim[i] * self.blockDim[i] for i in range(ndim))
        return size[0] if ndim == 1 else size

    def at_path(self, path: str) -> Any:
        """The value of a name imported from cuda, like `atomic.add`; None for a collective, which is rewritten."""
        value: Any = self
        for name in path.split("."):
            value = getattr(value, name, None)
        return value

    # ---- errors

    def error(self, message: str) -> KernelError:
        """A KernelError that points to the current line of the kernel."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__cuda__") is not self:
            frame = frame.f_back
        return KernelError(
            message,
            filename=frame.f_code.co_filename,
            line=frame.f_lineno,
            kernel=self._kernel,
        )

    def raised(self, statement: str) -> KernelError:
        """The error for a `raise`, or for an `assert` that is false."""
        return self.error(f"{statement}: in {self.running}")

    def unassigned(self, problem: Exception) -> KernelError | None:
        """The error for a variable that the running thread has not assigned; None if `problem` says something else."""
        variable = re.search(r"variable '(\w+)'", str(problem)) if isinstance(problem, NameError) else None
        if variable is None:
            return None
        frames = [each for each in traceback.walk_tb(problem.__traceback__) if "__cuda__" in each[0].f_globals]
        frame, line = frames[-1]
        return KernelError(
            unassigned(variable[1], str(self.running)),
            filename=frame.f_code.co_filename,
            line=line,
            kernel=self._kernel,
        )

    # ---- memory

    def checked(self, value: Any, name: str) -> Any:
        """`value` before it is indexed: an array is wrapped in its checks, any other value is returned unchanged."""
        if not isinstance(value, np.ndarray):
            return value
        return Checked(value, name, self.error, lambda: str(self.running))

    def _shared_array(self, site: Site, shape: Any, dtype: Any) -> np.ndarray:
        kind = as_dtype(dtype)
        if shape in (0, (0,)):
            return self._dynamic[: self._dynamic_bytes // kind.itemsize * kind.itemsize].view(kind)
        if site not in self._shared:
            self._shared[site] = fresh_array(shape, kind, self._poison)
            used = sum(array.nbytes for array in self._shared.values())
            shared_memory(used, self._dynamic_bytes, self._kernel, self._most_shared)
        return self._shared[site]

    def _local_array(self, site: Site, shape: Any, dtype: Any) -> np.ndarray:
        local = self.running.local
        if site not in local:
            local[site] = fresh_array(shape, as_dtype(dtype), self._poison)
        return local[site]

    def _constant_array(self, site: Site, array: Any) -> np.ndarray:
        if site not in self._constants:
            self._constants[site] = np.array(array)
            self._constants[site].flags.writeable = False
        return self._constants[site]

    # ---- single instructions

    def popc(self, x: Any) -> Any:
        """The number of bits that are 1."""
        bits, _ = _bits(x)
        return _same(x, bits.bit_count())

    def clz(self, x: Any) -> Any:
        """The number of zeros above the highest 1."""
        bits, width = _bits(x)
        return _same(x, width - bits.bit_length())

    def ffs(self, x: Any) -> Any:
        """The position of the lowest 1, counted from 1; 0 for 0."""
        bits, _ = _bits(x)
        return np.uint32((bits & -bits).bit_length())

    def brev(self, x: Any) -> Any:
        """The bits in reverse, as uint64 for a uint64, else as uint32."""
        kind = np.uint64 if isinstance(x, np.uint64) else np.uint32
        width = 64 if kind is np.uint64 else 32
        return kind(int(f"{int(convert(kind, x)):0{width}b}"[::-1], 2))

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded once."""
        kind = _float_of(a, b, c)
        a, b, c = float(a), float(b), float(c)
        if not all(np.isfinite(value) for value in (a, b, c)):
            return convert(kind, np.float64(a) * b + c)
        return convert(kind, float(Fraction(a) * Fraction(b) + Fraction(c)))

    def selp(self, predicate: Any, a: Any, b: Any) -> Any:
        """a if the predicate is true, else b."""
        return a if predicate else b

    def cbrt(self, x: Any) -> Any:
        """The cube root."""
        return convert(_float_of(x), np.cbrt(np.float64(exact(x))))

    def rsqrt(self, x: Any) -> Any:
        """1 / sqrt(x)."""
        return convert(_float_of(x), 1 / np.sqrt(np.float64(exact(x))))

    def lanemask_lt(self) -> Any:
        """A 1 for every lane below the thread's own."""
        return np.uint32((1 << int(self.laneid)) - 1)

    def threadfence(self) -> None:
        """Nothing to do: every thread sees all earlier writes."""

    threadfence_block = threadfence_system = threadfence

    def nanosleep(self, nanoseconds: Any) -> None:
        """Nothing to do: the other threads run when this one waits."""


def _half(computed: str) -> Any:
    """A function of cuda.fp16, from what it computes of a, b and c."""
    function = eval(f"lambda a, b, c: {computed}", {"np": np})

    def of_halves(a: Any, b: Any = 0, c: Any = 0) -> Any:
        with np.errstate(all="ignore"):
            result = function(*(convert(np.float16, each) for each in (a, b, c)))
        return bool(result) if isinstance(result, np.bool_) else np.float16(result)

    return of_halves


HALVES = {name: _half(computed) for name, computed in FP16.items()}


def _bits(x: Any) -> tuple[int, int]:
    """(the bits of an integer as an unsigned number, their number)."""
    width = 8 * np.asarray(strong(x)).itemsize
    return int(x) & ((1 << width) - 1), width


def _same(x: Any, value: int) -> Any:
    """`value` in the type of x."""
    return plain(strong(x).dtype.type(value)) if not isinstance(x, bool) else np.int8(value)


def _float_of(*values: Any) -> Any:
    """float32 if every value fits into it, else float64."""
    small = (np.float32, np.bool_, np.int8, np.int16, np.uint8, np.uint16, bool)
    return np.float32 if all(isinstance(value, small) for value in values) else np.float64
