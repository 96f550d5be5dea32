"""A walk as the page gets it: compact JSON for one warp of the block, with what the whole block writes.

The keys are short, because there are thousands of steps:

    steps[i].l    [source, line, depth, phase, active]; active: a number in `active`, lists of [first, last] thread
            .o    the operation for which the threads wait, like "syncthreads"
            .a    accesses of the warp: t text, k kind, m array, n lanes (left out: all of the step's), p places,
                  x values, c cost: [sectors, sectors that would do] or [passes, passes without conflicts]
            .w    writes of the block: m array, n threads, p places, x values
            .v    variables of the warp: [depth, name, lanes, values]
            .r    what a shuffle or vote gave: n lanes, g given, x got

A list of equal values is sent as the value, one with equal differences as {"a": first, "d": difference}.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuda_emulator.inspection import Access, ArrayInfo, Step, Walk, count_passes, count_sectors
from shared.machine.processes import ROOT

WARP = 32
MOST_STEPS = 5000
DIGITS = 6
SECTOR = 32

Place = Callable[[str, int], tuple[str, int]]
"""(file, line) -> the same as it is to be shown."""


def as_it_is(file: str, line: int) -> tuple[str, int]:
    """A place that is shown as it is."""
    return file, line


def in_project(file: str, line: int) -> tuple[str, int]:
    """A place with a file of this project named from the folder that holds the packages, wherever that lies."""
    path = Path(file)
    return (path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else file), line


class Table:
    """Values that are sent once and named by their numbers."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, key: object, value: object = None) -> int:
        """The number of a value; key: what it is recognised by."""
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(key if value is None else value)
        return self._numbers[key]


