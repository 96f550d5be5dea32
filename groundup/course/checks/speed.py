"""The check of a time: the learner's function beside another one, in the same process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally
from shared.numbers import two_digits


@dataclass(frozen=True)
class Speed:
    """A limit on the time of the learner's function, as a multiple of another function's time.

    arguments: what both functions are called with
    most: the largest multiple that passes. Times are noisy, so no right answer comes near it: the check finds a Python
        loop where an array operation was asked for, and does not fail on a busy machine
    cause: what a longer time comes from
    against: the other function, None for the exercise's reference; what: its name in the message
    """

    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    most: float
    cause: str
    against: Callable[..., Any] | None = None
    what: str = "the project's own"


def time_check(
    speed: Speed, call: Callable[..., Any], reference: Callable[..., Any], show: Callable[..., str]
) -> Callable[[Tally], None]:
    """The check of a limit. call, reference, show: as an Exercise has them."""

    def check(tally: Tally) -> None:
        arguments = speed.arguments(np.random.default_rng(4))
        tally.trying(f"the time of {show(*arguments)}")
        against = speed.against or reference
        ratio = times_slower(lambda: call(*arguments), lambda: against(*arguments))
        text = f"{show(*arguments)} takes {two_digits(ratio)} times as long as {speed.what}"
        tally.holds(ratio <= speed.most, text, expected=f"at most {speed.most:g} times", cause=speed.cause)
        tally.note(text)

    return check


def times_slower(call: Callable[[], Any], against: Callable[[], Any], repeats: int = 5) -> float:
    """The median ratio of two functions' times: called in turn, after one call of each that is not timed."""
    call()
    against()
    ratios = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        between = time.perf_counter()
        against()
        ratios.append((between - start) / max(time.perf_counter() - between, 1e-9))
    return statistics.median(ratios)
