"""A traced launch: a few of its blocks run on copies of the arguments, and record an event at every access.

The learner's arrays do not change, since the blocks write to the copies. Blocks that are not traced do not run, unless
the blocks meet at barriers across the grid (trace_run.py): any other kernel whose blocks read results of other blocks
is traced with the arrays as they were before the launch.
"""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..trace import Memory, NotTraced, Trace
from . import limits
from .devicearray import DeviceNDArray
from .trace_run import Run, RunTogether
from .unwritten import unwritten_bytes

if TYPE_CHECKING:
    from ..compiler.compile import CompiledKernel
    from ..compiler.reading.source import FunctionSource
    from .dispatcher import Kernel

MOST_EVENTS = 8_000_000
"""320 MB of address space. The system provides memory for it only where events are written."""

ALIGNED = 256
"""Bytes: an allocation on a device starts at a multiple of this."""


def trace_launch(
    kernel: Kernel,
    grid: Any,
    block: Any,
    arguments: Sequence[Any],
    dynamic_bytes: int = 0,
    blocks: int | Sequence[int] | None = None,
    most_events: int = MOST_EVENTS,
    cut: bool = False,
    accesses_only: bool = False,
) -> Trace:
    """Run some blocks of kernel[grid, block](*arguments) and return their trace.

    blocks: the number of blocks to trace, spread over the grid; or their linear numbers (x fastest); None for four, or
        as many of these as fit
    dynamic_bytes: bytes of dynamic shared memory; most_events: the largest number of events, 40 bytes each
    cut: keep the events of a block that does not fit, up to the last that does, in place of an error
    accesses_only: without the conditions, shuffles, operations and loops, which takes less time to compile
    Raises KernelError for a kernel that cannot be compiled or launched, TypeError and ValueError for wrong arguments,
    and ValueError for a trace that would be too large. An error while the kernel runs is in the trace (`fault`).
    """
    configured = kernel.configure(grid, block, 0, dynamic_bytes)
    grid, block = configured.griddim, configured.blockdim
    converted = kernel._arguments(tuple(arguments))
    compiled = kernel.traced(converted.types, accesses_only)
    if configured.sharedmem:
        limits.shared_memory(compiled.shared_bytes, configured.sharedmem, kernel.__name__, kernel.most_shared)
    copies = Copies(arguments, converted.values, kernel.parameters)
    chosen = chosen_blocks(blocks, grid)
    run: Run
    if compiled.cooperative:
        limits.together(grid, block, compiled.shared_bytes + configured.sharedmem, kernel.__name__)
        plain = kernel.plain(converted.types)
        run = RunTogether(compiled, plain, grid, block, configured.sharedmem, most_events)
        done = list(chosen)
        fault = run.all_events(copies.values, done, kernel.source)
        while run.full and not cut:  # fewer blocks, from the start
            if len(done) == 1 or blocks is not None:
                raise too_large(kernel.__name__, run, done, most_events)
            done = done[: len(done) // 2]
            copies = Copies(arguments, converted.values, kernel.parameters)
            run = RunTogether(compiled, plain, grid, block, configured.sharedmem, most_events)
            fault = run.all_events(copies.values, done, kernel.source)
    else:
        run = Run(compiled, grid, block, configured.sharedmem, most_events)
        done, fault = traced_apart(run, copies.values, chosen, kernel, blocks is None, cut)
    memories = [*copies.memories, *constant_memories(compiled), *run.memories()]
    sites, events, bounds, skipped = run.finished(memories)
    return Trace(
        kernel=kernel.__name__,
        file=kernel.source.filename,
        first_line=kernel.source.first_line,
        source=kernel.source.text.rstrip("\n").split("\n"),
        grid=grid,
        block=block,
        blocks=done,
        bounds=bounds,
        events=events,
        sites=sites,
        memories=memories,
        operations=run.operations(),
        own_accesses=run.own_accesses(),
        argument_types=[str(kind) for kind in converted.types],
        arguments=[(name, described(value)) for name, value in zip(kernel.parameters, converted.values, strict=True)],
        device_functions=[
            (code.filename, code.first_line, code.text.rstrip("\n").split("\n")) for code in called(kernel.source)
        ],
        not_traced=[*(NotTraced(*fields) for fields in compiled.facts["TRACE"]["not_traced"]), *skipped],
        dynamic_bytes=configured.sharedmem,
        shared_bytes=compiled.shared_bytes,
        local_bytes=compiled.facts["LOCAL_BYTES"],
        fault="" if fault is None else str(fault),
        fault_line=getattr(fault, "line", None) or 0,
        fence=compiled.facts["FENCE"],
        cut=run.full and cut,
        rounds=run.rounds_of,
    )


def traced_apart(
    run: Run, values: Sequence[Any], chosen: Sequence[int], kernel: Kernel, fewer: bool, cut: bool
) -> tuple[list[int], Exception | None]:
    """Trace blocks one after another. Returns those that were traced, and the error that ended the run, or None.

    fewer: whether to trace those that fit, if not all do
    """
    done: list[int] = []
    for number in chosen:
        fault = run.block_events(values, number, kernel.source)
        if run.full and cut:
            run.bounds.append(len(run.events))
            return [*done, number], None
        if run.full and done and fewer:
            return done, None
        done.append(number)
        if run.full:
            raise too_large(kernel.__name__, run, done, len(run.events))
        if fault is not None:
            return done, fault
    return done, None


def chosen_blocks(blocks: int | Sequence[int] | None, grid: limits.Extent) -> list[int]:
    """The blocks to trace, ascending; for None the first two, one in the middle and the last."""
    count = grid[0] * grid[1] * grid[2]
    if blocks is None:
        return sorted({0, min(1, count - 1), count // 2, count - 1})
    if isinstance(blocks, int):
        if blocks < 1:
            raise ValueError(f"blocks: expected at least 1 block to trace, got {blocks}")
        wanted = min(int(blocks), count)
        return sorted({round(i * (count - 1) / max(wanted - 1, 1)) for i in range(wanted)})
    chosen = sorted({int(each) for each in blocks})
    if not chosen or chosen[0] < 0 or chosen[-1] >= count:
        raise ValueError(
            f"blocks: expected numbers from 0 to {count - 1}, the blocks of the grid {grid}, got {list(blocks)}"
        )
    return chosen


def too_large(name: str, run: Run, done: list[int], most: int) -> ValueError:
    """The error for a trace that does not fit, with a smaller request that would."""
    whole = len(run.bounds) - 1  # blocks that fitted
    if run.rounds_of is not None:  # blocks that meet at barriers, none of which has reached its end
        advice = "trace fewer blocks, or a smaller problem" if len(done) > 1 else "trace a smaller problem"
    elif whole:
        advice = f"{run.bounds[1]:,} are from the first; trace fewer, with blocks={whole}"
    else:
        advice = "one block alone makes more: trace a smaller problem, whose inner loops have fewer iterations"
    return ValueError(f"{name}: the trace of {len(done)} blocks would hold more than {most:,} events: {advice}")


def described(value: Any) -> str:
    """The text for an argument, like "float32 (64, 64)" or "7"."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    if isinstance(value, tuple):
        return f"({', '.join(map(described, value))})"
    return str(value)


def called(source: FunctionSource) -> list[FunctionSource]:
    """The device functions that a kernel calls, directly or through others, each once."""
    from ..compiler.functions import DeviceFunction
    from ..compiler.reading import names

    found: dict[int, FunctionSource] = {}

    def follow(function: FunctionSource) -> None:
        for node in ast.walk(function.tree):
            value = names.look_up(function, node.func) if isinstance(node, ast.Call) else None
            if isinstance(value, DeviceFunction) and id(value.source) not in found:
                found[id(value.source)] = value.source
                follow(value.source)

    follow(source)
    return list(found.values())


# ---------------------------------------------------------------- arguments


class Copies:
    """Copies of the arguments. An array's copy has the same offset from the start of its allocation as the original,
    and arrays that share memory share it in the copy, too.

    values: the arguments for the kernel; memories: the places of its arrays
    """

    def __init__(self, given: Sequence[Any], values: Sequence[Any], names: Sequence[str]) -> None:
        self.memories: list[Memory] = []
        self._blocks = self._allocate(list(_arrays(given, values)))
        self.values = [self._copied(value, name) for value, name in zip(values, names, strict=True)]

    def _allocate(self, arrays: list[tuple[np.ndarray, int]]) -> list[tuple[int, int, int, np.ndarray]]:
        """(start, end, offset in its allocation, copy) for each contiguous range of memory that arrays occupy."""
        runs: list[list[int]] = []
        for start, end, offset in sorted((*_extent(array), offset) for array, offset in arrays if array.size):
            if runs and start < runs[-1][1]:
                runs[-1][1] = max(runs[-1][1], end)
            else:
                runs.append([start, end, offset])
        made = []
        for start, end, offset in runs:
            memory = np.empty(end - start + 2 * ALIGNED, np.uint8)
            at = (offset - memory.ctypes.data) % ALIGNED
            copy = memory[at : at + end - start]
            ctypes.memmove(copy.ctypes.data, start, end - start)
            made.append((start, end, offset, copy))
        return made

    def _copied(self, value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, np.void):
            return np.array([value])[0]
        if isinstance(value, tuple):
            parts = [self._copied(part, f"{name}[{place}]") for place, part in enumerate(value)]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    def _array(self, array: np.ndarray, name: str) -> np.ndarray:
        if not array.size:
            return array
        lowest, highest = _extent(array)
        start, _, offset, copy = next(each for each in self._blocks if each[0] <= lowest < each[1])
        first = array.__array_interface__["data"][0]
        same = np.ndarray(array.shape, array.dtype, copy, first - start, array.strides)
        same.flags.writeable = array.flags.writeable
        address = copy.ctypes.data + lowest - start
        mask = unwritten_bytes(array)
        memory = Memory(name, "global", address, highest - lowest, array.shape, array.strides, array.dtype)
        unwritten = None if mask is None else mask.copy()
        self.memories.append(replace(memory, offset=offset + lowest - start, unwritten=unwritten))
        return same


def _arrays(given: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[np.ndarray, int]]:
    """(array, offset in its allocation) of each array among the arguments."""
    for asked, value in zip(given, values, strict=True):
        if isinstance(value, tuple):
            yield from _arrays(asked, value)
        elif isinstance(value, np.ndarray):
            offset = 0  # on a device, a host array is copied to its own allocation
            if isinstance(asked, DeviceNDArray):
                owner = value
                while isinstance(owner.base, np.ndarray):
                    owner = owner.base
                offset = _extent(value)[0] - _extent(owner)[0] if value.size and owner.size else 0
            yield value, offset


def _extent(array: np.ndarray) -> tuple[int, int]:
    """The addresses of its first byte, and of the byte after its last."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def constant_memories(compiled: CompiledKernel) -> list[Memory]:
    """The places of the global arrays that the kernel reads; a device keeps them in constant memory."""
    return [
        Memory(name, "constant", _extent(array)[0], array.nbytes, array.shape, array.strides, array.dtype)
        for name, array in zip(compiled.facts["CONSTANT_NAMES"], compiled.constants, strict=True)
        if array.size
    ]
