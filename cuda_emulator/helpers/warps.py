"""What the 32 lanes of a warp do together, for a whole block at once: shuffles, votes, matches; and the block's votes.

A kernel is cut at these, so that each runs once for the block, on arrays with one entry per thread:

    result   written for every thread that is here; must not be `values` itself
    values   what each thread brings (an array, or a scalar that all bring)
    members  the mask argument: bit i names lane i (a scalar, or an array with one mask per thread)
    lane     source lane, distance or xor mask: like members; its low five bits count, as in PTX
    here     bool array: the threads that execute this; None: all of them
    alive    bool array: the threads that have not returned; None: all of them
    status   None, or the array to report a misused mask in (with site and block): see status.py

Lanes past the block's last thread do not exist. A warp is looked at once: its facts become 32-bit numbers (who is
here, whose predicate is true), and each lane's answer is an `and` of those with its own mask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import popc
from .lanes import (
    WARP,
    bits_of,
    block_level,
    check_predicate,
    check_shuffled,
    check_warp,
    entry,
    inlined,
    is_in,
    lanes_in,
    lanes_true,
    named_by,
)

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


def _shuffle(source_of: Any) -> Any:
    """The shuffle whose lane i reads from lane source_of(i, operand), and keeps its own value where there is none."""

    @block_level
    def shuffle(result, values, members, lane, here, alive, threads, status, site, block):  # type: ignore[no-untyped-def]
        check_shuffled(values)
        for start in range(0, threads, WARP):
            count = min(WARP, threads - start)
            present = lanes_in(here, start, count)
            check_warp(members, present, alive, status, site, block, start, count)
            for own in range(count):
                thread = start + own
                if is_in(here, thread):
                    source = source_of(own, np.int64(entry(lane, thread)) & (WARP - 1))
                    # A source above 31 or below 0 shifts to nothing once its place is kept within the 64 bits.
                    readable = (present & named_by(members, thread)) >> (source & 63) & 1
                    result[thread] = entry(values, start + source if readable else thread)

    return shuffle


shuffle_index = _shuffle(_lane_index)
shuffle_up = _shuffle(_lane_below)
shuffle_down = _shuffle(_lane_above)
shuffle_xor = _shuffle(_lane_across)


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
    """The vote whose result is answer(lanes that say true, lanes that vote): both among those named and here."""

    @block_level
    def vote(result, values, members, here, alive, threads, status, site, block):  # type: ignore[no-untyped-def]
        check_predicate(values)
        for start in range(0, threads, WARP):
            count = min(WARP, threads - start)
            present = lanes_in(here, start, count)
            check_warp(members, present, alive, status, site, block, start, count)
            trues = lanes_true(values, start, count) & present
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
    """The candidates that brought what the leader brought."""
    wanted = bits_of(entry(values, start + leader))
    lanes = np.int64(0)
    for lane in range(count):
        lanes |= np.int64(bits_of(entry(values, start + lane)) == wanted) << lane
    return lanes & candidates


@inlined
def _lowest(lanes):  # type: ignore[no-untyped-def]
    """The number of the lowest lane of a mask that names one."""
    return popc((lanes & -lanes) - 1)


@block_level
def match_any(result, values, members, here, alive, threads, status, site, block):  # type: ignore[no-untyped-def]
    """result: the lanes, among those named and here, that brought the same value. (32-bit mask)"""
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
    """predicate_result: whether all lanes named and here brought one value; result: those lanes then, else 0."""
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
    """The lanes have met by the time this is called: what is left is to check the mask."""
    for start in range(0, threads, WARP):
        count = min(WARP, threads - start)
        present = lanes_in(here, start, count)
        check_warp(members, present, alive, status, site, block, start, count)


@block_level
def active_mask(result, here, threads):  # type: ignore[no-untyped-def]
    """result: the lanes of its warp that are here with it. (32-bit mask)"""
    for start in range(0, threads, WARP):
        count = min(WARP, threads - start)
        present = lanes_in(here, start, count)
        for thread in range(start, start + count):
            if is_in(here, thread):
                result[thread] = present


# ---- votes of a whole block: syncthreads_count, _and, _or. They count in int32, as a device does.


@block_level
def block_count(values, here, threads):  # type: ignore[no-untyped-def]
    """How many of the threads here brought something other than 0."""
    count = 0
    for thread in range(threads):
        count += is_in(here, thread) and entry(values, thread) != 0
    return np.int32(count)


@block_level
def block_and(values, here, threads):  # type: ignore[no-untyped-def]
    """1 where every thread here brought something other than 0, else 0."""
    missing = 0
    for thread in range(threads):
        missing += is_in(here, thread) and entry(values, thread) == 0
    return np.int32(missing == 0)


@block_level
def block_or(values, here, threads):  # type: ignore[no-untyped-def]
    """1 where any thread here brought something other than 0, else 0."""
    return np.int32(block_count(values, here, threads) != 0)


__all__ = [
    *("shuffle_index", "shuffle_up", "shuffle_down", "shuffle_xor"),
    *("vote_all", "vote_any", "vote_eq", "vote_ballot", "match_any", "match_all"),
    *("sync_warp", "active_mask", "block_count", "block_and", "block_or"),
]
