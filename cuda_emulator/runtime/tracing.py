"""A traced launch: a few of its blocks run on copies of the arguments, and record an event at every access.

The learner's arrays do not change, since the blocks write to the copies. Blocks that are not traced do not run: a
kernel whose blocks read results of other blocks is traced with the arrays as they were before the launch.
"""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import errors

from ..errors import KernelError
from ..helpers.status import CODE, Stopped
from ..helpers.trace import (
    CAPACITY,
    COUNT,
    COUNTERS,
    EPOCH,
    EVENTS,
    FULL,
    LOOPS,
    OWN,
    OWN_END,
    ROUNDS,
    TRACED_LENGTH,
    WARP_EPOCHS,
    WHOLE,
)
from ..trace import EVENT, Memory, NotTraced, Operations, Site, Trace
from . import limits
from .devicearray import DeviceNDArray

if TYPE_CHECKING:
    from ..compiler.compile import CompiledKernel
    from ..compiler.source import FunctionSource
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
) -> Trace:
    """Run some blocks of kernel[grid, block](*arguments) and return their trace.

    blocks: the number of blocks to trace, spread over the grid; or their linear numbers (x fastest); None for four, or
        as many of these as fit
    dynamic_bytes: bytes of dynamic shared memory; most_events: the largest number of events, 40 bytes each
    Raises KernelError for a kernel that cannot be compiled or launched, TypeError and ValueError for wrong arguments,
    and ValueError for a trace that would be too large. An error while the kernel runs is in the trace (`fault`).
    """
    configured = kernel.configure(grid, block, 0, dynamic_bytes)
    grid, block = configured.griddim, configured.blockdim
    given = kernel._arguments(tuple(arguments))
    compiled = kernel.traced(given.types)
    if configured.sharedmem:
        limits.shared_memory(compiled.shared_bytes, configured.sharedmem, kernel.__name__)
    copies = Copies(arguments, given.values, kernel._names)
    chosen = chosen_blocks(blocks, grid)
    run = Run(compiled, grid, block, configured.sharedmem, most_events)
    fault = None
    done: list[int] = []
    for number in chosen:
        fault = run.block_events(copies.values, number, kernel.source)
        if run.full and done and blocks is None:  # the caller did not ask for a number of blocks
            break
        done.append(number)
        if run.full:
            raise too_large(kernel.__name__, run, done, most_events)
        if fault is not None:
            break
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
        argument_types=[str(kind) for kind in given.types],
        arguments=[(name, described(value)) for name, value in zip(kernel._names, given.values, strict=True)],
        device_functions=[
            (each.filename, each.first_line, each.text.rstrip("\n").split("\n")) for each in called(kernel.source)
        ],
        not_traced=[*(NotTraced(*each) for each in compiled.facts["TRACE"]["not_traced"]), *skipped],
        dynamic_bytes=configured.sharedmem,
        shared_bytes=compiled.shared_bytes,
        local_bytes=compiled.facts["LOCAL_BYTES"],
        fault="" if fault is None else str(fault),
        fault_line=getattr(fault, "line", None) or 0,
        fence=compiled.facts["FENCE"],
    )


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
    if whole:
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
    from ..compiler import names
    from ..compiler.functions import DeviceFunction

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
        self.memories.append(
            Memory(
                name,
                "global",
                address,
                highest - lowest,
                array.shape,
                array.strides,
                array.dtype,
                offset + lowest - start,
            )
        )
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


# ---------------------------------------------------------------- the run


