"""The check `memory` of a kernel: races, reads of shared memory that nobody wrote, and how often memory is read.

    watched         the check; a Budget says how the kernel may reach memory
    coalesced, reads, stores, no_bank_conflicts, requests_of_shared, no_atomics
                    budgets; what one thread may do is a Work, of shared_work.py
    races           for an Exercise: recognises wrong numbers that come from a missing barrier

The lens answers these questions from a traced launch. On a GPU nothing is traced: there three launches must give the
same bits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuda_emulator.inspection import Trace, analysis, checks, tracing
from groundup.course.checks.check import Tally
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_causes import NO_GUARD, is_assembled, learners_line
from groundup.course.grading.calling.kernel_launches import (
    MOST_EVENTS,
    ONE_ELEMENT,
    Launch,
    backend,
    filled,
    last_launch,
    launched,
    of_the_project,
)
from groundup.course.grading.calling.shared_work import Work, share_work, touched
from shared.numbers import plural

OF_THE_BLOCK = "cuda.syncthreads() waits for all threads of the block; cuda.syncwarp() waits for those of a warp only"

FIRST_BARRIER = f"first barrier missing: shared memory is read before all of it is there. {OF_THE_BLOCK}"

SECOND_BARRIER = (
    f"second barrier missing: shared memory is filled anew while other threads still read it. {OF_THE_BLOCK}"
)

UNFILLED = "a part of the shared memory is never written: a thread with nothing to copy still has to write a zero"


def races(output: str = "", place: int = 0, got: Callable[[], Any] | None = None) -> list[Mistake]:
    """Known mistakes that come from a race. The lens looks for a race in the launch that gave the wrong numbers.

    output, place: the name of the result, and its place among those that `launched` returns
    got: computes the numbers, if they come from another launch than the last one
    """

    def raced(text: str) -> Callable[..., Any]:
        def wrong(*arguments: Any) -> Any:
            if backend() != "emulator" or not last_launch:
                return None
            kernel, launch, given, results = last_launch
            if what_race(profiled(kernel, launch, *given)) != text:
                return None
            return results[place] if got is None else got()

        return wrong

    return [Mistake(text, raced(text), output, seen=True) for text in (FIRST_BARRIER, SECOND_BARRIER, ONE_ELEMENT)]


def what_race(profile: Any) -> str:
    """The most frequent cause of a profile's races, "" if it has none."""
    if not profile.races:
        return ""
    sides = [side for race in profile.races if race.space == "shared" for side in (race.first, race.second)]
    if not sides:
        return ONE_ELEMENT
    before_any_barrier = profile.phases[0].requests
    early = any(side.site.kind == "load" and side.site.number in before_any_barrier for side in sides)
    return FIRST_BARRIER if early else SECOND_BARRIER


@dataclass(frozen=True)
class Budget:
    """A question to the lens about memory.

    ask: takes cuda_emulator.lens.checks and a profile, and returns a Finding; cause: why a Finding may not pass
    """

    ask: Callable[[Any, Any], Any]
    cause: str


def coalesced(place: int | None = None, cause: str = "", at_least: float = 0.9) -> Budget:
    """Global memory, or the argument at that place, is reached in few sectors."""
    return Budget(
        lambda checks, profile: checks.coalesced(
            profile, None if place is None else argument_name(profile, place), at_least
        ),
        cause or "x and y mixed up: neighbouring threads (threadIdx.x) have to reach neighbouring columns",
    )


def reads(place: int, times: int, cause: str, per: str = "block", count: str = "threads") -> Budget:
    """An element of the argument at that place is loaded at most this often; see reads_at_most of the lens's checks."""
    return Budget(
        lambda checks, profile: checks.reads_at_most(profile, argument_name(profile, place), times, per, count), cause
    )


def argument_name(profile: Any, place: int) -> str:
    """The learner's name for the argument at that place, from 0."""
    return str(profile.arguments[place][0])


def no_bank_conflicts(cause: str, array: str | None = None) -> Budget:
    """Shared memory is reached without bank conflicts."""
    return Budget(lambda checks, profile: checks.no_bank_conflicts(profile, array), cause)


def stores(place: int, times: int, cause: str) -> Budget:
    """The threads of the launch, all together, store at most so many numbers into the argument at that place."""

    def ask(checks: Any, profile: Any) -> Any:
        name = argument_name(profile, place)
        found = [each for each in profile.accesses if (each.array, each.kind) == (name, "store")]
        count = sum(each.lanes for each in found)
        if count <= times:
            return checks.Finding(True, f"{name} is written {plural(count, 'time')}")
        line = max(found, key=lambda each: each.lanes).site.line
        return checks.Finding(False, f"line {line} writes {name} {count} times; {times} would do", line)

    return Budget(ask, cause)


def requests_of_shared(most: int, cause: str) -> Budget:
    """The warps of the launch, all together, load at most so many times from shared memory."""

    def ask(checks: Any, profile: Any) -> Any:
        found = [each for each in profile.accesses if (each.space, each.kind) == ("shared", "load")]
        count = sum(each.requests for each in found)
        if count <= most:
            return checks.Finding(True, f"shared memory is read by {plural(count, 'request')}")
        line = max(found, key=lambda each: each.requests).site.line
        return checks.Finding(False, f"line {line}: warps read shared memory {count} times", line)

    return Budget(ask, cause)