def document(walk: Walk, warp: int, shown: Place = as_it_is) -> dict[str, Any]:
    """The walk for the page.

    warp: whose accesses and variables it has; shown: changes the places of lines
    Raises ValueError for a warp that the block does not have.
    """
    warps = -(-walk.threads // WARP)
    if not 0 <= warp < warps:
        raise ValueError(f"warp: expected a number from 0 to {warps - 1}, got {warp}")
    writer = _Writer(walk, warp, shown)
    steps = [writer.step(step) for step in walk.steps[:MOST_STEPS]]
    return {
        "kernel": walk.kernel,
        "grid": walk.grid,
        "block": walk.block,
        "number": walk.number,
        "place": walk.place,
        "warp": warp,
        "sources": writer.sources,
        "arrays": [_array(info) for info in walk.arrays],
        "texts": writer.texts.values,
        "active": writer.active.values,
        "barriers": [writer.line(*place) for place in walk.barriers],
        "fault": walk.fault,
        "faultLine": writer.fault_line(),
        "cut": walk.cut or len(walk.steps) > MOST_STEPS,
        "steps": steps,
    }


class _Writer:
    def __init__(self, walk: Walk, warp: int, shown: Place) -> None:
        self.walk, self.first = walk, warp * WARP
        self.texts, self.active = Table(), Table()
        self.sources: list[dict[str, Any]] = []
        self._ranges: list[tuple[str, int, int, int]] = []  # file, first and last line, number of the source
        self._firsts: list[int] = []
        for file, first, lines in walk.sources:
            if any(known[:2] == (file, first) for known in self._ranges):
                continue
            self._ranges.append((file, first, first + len(lines) - 1, len(self.sources)))
            self._firsts.append(first)
            shown_file, shown_first = shown(file, first)
            self.sources.append({"file": shown_file, "first": shown_first, "lines": lines})

    def line(self, file: str, line: int) -> list[int]:
        """[source, line as it is shown] of a place."""
        for known, first, last, number in self._ranges:
            if known == file and first <= line <= last:
                return [number, line - first + self.sources[number]["first"]]
        return [0, 0]

    def fault_line(self) -> list[int] | None:
        """The place of the error that ended the walk."""
        for known, first, last, _ in self._ranges:
            if first <= self.walk.fault_line <= last:
                return self.line(known, self.walk.fault_line)
        return None

    def step(self, step: Step) -> dict[str, Any]:
        """One step."""
        mark = self.walk.marks[step.mark]
        active = self.active.number(tuple(step.threads), _ranges(step.threads))
        fields: dict[str, Any] = {"l": [*self.line(mark.file, mark.line), step.depth, step.phase, active]}
        if step.collective:
            fields["o"] = step.collective
        lanes = self._lanes(step.threads)
        accesses = [described for access in step.accesses if (described := self._access(access, lanes))]
        writes = [self._write(access, step) for access in step.accesses if self._is_seen(access)]
        variables = self._variables(step, lanes)
        results = {thread - self.first: pair for thread, pair in step.results.items() if self._own(thread)}
        if accesses:
            fields["a"] = accesses
        if writes:
            fields["w"] = writes
        if variables:
            fields["v"] = variables
        if results:
            fields["r"] = {
                "n": sorted(results),
                "g": packed([value(results[lane][0]) for lane in sorted(results)]),
                "x": packed([value(results[lane][1]) for lane in sorted(results)]),
            }
        return fields

    def _own(self, thread: int) -> bool:
        return self.first <= thread < self.first + WARP

    def _lanes(self, threads: Sequence[int]) -> list[int]:
        return [thread - self.first for thread in threads if self._own(thread)]

    def _is_seen(self, access: Access) -> bool:
        """Whether the other warps can see it."""
        return access.kind != "read" and self.walk.arrays[access.array].space in ("global", "shared")

    def _access(self, access: Access, all_lanes: list[int]) -> dict[str, Any] | None:
        chosen = [i for i, thread in enumerate(access.threads) if self._own(thread)]
        if not chosen:
            return None
        lanes = [access.threads[i] - self.first for i in chosen]
        places = [access.places[i] for i in chosen]
        info = self.walk.arrays[access.array]
        made: dict[str, Any] = {
            "t": self.texts.number(self.walk.marks[access.mark].text),
            "k": ("read", "write", "atomic").index(access.kind),
            "m": access.array,
            "p": packed(places),
            "x": packed([value(access.values[i]) for i in chosen]),
        }
        if lanes != all_lanes:
            made["n"] = lanes
        if info.space in ("global", "shared"):
            made["c"] = cost(info, lanes, places)
        return made

    def _write(self, access: Access, step: Step) -> dict[str, Any]:
        made: dict[str, Any] = {
            "m": access.array,
            "p": packed(access.places),
            "x": packed([value(each) for each in access.values]),
        }
        if access.threads != step.threads:
            made["n"] = access.threads
        return made

    def _variables(self, step: Step, all_lanes: list[int]) -> list[list[Any]]:
        found: dict[tuple[int, str], tuple[list[int], list[Any]]] = {}
        for thread in sorted(step.changes):
            if self._own(thread):
                for depth, name, new in step.changes[thread]:
                    if isinstance(new, np.ndarray):  # the page draws the arrays
                        continue
                    lanes, values = found.setdefault((depth, name), ([], []))
                    lanes.append(thread - self.first)
                    values.append(value(new))
        return [
            [depth, name, None if lanes == all_lanes else lanes, packed(values)]
            for (depth, name), (lanes, values) in found.items()
        ]


def cost(info: ArrayInfo, lanes: Sequence[int], places: Sequence[int]) -> list[int]:
    """[sectors, sectors that would do] of a request to global memory, [passes, passes without conflicts] to shared.

    The lens counts them.
    """
    size = info.dtype.itemsize
    pairs = sorted((info.offset + place * size, lane) for lane, place in zip(lanes, places, strict=True))
    addresses, sizes = [address for address, _ in pairs], [size] * len(pairs)
    if info.space == "global":
        sectors, used = count_sectors.py_func(addresses, sizes, len(pairs))
        return [int(sectors), -(-int(used) // SECTOR)]
    passes, ideal, _ = count_passes.py_func(addresses, sizes, [lane for _, lane in pairs], len(pairs))
    return [int(passes), int(ideal)]


def value(item: object) -> Any:
    """A value as JSON: a number with six digits, "NaN" and "inf", or a text for anything that is no number."""
    if isinstance(item, bool | np.bool_):
        return bool(item)
    if isinstance(item, int | np.integer):
        return int(item) if abs(int(item)) < 2**53 else str(item)
    if isinstance(item, float | np.floating):
        number = float(item)
        if math.isnan(number):
            return "NaN"
        if math.isinf(number):
            return "inf" if number > 0 else "-inf"
        rounded = float(f"{number:.{DIGITS}g}")
        return int(rounded) if rounded.is_integer() and abs(rounded) < 10**DIGITS else rounded
    if isinstance(item, np.ndarray):
        return f"{item.dtype} {item.shape}"
    if isinstance(item, tuple):
        return f"({', '.join(str(value(part)) for part in item)})"
    if item is None or isinstance(item, complex | np.complexfloating):
        return str(item)
    return type(item).__name__


def packed(values: list[Any]) -> Any:
    """The list, shorter where it is regular."""
    if len(values) < 2:
        return values
    first = values[0]
    if all(type(each) is type(first) and each == first for each in values):
        return first
    if len(values) > 2 and all(type(each) is int for each in values):
        step = values[1] - first
        if all(later - earlier == step for earlier, later in itertools.pairwise(values)):
            return {"a": first, "d": step}
    return values


def _ranges(threads: Sequence[int]) -> list[list[int]]:
    """[[first, last], ...] of ascending numbers."""
    made: list[list[int]] = []
    for thread in threads:
        if made and made[-1][1] == thread - 1:
            made[-1][1] = thread
        else:
            made.append([thread, thread])
    return made


def _array(info: ArrayInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "space": info.space,
        "shape": info.shape,
        "dtype": str(info.dtype),
        "bytes": info.dtype.itemsize,
        "offset": info.offset,
    }
