"""One launch of a learner's kernel: NumPy arrays in, NumPy arrays out.

    Launch          how many blocks of how many threads
    any_grid        launches that find a missing guard and a missing grid-stride loop
    Out, Both       arguments that a kernel writes: Out is filled with NaN first, Both holds numbers that it also reads
    launched        the launch
    of_the_project  refuses what is not a kernel, or was not made by this project's cuda
    left_out        for an Exercise: recognises results in which elements were never written

On the emulator every launch is traced. Compiling takes longer than everything else here, so a kernel is compiled once,
both for its numbers and for its memory. Indices outside an array, barriers that only a part of a block reaches and
loops that never end are found on the way, with their line. On a GPU the device itself launches, and nothing is traced.

    def checks_of_multiply():
        kernel = module("kernels.dense").multiply
        return checks_of(Exercise(
            call=lambda a, mask, launch: launched(kernel, launch, a, mask, Out(a.shape)),
            reference=lambda a, mask, launch: a * mask,
            arguments=lambda rng, size: (random(rng, size[0]), random(rng, size[0]), size[1]),
            typical=(5, Launch(1, 8)),
            sizes=[(size, launch) for size in (1, 7, 33) for launch in any_grid(size)],
            memory=watched(kernel, Launch(2, 32), lambda rng: (*(random(rng, 64),) * 2, Out((64,))), COALESCED),
            guesses=[*left_out(lambda a, mask, launch: a * mask), *races()],
            …
        ))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from cuda_emulator import KernelError
from cuda_emulator.inspection import DeviceFunction, Kernel, tracing
from groundup.course.checks.check import Wrong
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_causes import (
    NO_GUARD,
    explained,
    inputs_kept,
    nothing_to_add_to,
    own_line,
)
from shared.contract import STAGES, Stage, StageUnavailable, load_part, load_stage

MOST_EVENTS = 1_000_000
"""Reads, writes and branches of one launch. Right answers have a few thousand; an endless loop soon has more."""

UNWRITTEN = -(2**31) + 7
"""Stands in for NaN in arrays of whole numbers."""

MARGIN = 1024
"""Numbers before and behind each output. On a GPU nothing else would notice a write beyond the edge."""

NO_STRIDE = "no grid-stride loop: what lies beyond the grid is left out; go on by cuda.gridsize(1) until the end"

ONE_THREAD = (
    "several threads compute the same number: blockIdx is a part of a thread's number, and gridsize of its step"
)

ONE_BLOCK = "only one block's part is there: threadIdx.x counts within a block, cuda.grid(1) through the whole grid"

RUNS = (
    "neighbouring threads reach numbers that lie far apart, as they do if each thread takes a run of neighbouring "
    "elements, or if they walk down a column: thread i has to take i, i + gridsize, …, counted along the rows"
)

INDEX = "a thread works on single numbers: index the arrays"

ENDLESS = "a loop that never ends: does its condition change in every round?"

ONE_ELEMENT = "two threads write one element: each must have an index of its own, and the block's number is part of it"


@dataclass(frozen=True)
class Launch:
    """grid: the number of blocks; block: the threads of a block; each a number, (x, y) or (x, y, z)."""

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]

    def __str__(self) -> str:
        return f"[{self.grid}, {self.block}]"


@dataclass(frozen=True)
class Out:
    """An argument that the kernel writes: full of NaN before the launch, or of UNWRITTEN if it holds whole numbers."""

    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class Both:
    """An argument that the kernel reads and writes. It holds these numbers before the launch."""

    array: np.ndarray


def module(name: str) -> Any:
    """A module of stage 4, such as "kernels.dense"; with the learner's function in it if that is graded."""
    return load_part(STAGES[3], name)


def backend() -> str:
    """ "gpu", "emulator" or "simulator"."""
    return str(module("backend").BACKEND.name)


def previous_floor() -> Stage:
    """Stage 3, or stage 2 if no C compiler is installed."""
    try:
        return load_stage(STAGES[2])
    except StageUnavailable:
        return load_stage(STAGES[1])


