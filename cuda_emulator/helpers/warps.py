"""Operations of the 32 lanes of a warp, for a whole block in one call: shuffles, votes, matches; and the block's votes.

A kernel is cut at these operations, so that each runs once for the block, on arrays with an entry for each thread:

    result   the result of each active thread; must not be the array `values`
    values   the value of each thread (an array, or a scalar for all threads)
    members  the mask argument: bit i names lane i (a scalar, or an array with a mask for each thread)
    lane     source lane, distance or xor mask: a scalar or an array; only its low five bits are used, as in PTX
    here     bool array: the active threads, which execute this operation; None: all threads
    alive    bool array: the threads that have not returned; None: all threads
    status   None, or the array to report a wrong mask in (with site and block): see status.py

Lanes after the block's last thread do not exist. For each warp the state is computed once, as 32-bit masks (the active
lanes, the lanes with a true predicate); the result of a lane is the `and` of these with its own mask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import popc
from .lanes import (
    ALL_LANES,
    WARP,
    bits_of,
    block_level,
    check_predicate,
    check_shuffled,
    check_warp,
    entry,
    inlined,
    is_in,
    is_scalar,
    lanes_in,
    lanes_true,
    named_by,
)
from .status import ABSENT, ONLY, POISON, READ_BLOCK, READ_LANE, READ_SITE, READ_THREAD, _as_array, made_of
from .whole_warps import moved_across, moved_down, moved_index, moved_up

# ---- shuffles


@inlined
def _lane_index(lane, operand):  # type: ignore[no-untyped-def]
    return operand


@inlined
def _lane_below(lane, operand):  # type: ignore[no-untyped-def]
    return lane - operand


@inlined
def _lane_above(lane, operand):  # type: ignore[no-untyped-def]
    return lane + operand


@inlined
def _lane_across(lane, operand):  # type: ignore[no-untyped-def]
    return lane ^ operand


@block_level
def _absent(status, site, block, thread, lane):  # type: ignore[no-untyped-def]
    """The bytes that a thread reads from a lane that takes no part; the first such read of a run is recorded."""
    record = _as_array(status)
    if record[ONLY] != 0 and record[ONLY] != site + 1:
        return record[POISON]
    if record[READ_SITE] == 0:
        record[READ_SITE] = site + 1
        record[READ_BLOCK] = block
        record[READ_THREAD] = thread
        record[READ_LANE] = lane
    return record[ABSENT]


def _shuffle(source_of: Any, whole: Any) -> Any:
    """The shuffle in which lane i reads from lane source_of(i, operand), or keeps its value if that is not in 0 to 31.

    What a lane reads from one that takes no part is undefined on a device. With a status, that has the value for it;
    else the lane keeps its own.
    whole: the same where all 32 lanes of a warp take part, with one operand
    """

    @block_level
    def shuffle(result, values, members, lane, here, alive, threads, status, site, block):  # type: ignore[no-untyped-def]
        check_shuffled(values)
        for start in range(0, threads, WARP):
            count = min(WARP, threads - start)
            present = lanes_in(here, start, count)
            check_warp(members, present, alive, status, site, block, start, count)
            if not present:
                continue
            alike = is_scalar(members) and is_scalar(lane)
            if alike and present == ALL_LANES and named_by(members, start) == ALL_LANES:
                whole(result, values, start, np.int64(entry(lane, start)) & (WARP - 1))
                continue
            for own in range(count):
                thread = start + own
                if is_in(here, thread):
                    source = source_of(own, np.int64(entry(lane, thread)) & (WARP - 1))
                    # For a source above 31 or below 0 the shifted bit is 0; `& 63` keeps the shift inside 64 bits.
                    readable = (present & named_by(members, thread)) >> (source & 63) & 1
                    result[thread] = entry(values, start + source if readable else thread)
                    if status is not None and not readable and 0 <= source < WARP:
                        result[thread] = made_of(_absent(status, site, block, thread, source), values)

    return shuffle


shuffle_index = _shuffle(_lane_index, moved_index)
shuffle_up = _shuffle(_lane_below, moved_up)
shuffle_down = _shuffle(_lane_above, moved_down)
shuffle_xor = _shuffle(_lane_across, moved_across)


# ---- votes


@inlined
def _all(trues, voters):  # type: ignore[no-untyped-def]
    return trues == voters


@inlined
def _any(trues, voters):  # type: ignore[no-untyped-def]
    return trues != 0


@inlined
def _equal(trues, voters):  # type: ignore[no-untyped-def]
    return trues == 0 or trues == voters


@inlined
def _ballot(trues, voters):  # type: ignore[no-untyped-def]
    return trues


def _vote(answer: Any) -> Any:
    """The vote with the result answer(true lanes, voting lanes); both are masks of named active lanes."""

    @block_level
    def vote(result, values, members, here, alive, threads, status, site, block):  # type: ignore[no-untyped-def]
        check_predicate(values)
        for start in range(0, threads, WARP):
            count = min(WARP, threads - start)
            present = lanes_in(here, start, count)
            check_warp(members, present, alive, status, site, block, start, count)
            trues = lanes_true(values, start, count) & present
            if not present:
                continue
            if is_scalar(members) and present == ALL_LANES:
                named = named_by(members, start)
                outcome = answer(trues & named, present & named)
                for thread in range(start, start + count):
                    result[thread] = outcome
                continue
            for thread in range(start, start + count):
                if is_in(here, thread):
                    named = named_by(members, thread)
                    result[thread] = answer(trues & named, present & named)

    return vote


vote_all = _vote(_all)
vote_any = _vote(_any)
vote_eq = _vote(_equal)
vote_ballot = _vote(_ballot)


# ---- matches: floats are compared by their bits, so NaN matches NaN and 0.0 does not match -0.0


@inlined
def _lanes_alike(values, leader, candidates, start, count):  # type: ignore[no-untyped-def]
    """The candidates whose value equals the leader's."""
    wanted = bits_of(entry(values, start + leader))
    lanes = np.int64(0)
    for lane in range(count):
        lanes |= np.int64(bits_of(entry(values, start + lane)) == wanted) << lane
    return lanes & candidates


