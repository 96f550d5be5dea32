"""Checks of a kernel for a grader: each takes a Profile and returns a Finding.

    profile = kernel.profile(grid, block, a, b, c)
    finding = all_of(no_races(profile), reads_at_most(profile, "a", 1, per="block"), coalesced(profile))
    assert finding, finding.message

    no_faults              the traced blocks reached their end: no index out of bounds, no barrier for a part of a block
    no_races               no two threads access an element without an order while one of them writes
    no_uninitialised       shared and fresh global memory is written before it is read
    reads_at_most          an element of an array is loaded at most so often, in a block or in the whole launch
    coalesced              global memory is fetched in few sectors
    no_bank_conflicts      each access to shared memory needs one pass
    no_divergence          the lanes of each warp agree on every branch, or on those of one line
    no_float64             no arithmetic in float64 on float32 arrays
    intensity_at_least     the number of operations for each byte of global memory

A check fails if the trace is incomplete: after a fault, or with an access that was not traced. Races are searched in
the traced blocks. A check of the whole launch needs all blocks traced; otherwise it raises ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..words.numbers import three_digits
from .doubles import double_lines
from .profile import Access, Profile, Reuse


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    passed: also the value of bool(finding); message: a sentence for the learner; line: in the kernel's file, or None
    """

    passed: bool
    message: str
    line: int | None = None

    def __bool__(self) -> bool:
        return self.passed


def all_of(*findings: Finding) -> Finding:
    """A Finding that passes if all pass. The message has a line for each that fails; the line is that of the first."""
    failed = [each for each in findings if not each.passed]
    if not failed:
        return Finding(True, f"all {len(findings)} checks passed")
    return Finding(False, "\n".join(each.message for each in failed), failed[0].line)


def no_faults(profile: Profile) -> Finding:
    """Whether the traced blocks reached their end."""
    if profile.fault:
        return Finding(False, f"{profile.kernel} did not reach its end: {profile.fault}", profile.fault_line or None)
    return Finding(True, f"{profile.kernel} reached its end in {_traced(profile)}")


def no_races(profile: Profile) -> Finding:
    """Whether there is no race within or between the traced blocks; the message lists accesses that were not judged."""
    if profile.races:
        race = profile.races[0]
        first, second = race.first, race.second
        more = len(profile.races) - 1
        where = (
            f"thread {first.thread} of block {first.block} and thread {second.thread} of block {second.block}"
            if race.between_blocks
            else f"threads {first.thread} and {second.thread} of block {first.block}"
        )
        return Finding(
            False,
            f"race: {race.kind} of {race.array}[{_index(race.index)}], line {first.site.line} and line "
            f"{second.site.line}, by {where}" + (f"; and {more} more" if more else ""),
            second.site.line,
        )
    return _certain(
        profile, "; ".join([f"no race in {_traced(profile)}", *(f"not judged: {each}" for each in profile.unjudged)])
    )


def no_uninitialised(profile: Profile) -> Finding:
    """Whether shared memory is written by the block before it is read, and global memory by anybody."""
    for found in profile.uninitialised:
        writer = "no thread of the block" if found.space == "shared" else "nobody"
        return Finding(
            False,
            f"line {found.site.line} reads {found.array}[{_index(found.index)}], which {writer} had "
            f"written (thread {found.thread} of block {found.block}; {_times(found.times)})",
            found.site.line,
        )
    return _certain(profile, "all shared memory is written before it is read")


def reads_at_most(
    profile: Profile,
    array: str,
    times: int,
    per: Literal["block", "launch"] = "block",
    count: Literal["threads", "requests"] = "threads",
) -> Finding:
    """Whether each element of the array is loaded at most `times` times.

    per: "block": within each traced block; "launch": in all blocks together, which must all be traced
    count: "threads": loads of threads; "requests" (per block only): loads of warps, in which lanes that load one
        element together count once

    An n x n product needs each element of a for n numbers of the result. With tiles of 16 each block loads it once
    (per="block", times=1), and n / 16 blocks do (per="launch", times=n // 16).
    Raises ValueError for an unknown array, and for per="launch" if not all blocks were traced.
    """
    if per == "launch":
        if count == "requests":
            raise ValueError('reads_at_most: count="requests" is known per block; ask with per="block"')
        if len(profile.blocks) != profile.grid_blocks:
            raise ValueError(
                f"reads_at_most: {len(profile.blocks):,} of {profile.grid_blocks:,} blocks were traced; what the whole "
                f"launch reads is known with blocks={profile.grid_blocks} only"
            )
    reuse = _reuse(profile, array)
    most = 0 if reuse is None else _most(reuse, per, count)
    where = "a block" if per == "block" else "the launch"
    by = "warps of " if count == "requests" else ""
    if most > times:
        return Finding(
            False,
            f"an element of {array} is read {_times(most)} by {by}{where}; it may be {_times(times)}",
            _line_of_most(profile, array),
        )
    return _certain(profile, f"no element of {array} is read more than {_times(most)} by {by}{where}")


def _most(found: Reuse, per: str, count: str) -> int:
    if per == "launch":
        return found.most_loads
    return found.most_requests_in_block if count == "requests" else found.most_loads_in_block