class Run:
    """The event buffer and the tables that traced code writes.

    bounds: index of each block's first event; counts: the counters at the end of the last complete block
    full: whether the buffer was too small
    """

    def __init__(
        self, compiled: CompiledKernel, grid: limits.Extent, block: limits.Extent, dynamic_bytes: int, most_events: int
    ) -> None:
        from ..compiler.compile import workspace, workspace_bytes
        from ..compiler.emit import rounded

        self.compiled, self.grid, self.block, self.dynamic_bytes = compiled, grid, block, dynamic_bytes
        tables = compiled.facts["TRACE"]
        threads = block[0] * block[1] * block[2]
        self.events = np.empty(most_events, EVENT)
        self.rounds = np.zeros((threads, max(1, tables["loops"])), np.int64)
        self.warp_epochs = np.zeros(threads, np.int64)
        self.counters = np.zeros(max(1, len(tables["counters"])), np.int64)
        self.workspace = workspace(workspace_bytes(compiled.facts, block, dynamic_bytes))
        self.status = np.zeros(TRACED_LENGTH, np.int64)
        for word, table in (
            (EVENTS, self.events),
            (ROUNDS, self.rounds),
            (WARP_EPOCHS, self.warp_epochs),
            (COUNTERS, self.counters),
        ):
            self.status[word] = table.ctypes.data
        own = compiled.facts["BLOCK_BYTES"] + rounded(dynamic_bytes)
        self.status[OWN] = self.workspace.ctypes.data + own
        self.status[OWN_END] = self.workspace.ctypes.data + self.workspace.nbytes
        self.status[CAPACITY], self.status[LOOPS] = most_events, self.rounds.shape[1]
        self.bounds = [0]
        self.counts = self.counters.copy()
        self.full = False

    def block_events(self, values: Sequence[Any], number: int, source: FunctionSource) -> Exception | None:
        """Run one block. Returns its error, or None."""
        self.status[EPOCH] = 0
        self.rounds[:] = 0
        self.warp_epochs[:] = 0
        launch = (self.grid, self.block, number, number + 1, self.dynamic_bytes)
        fault: Exception | None = None
        try:
            self.compiled.facts["run"](*values, *self.compiled.constants, *launch, self.status, self.workspace)
        except errors.NumbaError as error:
            from ..compiler.infer import in_short

            raise source.error(f"Numba cannot compile this kernel: {in_short(error)}", None) from error
        except Stopped:
            self.full = self.status[CODE] == FULL
            if self.full:
                return None
            fault = self.compiled.failure(self.status, self.grid, self.block)
        except Exception as error:  # Numba's own check of an index like A.T[i]; the trace reports it
            fault = KernelError(f"{source.name} raised {type(error).__name__}: {error}", filename=source.filename)
        self.bounds.append(int(self.status[COUNT]))
        self.counts = self.counters.copy()
        return fault

    def memories(self) -> list[Memory]:
        """The places of the arrays of a block, and of its threads, in the workspace."""
        start, found = self.workspace.ctypes.data, []
        end_of_shared = int(self.status[OWN]) - start
        for name, space, offset, nbytes, shape, dtype in self.compiled.facts["MEMORY"]:
            kind = np.dtype(dtype)
            if nbytes < 0:
                shape, nbytes = (self.dynamic_bytes // kind.itemsize,), self.dynamic_bytes
            found.append(Memory(name, space, start + offset, nbytes, tuple(shape), _strides(shape, kind), kind))
        rest = self.workspace.nbytes - end_of_shared
        if rest > 0:
            found.append(
                Memory("of each thread", "local", start + end_of_shared, rest, (rest,), (1,), np.dtype(np.uint8))
            )
        return found

    def finished(self, memories: list[Memory]) -> tuple[list[Site], np.ndarray, list[int], list[NotTraced]]:
        """(sites, events, bounds, not traced); events of stores that are not traced are removed and listed instead."""
        events, bounds = self.events[: self.bounds[-1]], self.bounds
        sites = [
            Site(number, file, line, column, kind, array, text, function, space)
            for number, (file, line, column, kind, array, text, function, space) in enumerate(
                self.compiled.facts["TRACE"]["sites"]
            )
        ]
        skipped = []
        whole = events["flags"] & WHOLE != 0
        if whole.any():
            for number in np.unique(events["site"][whole]):
                site = sites[number]
                skipped.append(NotTraced(site.file, site.line, site.text, "it stores several elements at once"))
            new_index = np.concatenate([[0], np.cumsum(~whole)])
            events, bounds = events[~whole], [int(new_index[bound]) for bound in bounds]
        self._find_frames(events, sites, memories)
        return sites, events, bounds, skipped

    def _find_frames(self, events: np.ndarray, sites: list[Site], memories: list[Memory]) -> None:
        """Mark sites in device functions as local if their addresses are in no known array.

        The argument is then a thread's own array, in the stack frame of the caller.
        """
        for number, site in enumerate(sites):
            if site.kind not in ("load", "store", "atomic") or site.space not in ("", "local"):
                continue
            addresses = events["address"][events["site"] == number]
            inside = np.zeros(len(addresses), bool)
            for memory in memories:
                inside |= (addresses >= memory.address) & (addresses < memory.address + memory.nbytes)
            if len(addresses) and not inside.any():
                sites[number] = replace(site, space="local")

    def operations(self) -> list[Operations]:
        """The floating-point operations of each line."""
        found: dict[tuple[str, int], list[int]] = {}
        for (file, line, kind), count in zip(self.compiled.facts["TRACE"]["counters"], self.counts, strict=False):
            if file != "local":
                found.setdefault((file, line), [0, 0, 0])[kind] += int(count)
        return [Operations(*place, *counts) for place, counts in sorted(found.items()) if any(counts)]

    def own_accesses(self) -> dict[int, int]:
        """{site: number of accesses to threads' own arrays}."""
        counters = zip(self.compiled.facts["TRACE"]["counters"], self.counts, strict=False)
        return {site: int(count) for (file, site, _), count in counters if file == "local" and count}


def _strides(shape: Sequence[int], dtype: np.dtype) -> tuple[int, ...]:
    """The strides of a C-contiguous array."""
    strides, step = [], dtype.itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
