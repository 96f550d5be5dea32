"""The blocks of a traced launch: they run one after another, and write events into one buffer.

Blocks that meet at barriers across the grid run in rounds, as in any launch (grid_barriers.py). Those that are not
traced run then too, compiled without events: the others read what they write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import errors

from ..errors import KernelError
from ..helpers.status import CODE, Stopped, launch_numbers, new_status
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
from ..trace import EVENT, Memory, NotTraced, Operations, Site
from . import limits
from .grid_barriers import Together
from .workers import interruptible

if TYPE_CHECKING:
    from ..compiler.compile import CompiledKernel
    from ..compiler.reading.source import FunctionSource


class Run:
    """The event buffer and the tables that traced code writes.

    bounds: index of each block's first event; counts: the counters at the end of the last complete block
    full: whether the buffer was too small
    rounds_of: of blocks that meet at barriers across the grid, for each event how many its block had passed; else None
    """

    def __init__(
        self, compiled: CompiledKernel, grid: limits.Extent, block: limits.Extent, dynamic_bytes: int, most_events: int
    ) -> None:
        from ..compiler.compile import workspace, workspace_bytes
        from ..compiler.writing.emit import rounded

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
        self.rounds_of: np.ndarray | None = None

    def block_events(self, values: Sequence[Any], number: int, source: FunctionSource) -> Exception | None:
        """Run one block. Returns its error, or None."""
        self.status[EPOCH] = 0
        self.rounds[:] = 0
        self.warp_epochs[:] = 0
        launch = launch_numbers(self.grid, self.block, number, number + 1, self.dynamic_bytes)
        run = self.compiled.facts["run"]
        fault = self.executed(
            lambda: run(*values, *self.compiled.constants, launch, self.status, self.workspace), source
        )
        if self.full:
            return None
        self.bounds.append(int(self.status[COUNT]))
        self.counts = self.counters.copy()
        return fault

    def executed(self, run: Callable[[], None], source: FunctionSource) -> Exception | None:
        """Call `run`, which runs traced code. Returns its error, or None; sets `full`."""
        try:
            interruptible(run, self.status)
        except errors.NumbaError as error:
            from ..compiler.analysis.infer import in_short

            raise source.error(f"Numba cannot compile this kernel: {in_short(error)}", None) from error
        except Stopped:
            self.full = self.status[CODE] == FULL
            return None if self.full else self.compiled.failure(self.status, self.grid, self.block)
        except Exception as error:  # Numba's own check of an index like A.T[i]; the trace reports it
            return KernelError(f"{source.name} raised {type(error).__name__}: {error}", filename=source.filename)
        return None

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

    def recorded(self) -> np.ndarray:
        """The events, those of each block together."""
        return self.events[: self.bounds[-1]]

    def finished(self, memories: list[Memory]) -> tuple[list[Site], np.ndarray, list[int], list[NotTraced]]:
        """(sites, events, bounds, not traced); events of stores that are not traced are removed and listed instead."""
        events, bounds = self.recorded(), self.bounds
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
            self.rounds_of = None if self.rounds_of is None else self.rounds_of[~whole]
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
                found.setdefault((file, line), [0, 0, 0, 0])[kind] += int(count)
        return [Operations(*place, *counts) for place, counts in sorted(found.items()) if any(counts)]

    def own_accesses(self) -> dict[int, int]:
        """{site: number of accesses to threads' own arrays}."""
        counters = zip(self.compiled.facts["TRACE"]["counters"], self.counts, strict=False)
        return {site: int(count) for (file, site, _), count in counters if file == "local" and count}


class RunTogether(Run):
    """A run of the traced blocks that meet at barriers across the grid.

    plain: the kernel compiled without events, for the blocks that are not traced
    """

    def __init__(
        self,
        compiled: CompiledKernel,
        plain: CompiledKernel,
        grid: limits.Extent,
        block: limits.Extent,
        dynamic_bytes: int,
        most_events: int,
    ) -> None:
        super().__init__(compiled, grid, block, dynamic_bytes, most_events)
        self.plain = plain
        self._pieces: list[tuple[int, int, int, int]] = []  # round, block, first event, end
        self._order = np.zeros(0, np.int64)

    def all_events(self, values: Sequence[Any], chosen: Sequence[int], source: FunctionSource) -> Exception | None:
        """Run all blocks, and record the events of the chosen ones. Returns the error that ended the run, or None."""
        traced = self.compiled.together(self.grid, self.block, self.dynamic_bytes)
        others = self.plain.together(self.grid, self.block, self.dynamic_bytes)
        assert traced is not None
        assert others is not None
        tables = {number: _Tables(self) for number in chosen}
        self.share, self.workspace = traced.share, traced.workspace
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        fault: Exception | None = None
        number_of_round = 0
        while fault is None and not self.full:
            for number in range(blocks):
                launch = launch_numbers(self.grid, self.block, number, number + 1, self.dynamic_bytes)
                if number in tables:
                    fault = self._traced_part(number_of_round, number, tables[number], traced, values, launch, source)
                else:
                    fault = self._plain_part(others, values, launch)
                    traced.waiting[number] = others.waiting[number]
                if fault is not None or self.full:
                    break
            else:
                try:
                    if not traced.go_on():
                        break
                except KernelError as error:
                    fault = error
                number_of_round += 1
        self._gather(chosen)
        self.workspace = traced.workspace[: traced.share]
        return fault

    def _traced_part(
        self,
        number_of_round: int,
        number: int,
        tables: _Tables,
        together: Together,
        values: Sequence[Any],
        launch: np.ndarray,
        source: FunctionSource,
    ) -> Exception | None:
        """Run a traced block to its next barrier across the grid."""
        tables.enter(self.status, together.workspace.ctypes.data + number * together.share, together.share)
        first, run = int(self.status[COUNT]), self.compiled.facts["run"]
        last = (self.status, *together.arguments)
        fault = self.executed(lambda: run(*values, *self.compiled.constants, launch, *last), source)
        tables.leave(self.status)
        self._pieces.append((number_of_round, number, first, int(self.status[COUNT])))
        self.counts = self.counters.copy()
        return fault

    def _plain_part(self, together: Together, values: Sequence[Any], launch: np.ndarray) -> Exception | None:
        """Run another block to its next barrier across the grid."""
        status, run = new_status(), self.plain.facts["run"]
        try:
            interruptible(lambda: run(*values, *self.plain.constants, launch, status, *together.arguments), status)
        except Stopped:
            return self.plain.failure(status, self.grid, self.block)
        return None

    def _gather(self, chosen: Sequence[int]) -> None:
        """Put the events of each block together, and note the rounds."""
        order, rounds, self.bounds = [], [], [0]
        start = self.workspace.ctypes.data
        for block in chosen:
            for number_of_round, number, first, end in self._pieces:
                if number == block:
                    order.append(np.arange(first, end))
                    rounds.append(np.full(end - first, number_of_round, np.int32))
                    addresses = self.events["address"][first:end]
                    low = start + number * self.share  # as if each block had the memory of the first, as elsewhere
                    inside = (addresses >= low) & (addresses < low + self.share)
                    addresses[inside] -= number * self.share
            self.bounds.append(sum(map(len, order)))
        self._order = np.concatenate(order) if order else self._order
        self.rounds_of = np.concatenate(rounds) if rounds else np.zeros(0, np.int32)

    def recorded(self) -> np.ndarray:
        """The events, those of each block together."""
        return self.events[self._order]


class _Tables:
    """What traced code counts for one block, while other blocks run."""

    def __init__(self, run: Run) -> None:
        self.rounds, self.warp_epochs = np.zeros_like(run.rounds), np.zeros_like(run.warp_epochs)
        self.epoch = 0
        self.own = int(run.status[OWN]) - run.workspace.ctypes.data

    def enter(self, status: np.ndarray, start: int, share: int) -> None:
        """The block goes on; its memory begins at `start`."""
        status[EPOCH] = self.epoch
        status[ROUNDS], status[WARP_EPOCHS] = self.rounds.ctypes.data, self.warp_epochs.ctypes.data
        status[OWN], status[OWN_END] = start + self.own, start + share

    def leave(self, status: np.ndarray) -> None:
        """The block waits, or has ended."""
        self.epoch = int(status[EPOCH])


def _strides(shape: Sequence[int], dtype: np.dtype) -> tuple[int, ...]:
    """The strides of a C-contiguous array."""
    strides, step = [], dtype.itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