def random(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random float32 numbers of that shape."""
    return rng.standard_normal(shape).astype(np.float32)


def as_float(values: Any) -> np.ndarray:
    """A float32 array."""
    return np.array(values, np.float32)


def threads(launch: Launch) -> tuple[int, int]:
    """The number of threads: (in the whole grid, in a block)."""
    block = math.prod(np.atleast_1d(launch.block).tolist())
    return math.prod(np.atleast_1d(launch.grid).tolist()) * block, block


def any_grid(count: int) -> list[Launch]:
    """One-dimensional launches for `count` elements: more threads than elements, fewer, and many times fewer.

    The first finds a missing guard. The others find a kernel without a grid-stride loop.
    """
    return [Launch(-(-count // 4) + 1, 4), Launch(max(1, count // 8), 4), Launch(1, 1)]


def launched(kernel: Any, launch: Launch, *arguments: Any) -> Any:
    """kernel[grid, block](*arguments). Returns what the kernel wrote: an array for each Out and Both.

    arguments: NumPy arrays, numbers, Out, Both. An Out of whole numbers is returned as float64, with NaN where nothing
        was
        written.
    Raises Wrong, with the reason, if the launch fails, or changes an array that is neither Out nor Both.
    """
    if other_launch:
        return other_launch[-1](kernel, launch, *arguments)
    of_the_project(kernel)
    given = [filled(each) for each in arguments]
    if backend() == "emulator":
        after = _emulated(kernel, launch, given)
    else:
        after = _on_device(kernel, launch, given, [isinstance(each, Out | Both) for each in arguments])
    results = written(kernel, arguments, arguments, after)
    last_launch[:] = kernel, launch, arguments, results
    return results[0] if len(results) == 1 else tuple(results)


def written(kernel: Any, arguments: Sequence[Any], before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """What a launch wrote: an array for each Out and Both.

    before, after: the arguments' arrays before and after the launch; those that are no Out or Both must not differ
    Raises Wrong for an array that should only be read and was changed, and for `+=` on an Out.
    """
    names = parameters(kernel, len(arguments))
    writes = [isinstance(each, Out | Both) for each in arguments]
    inputs_kept(names, before, after, writes)
    results = [
        _unpoisoned(array) if isinstance(argument, Out) else array
        for argument, array in zip(arguments, after, strict=True)
        if isinstance(argument, Out | Both)
    ]
    fresh = [isinstance(each, Out) for each in arguments if isinstance(each, Out | Both)]
    places = [name for name, each in zip(names, arguments, strict=True) if isinstance(each, Out)]
    nothing_to_add_to(kernel, places, [each for each, new in zip(results, fresh, strict=True) if new])
    return results


def parameters(kernel: Any, count: int) -> Sequence[str]:
    """The names of a kernel's arguments."""
    code = getattr(getattr(kernel, "py_func", None), "__code__", None)
    return code.co_varnames[:count] if code else [f"argument {place}" for place in range(count)]


other_launch: list[Callable[..., Any]] = []
"""What makes the launches meanwhile, in place of `launched` and `line_by_line`: launched_again.py."""


last_launch: list[Any] = []
"""The last launch: kernel, launch, arguments, results. `races` traces it again, `left_early` runs it line by line."""


def of_the_project(function: Any, device: bool = False) -> None:
    """Raises Wrong for a plain function, and for a kernel that Numba's own cuda has made.

    device: whether a device function is expected, not a kernel
    """
    what, how = ("device function", "@cuda.jit(device=True)") if device else ("kernel", "@cuda.jit")
    if backend() != "emulator":
        right = not isinstance(function, FunctionType)
    elif device:
        right = isinstance(function, DeviceFunction)
    else:
        right = isinstance(function, Kernel)
    if not right:
        name = getattr(function, "__name__", repr(function))
        cause = f"is {how} above `def`, and is cuda imported from ..backend, not from numba?"
        raise Wrong(f"{name} is not a {what} of this project's cuda", cause=cause)


def filled(argument: Any) -> Any:
    """The argument that the kernel gets: for an Out or a Both a new array."""
    if isinstance(argument, Out):
        return np.full(argument.shape, np.nan if argument.dtype.startswith("float") else UNWRITTEN, argument.dtype)
    return argument.array.copy() if isinstance(argument, Both) else argument


def _unpoisoned(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "f":
        return array
    return np.where(array == UNWRITTEN, np.nan, array.astype(np.float64))


def _emulated(kernel: Any, launch: Launch, given: Sequence[Any]) -> list[Any]:
    """The arguments after a traced launch whose blocks run one after the other."""
    try:
        configured = kernel.configure(launch.grid, launch.block)
        prepared = kernel._arguments(tuple(given))
        copies = tracing.Copies(given, prepared.values, kernel.parameters)
        compiled = kernel.traced(prepared.types)
        _single_numbers(compiled.facts["TRACE"]["not_traced"])
        run = tracing.Run(compiled, configured.griddim, configured.blockdim, 0, MOST_EVENTS)
        for number in range(math.prod(configured.griddim)):
            fault = run.block_events(copies.values, number, kernel.source)
            if run.full:
                raise Wrong(f"it reads and writes more than {MOST_EVENTS:,} times, and was stopped", cause=ENDLESS)
            if fault is not None:
                raise fault
    except KernelError as error:
        raise explained(error) from error
    return list(copies.values)


def _single_numbers(not_traced: Sequence[tuple[str, int, str, str]]) -> None:
    """Raises Wrong for an expression on whole arrays. Numba would need fifteen seconds to compile it."""
    for file, line, text, _ in not_traced:
        raise Wrong(f"every thread computes with whole arrays: {text}", cause=INDEX, line=own_line(file, line))


def _on_device(kernel: Any, launch: Launch, arguments: Sequence[Any], written: Sequence[bool]) -> list[Any]:
    """The arguments after a launch on a GPU or in the simulator. The numbers around each output are checked."""
    cuda = module("backend").cuda
    around: dict[int, Any] = {}
    read: dict[int, Any] = {}
    sent: list[Any] = []
    for place, (value, writes) in enumerate(zip(arguments, written, strict=True)):
        if not isinstance(value, np.ndarray):
            sent.append(value)
        elif not writes:
            sent.append(cuda.to_device(value))
            read[place] = sent[-1]
        else:
            wide = np.full(value.size + 2 * MARGIN, UNWRITTEN, value.dtype)
            wide[MARGIN : MARGIN + value.size] = value.ravel()
            around[place] = cuda.to_device(wide)
            sent.append(around[place][MARGIN : MARGIN + value.size].reshape(value.shape))
    kernel[launch.grid, launch.block](*sent)
    after = list(arguments)
    for place, sent_array in read.items():
        after[place] = sent_array.copy_to_host()
    for place, wide in around.items():
        flat, size = wide.copy_to_host(), arguments[place].size
        if (np.delete(flat, slice(MARGIN, MARGIN + size)) != np.array(UNWRITTEN, flat.dtype)).any():
            raise Wrong("memory beyond the edge of an output was written", cause=NO_GUARD)
        after[place] = flat[MARGIN : MARGIN + size].reshape(arguments[place].shape)
    return after


def left_out(right: Callable[..., Any], before: Callable[..., Any] | None = None, output: str = "") -> list[Mistake]:
    """Known mistakes of a one-dimensional kernel: elements that it does not write.

    right: computes the right result from the exercise's arguments, its elements in the order of the threads. The last
        argument of the exercise is the Launch
    before: computes what the array held before; NaN for an Out
    """

    def only(is_done: Callable[[np.ndarray, int, int], np.ndarray]) -> Callable[..., Any]:
        def wrong(*arguments: Any) -> Any:
            result = np.array(right(*arguments), np.float64)
            old = np.full(result.shape, np.nan) if before is None else np.asarray(before(*arguments))
            done = is_done(np.arange(result.size).reshape(result.shape), *threads(arguments[-1]))
            return None if done.all() else np.where(done, result, old)

        return wrong

    return [
        Mistake(NO_STRIDE, only(lambda number, grid, block: number < grid), output),
        Mistake(ONE_BLOCK, only(lambda number, grid, block: number < block), output),
        Mistake(ONE_BLOCK, only(lambda number, grid, block: number % grid < block), output),
    ]
