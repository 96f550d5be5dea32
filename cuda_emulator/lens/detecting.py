"""Find races and uninitialised reads of a launch for check mode (`cuda-emulator check`), without the other numbers.

A launch is traced in all its blocks, if its events fit. Of a larger one a sample is traced: blocks that are neighbours
in each direction, one in the middle, the last, and as many others as fit.
"""

from __future__ import annotations

import ast
import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler.diagnoses import position
from ..compiler.reading.names import look_up
from ..errors import KernelError
from ..hooks import Detection, Found, extensions
from ..runtime.devicearray import DeviceNDArray
from ..runtime.tracing import trace_launch
from ..trace import Site, Trace
from ..words.numbers import listed
from .analysis import analyse
from .doubles import double_lines, may_widen, reason
from .granules import number_granules
from .memories import KINDS, find_places
from .profile import Party, Race, Uninitialised
from .races import find_races
from .uninitialised import find_uninitialised

MOST_EVENTS = 2_000_000
"""The events of a launch that is looked at whole. A million takes about a fifth of a second."""

Extent = tuple[int, int, int]


def detect(
    kernel: Any, grid: Extent, block: Extent, arguments: Sequence[Any], sharedmem: int, number: int = 1
) -> Detection:
    """The races and uninitialised reads of kernel[grid, block](*arguments), the `number`-th launch of its name."""
    count = grid[0] * grid[1] * grid[2]
    more = command(kernel, number)
    try:
        trace = _traced(kernel, grid, block, arguments, sharedmem)
    except KernelError as error:  # the launch itself may succeed: only its trace did not
        reason = f"its accesses could not be recorded: {error.sentence}"
        return Detection(grid_blocks=count, unjudged=(reason,), more=more)
    kinds = np.array([KINDS.index(site.kind) for site in trace.sites], np.int64)
    places = find_places(trace, kinds)
    granules = number_granules(trace, places, kinds)
    unjudged: list[str] = []
    races = find_races(trace, places, granules, kinds, unjudged)
    # Writes may be missing from a block that was cut: its reads cannot be judged.
    unwritten = [] if trace.cut else find_uninitialised(trace, places, granules, kinds, unjudged)
    unjudged += [f"line {gap.line} was not looked at: {gap.text}: {gap.reason}" for gap in trace.not_traced]
    return Detection(
        races=tuple(_each_once(races, kernel, trace)),
        unwritten=tuple(_unwritten(read, trace) for read in unwritten),
        blocks=len(trace.blocks),
        grid_blocks=count,
        cut=trace.cut,
        unjudged=tuple(dict.fromkeys(unjudged)),
        remarks=_float64(kernel, grid, block, arguments, sharedmem, more) if number == 1 else (),
        more=more,
    )


def _float64(
    kernel: Any, grid: Extent, block: Extent, arguments: Sequence[Any], sharedmem: int, more: str
) -> tuple[str, ...]:
    """A sentence about the first line that computes in float64 although all arrays of floats are float32; () if none.

    The first block is traced once more, with its operations. That takes another compilation, so it is done only for a
    kernel whose source shows a reason.
    """
    kinds = {value.dtype.name for value in arguments if isinstance(value, np.ndarray)}
    if "float32" not in kinds or not may_widen(kernel.source.tree, arguments):
        return ()
    try:
        trace = trace_launch(kernel, grid, block, _in_place(arguments), sharedmem, [0], MOST_EVENTS, cut=True)
    except KernelError:  # the launch itself may succeed: only its trace did not
        return ()
    profile = analyse(trace)
    for place in double_lines(profile):
        advice = reason(profile, place)
        return (f"line {place[1]} computes in float64, and the arrays are float32: {advice}. {more} shows more",)
    return ()


# ---------------------------------------------------------------- the trace


