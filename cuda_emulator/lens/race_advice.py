"""The remedy of a race: an atomic, a barrier at a certain line, another array, or a second launch."""

from __future__ import annotations

import ast

from ..intrinsics import GRID_BARRIER, THIS_GRID
from ..words.numbers import listed, plural
from .profile import Profile
from .race_groups import RaceGroup
from .syntax import Place, atomic_call, common, common_loop, innermost
from .wording import WARP

EVERY_THREAD = "Every thread of the block has to reach it."


def remedy(group: RaceGroup, profile: Profile) -> str:
    """The change of the source that removes the races of the group."""
    if group.kind == "lost update":
        return _atomic(group)
    if group.between_blocks:
        return _apart(group, profile)
    if group.conflicts == ["write after write"] and not group.line_numbers("load", "atomic"):
        return (
            f"Several threads write to one element of {listed(group.arrays)}, and which value remains is chance. Give "
            "each thread an element of its own, or let one thread write."
        )
    return _barrier(group, profile)


def _atomic(group: RaceGroup) -> str:
    assert group.update is not None
    call = atomic_call(group.element, group.update)
    lines = group.line_numbers("store")
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {listed([str(each) for each in lines])}"
    why = "Two threads read the same old value, and one of the two updates is lost. A barrier does not help."
    if call:
        return f"Use `{call}` in place of {where}. {why}"
    return (
        f"Use cuda.atomic.compare_and_swap in a loop in place of {where}, or let one thread make all updates of "
        f"{group.element}. {why}"
    )


def _apart(group: RaceGroup, profile: Profile) -> str:
    arrays = listed(group.arrays)
    if any(collective.site.text.startswith(f"cuda.{THIS_GRID}") for collective in profile.collectives):
        lines = listed([f"line {line}" for _, line in group.lines])
        return (
            f"The threads are in different blocks, and no barrier across the grid is between them. Put a "
            f"cuda.{GRID_BARRIER}() between {lines}, where every block reaches it."
            if len(group.lines) > 1
            else f"The threads are in different blocks. Give each block elements of its own, or put a "
            f"cuda.{GRID_BARRIER}() between the read and the write of {lines}, where every block reaches it."
        )
    within = " A barrier would order the threads of one block only." if group.within_block else ""
    if group.conflicts == ["write after write"]:
        cure = "Give each block elements of its own, or use an atomic."
    elif group.line_numbers("atomic") and not group.line_numbers("load"):
        cure = f"Give {arrays} its first value before the launch, or use atomics only."
    elif group.line_numbers("atomic"):
        cure = f"Read {arrays} in a second launch, after all updates."
    else:
        cure = f"Write to another array than {arrays}, or make two launches, the second for what reads the results."
    return f"The threads are in different blocks, which no barrier synchronises. {cure}{within}"


def _barrier(group: RaceGroup, profile: Profile) -> str:
    """The line of the missing barrier."""
    files = {site.file for race in group.races for site in (race.first.site, race.second.site)}
    file, (low, high) = next(iter(files)), _widest(group)
    if len(files) > 1 or not _function_of_both(profile, (file, low), (file, high)):
        lines = listed([f"line {line}" for _, line in group.lines])
        return f"Put cuda.syncthreads() between {lines}, so that all threads have finished the first access."
    first, last = (file, low), (file, high)
    loop = common_loop(profile, first, last)
    inside = [line for line in _barriers(profile, file) if loop and loop.lineno <= line <= (loop.end_lineno or 0)]
    end = f"at the end of the loop of line {loop.lineno}, before its next round" if loop else ""
    outer: ast.stmt | None = None  # the barrier is in the body of this statement, and in none within it
    if low == high:
        together = any(race.same_round for race in group.races)
        if loop and not together:
            text, outer = f"Put cuda.syncthreads() {end}", loop
        else:
            text = f"Read the value into a variable, put cuda.syncthreads() after that, and write it then (line {low})"
            text += f"; and a second one {end}" if loop and not inside else ""
    elif loop and any(low < line < high for line in inside):
        outer = loop
        text = f"Put cuda.syncthreads() {end}: line {low} of the next round may come before line {high} of this one"
    else:
        text = f"Put cuda.syncthreads() before line {_before(profile, first, last)}"
        text += f", and a second one {end}" if loop and not inside else ""
    if _in_one_warp(group):
        text += ". If only the lanes of one warp share these elements, cuda.syncwarp() is enough"
    return f"{text}. {_reachable(profile, first, last, outer)}"


def _widest(group: RaceGroup) -> tuple[int, int]:
    """(the last line before the missing barrier, the first after it), if accesses before and after it are of different
    kinds; else the first and the last line."""
    writes, reads = group.line_numbers("store", "atomic"), group.line_numbers("load")
    if reads and writes and max(writes) < min(reads):
        return max(writes), min(reads)
    if reads and writes and max(reads) < min(writes):
        return max(reads), min(writes)
    lines = [line for _, line in group.lines]
    return min(lines), max(lines)


def _function_of_both(profile: Profile, first: Place, last: Place) -> bool:
    return bool(common(profile, first, last))


def _barriers(profile: Profile, file: str) -> list[int]:
    return [each.site.line for each in profile.collectives if each.site.kind == "barrier" and each.site.file == file]


def _before(profile: Profile, first: Place, last: Place) -> int:
    """The first line of the statement before which the barrier has to stand."""
    shared = common(profile, first, last)
    statement = shared[-1][1].statement if shared else innermost(profile, last)
    return statement.lineno if statement is not None else last[1]


def _reachable(profile: Profile, first: Place, last: Place, outer: ast.stmt | None) -> str:
    """A warning if the place of the barrier is inside of an `if`."""
    around = []
    for one, other in common(profile, first, last):
        if one.statement is other.statement and isinstance(one.statement, ast.If):
            around.append(one.statement)
        if one.statement is outer:
            break
    if not around:
        return EVERY_THREAD
    return f"{EVERY_THREAD[:-1]}, so end the `if` of line {around[0].lineno} before it."


def _in_one_warp(group: RaceGroup) -> bool:
    return all(race.first.thread // WARP == race.second.thread // WARP for race in group.races)


def pairs_text(group: RaceGroup) -> str:
    """The number of pairs in the group."""
    kinds = f": {listed(group.conflicts)}" if len(group.conflicts) > 1 else ""
    reach = {
        (True, True): ", within a block and between blocks",
        (True, False): "",
        (False, True): ", between blocks",
    }[group.within_block, group.between_blocks]
    return f"Found: {plural(group.pairs, 'pair')} of threads like this{reach}{kinds}."