NO_ATOMICS = (
    "every number that is written belongs to one thread alone, so nothing has to be atomic: a plain = or += is faster"
)


def no_atomics(cause: str) -> Budget:
    """Nothing is added, or otherwise changed, by an atomic operation."""

    def ask(checks: Any, profile: Any) -> Any:
        found = next((each.site for each in profile.accesses if each.kind == "atomic"), None)
        if found is None:
            return checks.Finding(True, "there is no atomic operation")
        return checks.Finding(False, f"line {found.line} has an atomic operation: {found.text}", found.line)

    return Budget(ask, cause)


COALESCED = coalesced()


def traced(kernel: Any, launch: Launch, *arguments: Any) -> Trace:
    """The trace of all blocks of a launch. arguments: as `launched` takes them. Emulator only."""
    of_the_project(kernel)
    configured = kernel.configure(launch.grid, launch.block)
    blocks = math.prod(configured.griddim)
    given = tuple(filled(each) for each in arguments)
    return tracing.trace_launch(kernel, launch.grid, launch.block, given, 0, blocks, MOST_EVENTS)


def profiled(kernel: Any, launch: Launch, *arguments: Any) -> Any:
    """The lens's Profile of a launch, with all blocks traced. arguments: as `launched` takes them. Emulator only."""
    return analysis.analyse(traced(kernel, launch, *arguments))


def watched(
    kernel: Any,
    launch: Launch,
    arguments: Callable[[np.random.Generator], tuple[Any, ...]],
    *budgets: Budget,
    race: str = "",
    uninitialised: str = "",
    atomics: str = NO_ATOMICS,
    work: Sequence[Work] = (),
    remarks: Sequence[Budget] = (),
) -> Callable[[Tally], None]:
    """The check `memory`: no race, no read of shared memory that nobody wrote, no atomics, and every budget is kept.

    arguments: makes random arguments, as `launched` takes them
    race, uninitialised: the cause in this task; "" for the most frequent one
    atomics: why the kernel needs no atomic operation
    work: the share of one thread
    remarks: budgets that the kernel need not keep; the first that it does not is a remark after a pass
    A GPU cannot trace. There, three launches must give the same bits, and a note says what was not checked.
    """

    def check(tally: Tally) -> None:
        inputs = arguments(np.random.default_rng(6))
        tally.trying(f"the memory of {kernel.__name__}{launch}")
        tally.looks_at(kernel, launch, [filled(argument) for argument in inputs])
        if backend() != "emulator":
            same_bits(tally, kernel, launch, inputs)
            return
        trace = traced(kernel, launch, *inputs)
        profile = analysis.analyse(trace)
        ask_profile(tally, profile, race=race, uninitialised=uninitialised)
        for patterns in (True, False):  # the budgets in between explain other ways of sharing the work unevenly
            for share in work:
                those = touched(trace, share.place, share.kind)
                share_work(tally, share, those, math.prod(trace.grid), math.prod(trace.block), race, patterns)
            for budget in [*budgets, no_atomics(atomics)] if patterns else []:
                count_finding(tally, profile, budget.ask(checks, profile), budget.cause)
        missed = ((budget.ask(checks, profile), budget.cause) for budget in remarks)
        for finding, cause in missed:
            if not finding.passed:
                tally.note(f"a remark: {_in_learners_lines(profile, finding.message)}: {cause}")
                break

    return check


def ask_profile(tally: Tally, profile: Any, *budgets: Budget, race: str = "", uninitialised: str = "") -> None:
    """The questions of `watched`, for a task that has a profile already."""
    count_finding(tally, profile, checks.no_faults(profile), NO_GUARD)
    count_finding(tally, profile, checks.no_races(profile), race or what_race(profile))
    count_finding(tally, profile, checks.no_uninitialised(profile), uninitialised or UNFILLED)
    for budget in budgets:
        count_finding(tally, profile, budget.ask(checks, profile), budget.cause)


def same_bits(tally: Tally, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> None:
    """Three launches give the same bits. Nothing more can be checked without a trace."""
    first, *others = ([*_as_tuple(launched(kernel, launch, *arguments))] for _ in range(3))
    same = all(np.array_equal(a, b, equal_nan=True) for other in others for a, b in zip(first, other, strict=True))
    tally.holds(same, f"{kernel.__name__}{launch}: three launches gave different numbers", cause=SECOND_BARRIER)
    tally.note("races and reads of memory were not traced: only the emulator can (GROUNDUP_CUDA=emulator)")


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def count_finding(tally: Tally, profile: Any, finding: Any, cause: str) -> None:
    """Count a finding of the lens, with its lines as the learner's file has them."""
    here = [file for file in _assembled(profile) if finding.line and _lies_in(profile, file, finding.line)]
    message = _in_learners_lines(profile, finding.message)
    tally.holds(finding.passed, message, cause=cause, line=finding.line if here else None)


def _assembled(profile: Any) -> list[str]:
    return sorted({file for file, _, _ in profile.source if is_assembled(file)})


def _in_learners_lines(profile: Any, message: str) -> str:
    """The message with the numbers of lines as the learner's file has them."""
    files = _assembled(profile)
    if not files:
        return message
    return re.sub(r"\bline (\d+)", lambda match: learners_line(files[0], int(match[1])), message)


def _lies_in(profile: Any, file: str, line: int) -> bool:
    return any(each == file and first <= line < first + len(lines) for each, first, lines in profile.source)