def _traced(kernel: Any, grid: Extent, block: Extent, arguments: Sequence[Any], sharedmem: int) -> Trace:
    """The trace of all blocks, or of a sample."""
    arguments = _in_place(arguments)
    count = grid[0] * grid[1] * grid[2]
    chosen = neighbours(grid)
    trace = trace_launch(kernel, grid, block, arguments, sharedmem, chosen, MOST_EVENTS, cut=True, accesses_only=True)
    if trace.fault or trace.cut or len(chosen) == count:
        return trace
    largest = max(1, *np.diff(trace.bounds))
    fitting = min(count, int(MOST_EVENTS // largest))
    if fitting <= len(chosen):
        return trace
    others = [number for number in range(min(count, fitting)) if number not in chosen]
    more = sorted([*chosen, *others[: fitting - len(chosen)]])
    return trace_launch(kernel, grid, block, arguments, sharedmem, more, MOST_EVENTS, cut=True, accesses_only=True)


def _in_place(arguments: Sequence[Any]) -> list[Any]:
    """The arguments of check mode for a further launch, with the arrays as memory of the device.

    NumPy arrays that overlap would be copied apart, as those of a host are. Here they overlap only where device arrays
    do, and a race between two of them is to be found.
    """

    def placed(value: object) -> Any:
        if isinstance(value, np.ndarray):
            return DeviceNDArray(value)
        if isinstance(value, tuple):
            parts = [placed(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    return [placed(value) for value in arguments]


def neighbours(grid: Extent) -> list[int]:
    """The first block, its neighbours along x, y and z, two in the middle, and the last: their numbers, ascending."""
    x, y, z = grid
    count = x * y * z
    wanted = {0, 1, x, x * y, count // 2, count // 2 + 1, count - 1}
    return sorted(number for number in wanted if number < count)


def command(kernel: Any, number: int) -> str:
    """The command that shows the launch: `cuda-emulator lens SCRIPT.py:KERNEL` for the script that runs, with its
    arguments after `--`."""
    script = sys.argv[0] if sys.argv else ""
    name = kernel.py_func.__name__
    as_module = getattr(sys.modules.get("__main__"), "__spec__", None) is not None  # -m MODULE: the lens takes scripts
    if as_module or not script.endswith(".py") or not Path(script).is_file():
        return f"{name}.profile(grid, block, ...)"
    shown = os.path.relpath(script)
    shown = script if shown.startswith("..") else shown
    own = f" -- {shlex.join(sys.argv[1:])}" if sys.argv[1:] else ""
    return f"{extensions().command} lens {shown}:{name}" + (f" --launch {number}" if number > 1 else "") + own


# ---------------------------------------------------------------- sentences


def _each_once(races: Sequence[Race], kernel: Any, trace: Trace) -> list[Found]:
    """One finding for the races between the same two lines over one array.

    Those that lose updates come first, then those between blocks, which no barrier mends.
    """
    found: dict[tuple[object, ...], Race] = {}
    for race in races:
        if race.first.site.file.startswith(PACKAGE):
            continue
        ends = sorted((race.first.site.line, race.second.site.line))
        found.setdefault((race.array, race.between_blocks, *ends), race)
    first = sorted(found.values(), key=lambda race: (not _loses_updates(race, trace), not race.between_blocks))
    return [*(_race(race, trace) for race in first), *_of_random_states(races, kernel, trace)]


PACKAGE = str(Path(__file__).parents[1])


def _of_random_states(races: Sequence[Race], kernel: Any, trace: Trace) -> list[Found]:
    """One finding for all races inside of cuda.random, which are due to the call: two threads have one state."""
    inside = [race for race in races if race.first.site.file.startswith(PACKAGE)]
    if not inside:
        return []
    calls = [
        node
        for node in ast.walk(kernel.source.tree)
        if isinstance(node, ast.Call) and _file_of(look_up(kernel.source, node.func)).startswith(PACKAGE)
    ]
    race = inside[0]
    ends = (race.first, race.second)
    threads = " and ".join(
        f"thread {position(each.thread, trace.block)} of block {position(each.block, trace.grid)}" for each in ends
    )
    element = ", ".join(map(str, race.index))
    lines = listed([f"line {node.lineno} (`{ast.unparse(node)}`)" for node in calls]) or f"{kernel.py_func.__name__}"
    sentence = (
        f"race on the random state {element} ({race.space} memory): {threads} both draw from it in {lines}, and "
        "nothing orders the two. Give each thread a state of its own, by cuda.grid(1), and make as many as threads"
    )
    return [Found(sentence, kernel.source.filename, calls[0].lineno if calls else kernel.source.first_line)]


def _file_of(function: Any) -> str:
    return str(getattr(getattr(function, "py_func", None), "__code__", None) and function.py_func.__code__.co_filename)


def _loses_updates(race: Race, trace: Trace) -> bool:
    """Whether threads read, change and write back one element in one line, as `x[0] += 1` does."""
    one, other = race.first.site, race.second.site
    if one.line != other.line or "atomic" in (one.kind, other.kind):
        return False
    kinds = {(site.kind, site.text) for site in trace.sites if site.line == one.line and site.array == one.array}
    return ("store", other.text) in kinds and ("load", other.text) in kinds and one.text == other.text


def _race(race: Race, trace: Trace) -> Found:
    element = f"{race.array}[{', '.join(map(str, race.index))}]" if race.index else race.array
    memory = f"{race.space} memory, " if race.space in ("shared", "global") else ""
    who, other = _who(race.first, trace), _who(race.second, trace)
    sentence = f"race on {element} ({memory}{race.kind}): {who}, and {other}, and nothing orders the two. "
    sentence += _remedy(race, trace)
    site = race.second.site if _in_one_loop(race, trace) else max(race.first.site, race.second.site, key=_by_line)
    return Found(sentence, site.file, site.line)


def _by_line(site: Site) -> int:
    return site.line


def _in_one_loop(race: Race, trace: Trace) -> bool:
    """Whether a loop of the kernel holds both accesses, so that the one that is later in the source may come first."""
    ends = race.first.site, race.second.site
    if any(site.file != trace.file for site in ends):
        return False
    try:
        tree = ast.parse(textwrap.dedent("\n".join(trace.source)))
    except SyntaxError:  # a line of the kernel is continued further to the left
        return False
    lines = [site.line - trace.first_line + 1 for site in ends]
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    return any(all(loop.lineno <= line <= (loop.end_lineno or 0) for line in lines) for loop in loops)


_DOES = {"load": "reads it", "store": "writes it", "atomic": "updates it by an atomic"}


def _who(party: Party, trace: Trace) -> str:
    block, thread = position(party.block, trace.grid), position(party.thread, trace.block)
    site = party.site
    file = "" if site.file == trace.file else f" of {Path(site.file).name}"
    return f"thread {thread} of block {block} {_DOES[site.kind]} in line {site.line}{file} (`{site.text}`)"


def _remedy(race: Race, trace: Trace) -> str:
    if _loses_updates(race, trace):
        return (
            f"Both read the old value, and one of the updates is lost: use cuda.atomic on {race.array}, or give each "
            "thread an element of its own"
        )
    kinds = {race.first.site.kind, race.second.site.kind}
    if "atomic" in kinds:
        mixed = "An atomic does not order the plain access"
        if race.between_blocks and trace.rounds is not None:
            return f"{mixed}: make both atomic, or put a cuda.cg.this_grid().sync() between them"
        if race.between_blocks:
            return f"{mixed}: make both atomic, or launch a second kernel"
        return f"{mixed}: put a cuda.syncthreads() between them, or make both atomic"
    if race.between_blocks and trace.rounds is not None:
        return (
            "Only a barrier across the grid orders two blocks, and between these two there is none: put a "
            "cuda.cg.this_grid().sync() there, where every block reaches it, or give each block elements of its own"
        )
    if race.between_blocks:
        return (
            "Blocks run in any order, and cuda.syncthreads() waits for no other block: give each block elements of "
            "its own, write to a second array, use cuda.atomic, launch a second kernel, or put a "
            "cuda.cg.this_grid().sync() between them, which waits for all blocks"
        )
    if kinds == {"store"} and race.first.site.line == race.second.site.line:
        return "Which of them is last is chance: let one thread write the element, or use cuda.atomic"
    if race.first.site.line == race.second.site.line:
        return "Read into a variable, put a cuda.syncthreads() behind that, and write then"
    if race.first.thread // 32 == race.second.thread // 32:
        return (
            "The lanes of a warp do not run in step: put a cuda.syncthreads() between them, or a cuda.syncwarp() if "
            "only one warp uses these elements" + _at_the_end(race, trace)
        )
    return "Put a cuda.syncthreads() between them" + _at_the_end(race, trace)


def _at_the_end(race: Race, trace: Trace) -> str:
    """The place of the barrier, if the second access is the earlier in the source: in the next round of a loop."""
    if not _in_one_loop(race, trace):
        return ""
    later, earlier = race.first.site, race.second.site
    if (later.file, later.kind, earlier.kind) == (earlier.file, "load", "store") and later.line > earlier.line:
        return f": behind line {later.line}, before the loop comes to line {earlier.line} again"
    return ""


def _unwritten(found: Uninitialised, trace: Trace) -> Found:
    element = f"{found.array}[{', '.join(map(str, found.index))}]" if found.index else found.array
    block, thread = position(found.block, trace.grid), position(found.thread, trace.block)
    times = f" ({found.times:,} such reads)" if found.times > 1 else ""
    if found.space == "shared":
        why = (
            "Shared memory holds what an earlier block left there: write every element that is read, and put a "
            "cuda.syncthreads() behind the writing."
        )
    else:
        why = (
            "The memory of cuda.device_array holds what an earlier program left there: write every element that is "
            "read, in an earlier kernel or with a copy."
        )
    sentence = (
        f"{element} is read before it is written: thread {thread} of block {block} reads it in line {found.site.line} "
        f"(`{found.site.text}`){times}. {why}"
    )
    return Found(sentence, found.site.file, found.site.line, found.array, found.space)