def coalesced(profile: Profile, array: str | None = None, at_least: float = 0.9) -> Finding:
    """Whether at least this share of the sectors that each access fetches is needed for the bytes that it uses.

    array: None for all arrays in global memory. A broadcast passes: it needs one sector.
    Raises ValueError for an unknown array, or a share outside 0 to 1.
    """
    if not 0 <= at_least <= 1:
        raise ValueError(f"coalesced: at_least: expected a share from 0 to 1, got {at_least}")
    accesses = [each for each in _accesses(profile, array) if each.space == "global" and each.sectors]
    worst = min(accesses, key=_needed, default=None)
    if worst is not None and _needed(worst) < at_least:
        return Finding(
            False,
            f"line {worst.site.line}: {worst.site.text} takes {three_digits(worst.sectors_per_request)} sectors a "
            f"request, {three_digits(worst.ideal_sectors / worst.requests)} would do",
            worst.site.line,
        )
    return _certain(profile, f"global memory{_of(array)} is reached in few sectors")


def no_bank_conflicts(profile: Profile, array: str | None = None) -> Finding:
    """Whether no access to shared memory takes more passes than it would with every word in a bank of its own.

    array: None for all shared arrays. Raises ValueError for an unknown array.
    """
    accesses = [each for each in _accesses(profile, array) if each.space == "shared"]
    worst = max(accesses, key=lambda each: each.wavefronts - each.ideal_wavefronts, default=None)
    if worst is not None and worst.wavefronts > worst.ideal_wavefronts:
        return Finding(
            False,
            f"line {worst.site.line}: {worst.site.text} meets a bank up to {worst.most_ways} times in one pass: "
            f"{worst.wavefronts:,} passes where {worst.ideal_wavefronts:,} would do",
            worst.site.line,
        )
    return _certain(profile, f"shared memory{_of(array)} is free of bank conflicts")


def no_float64(profile: Profile) -> Finding:
    """Whether no operation has a float64 result, unless an array argument is float64 itself."""
    for (_, line), times in double_lines(profile).items():
        return Finding(False, f"line {line} computes in float64 ({_times(times)} in {_traced(profile)})", line)
    return _certain(profile, "no operation is in float64, or float64 is asked for")


def no_divergence(profile: Profile, line: int | None = None) -> Finding:
    """Whether the lanes of each warp agree on every branch.

    line: only on the branches of that line. Raises ValueError if it has no branch
    """
    branches = [branch for branch in profile.branches if line is None or branch.site.line == line]
    if line is not None and not branches:
        known = ", ".join(str(number) for number in sorted({branch.site.line for branch in profile.branches}))
        raise ValueError(f"no_divergence: line {line} has no branch; lines that do: {known or 'none'}")
    worst = max(branches, key=lambda branch: branch.divergent, default=None)
    if worst is not None and worst.divergent:
        return Finding(
            False,
            f"line {worst.site.line}: the lanes of a warp disagree on {worst.site.text} in {worst.divergent:,} of "
            f"{worst.evaluated:,} cases",
            worst.site.line,
        )
    # A fault may have ended the run before a branch was reached.
    if profile.fault:
        return no_faults(profile)
    return Finding(True, "the lanes of each warp agree" + (f" on line {line}" if line is not None else ""))


def intensity_at_least(profile: Profile, operations: float) -> Finding:
    """Whether the kernel does at least `operations` for each byte of global memory traffic, without caches."""
    if profile.intensity < operations:
        return Finding(
            False,
            f"{profile.kernel} does {three_digits(profile.intensity)} operations for each byte of global memory; "
            f"{three_digits(operations)} are asked for",
        )
    return _certain(
        profile, f"{profile.kernel} does {three_digits(profile.intensity)} operations for each byte of global memory"
    )


def _certain(profile: Profile, message: str) -> Finding:
    """A Finding that passes with this message, unless the trace is incomplete."""
    if profile.fault:
        return no_faults(profile)
    for each in profile.not_traced:
        return Finding(
            False, f"line {each.line}: {each.text} is not traced ({each.reason}), so this cannot be checked", each.line
        )
    return Finding(True, message)


def _accesses(profile: Profile, array: str | None) -> list[Access]:
    if array is not None:
        _known(profile, array)
    return [each for each in profile.accesses if array in (None, each.array)]


def _reuse(profile: Profile, array: str) -> Reuse | None:
    _known(profile, array)
    return next((each for each in profile.reuse if each.array == array), None)


def _known(profile: Profile, array: str) -> None:
    names = dict.fromkeys(
        [
            *(name for name, _ in profile.arguments),
            *(each.array for each in profile.reuse),
            *(each.array for each in profile.accesses),
        ]
    )
    if array not in names:
        raise ValueError(f"{profile.kernel} has no array {array!r}; it has {', '.join(names)}")


def _needed(access: Access) -> float:
    return access.ideal_sectors / access.sectors


def _line_of_most(profile: Profile, array: str) -> int | None:
    loads = [each for each in profile.accesses if each.array == array and each.kind == "load"]
    return max(loads, key=lambda each: each.lanes).site.line if loads else None


def _of(array: str | None) -> str:
    return "" if array is None else f" of {array}"


def _traced(profile: Profile) -> str:
    traced, count = len(profile.blocks), profile.grid_blocks
    return f"all {count:,} blocks" if traced == count else f"{traced:,} of {count:,} blocks"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _index(index: tuple[int, ...]) -> str:
    return ", ".join(map(str, index))