@inlined
def _lowest(lanes):  # type: ignore[no-untyped-def]
    """The number of the lowest lane in a mask that is not 0."""
    return popc((lanes & -lanes) - 1)


@block_level
def match_any(result, values, members, here, alive, threads, status, site, block):  # type: ignore[no-untyped-def]
    """result: the mask of named active lanes with the same value."""
    for start in range(0, threads, WARP):
        count = min(WARP, threads - start)
        left = lanes_in(here, start, count)
        check_warp(members, left, alive, status, site, block, start, count)
        while left:  # once for each distinct value
            alike = _lanes_alike(values, _lowest(left), left, start, count)
            left &= ~alike
            for lane in range(count):
                if (alike >> lane) & 1:
                    result[start + lane] = alike & named_by(members, start + lane)


@block_level
def match_all(result, predicate_result, values, members, here, alive, threads, status, site, block):  # type: ignore[no-untyped-def]
    """predicate_result: whether all named active lanes have the same value; result: the mask of these lanes, or 0."""
    for start in range(0, threads, WARP):
        count = min(WARP, threads - start)
        present = lanes_in(here, start, count)
        check_warp(members, present, alive, status, site, block, start, count)
        left = present
        while left:
            alike = _lanes_alike(values, _lowest(left), left, start, count)
            left &= ~alike
            for lane in range(count):
                if (alike >> lane) & 1:
                    voters = present & named_by(members, start + lane)
                    agreed = voters & ~alike == 0
                    predicate_result[start + lane] = agreed
                    result[start + lane] = voters if agreed else 0


@block_level
def sync_warp(members, here, alive, threads, status, site, block):  # type: ignore[no-untyped-def]
    """Check the mask of a syncwarp; the cut of the kernel has already synchronised the lanes."""
    for start in range(0, threads, WARP):
        count = min(WARP, threads - start)
        present = lanes_in(here, start, count)
        check_warp(members, present, alive, status, site, block, start, count)


@block_level
def active_mask(result, here, threads):  # type: ignore[no-untyped-def]
    """result: the mask of the active lanes of the warp."""
    for start in range(0, threads, WARP):
        count = min(WARP, threads - start)
        present = lanes_in(here, start, count)
        for thread in range(start, start + count):
            if is_in(here, thread):
                result[thread] = present


# ---- votes of a whole block: syncthreads_count, _and, _or. They count in int32, as a device does.


@block_level
def block_count(values, here, threads):  # type: ignore[no-untyped-def]
    """The number of active threads whose value is not 0."""
    count = 0
    for thread in range(threads):
        count += is_in(here, thread) and entry(values, thread) != 0
    return np.int32(count)


@block_level
def block_and(values, here, threads):  # type: ignore[no-untyped-def]
    """1 if no active thread has the value 0, else 0."""
    missing = 0
    for thread in range(threads):
        missing += is_in(here, thread) and entry(values, thread) == 0
    return np.int32(missing == 0)


@block_level
def block_or(values, here, threads):  # type: ignore[no-untyped-def]
    """1 if an active thread has a value other than 0, else 0."""
    return np.int32(block_count(values, here, threads) != 0)


__all__ = [
    *("shuffle_index", "shuffle_up", "shuffle_down", "shuffle_xor"),
    *("vote_all", "vote_any", "vote_eq", "vote_ballot", "match_any", "match_all"),
    *("sync_warp", "active_mask", "block_count", "block_and", "block_or"),
]
