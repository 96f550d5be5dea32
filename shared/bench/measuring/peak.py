"""The peak of one core: what a loop of multiply-adds in registers reaches, beside which other speeds are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from shared.bench.measuring.timing import Measurement
from shared.contract import Stage

ROUNDS = 100_000
"""Turns of the loop in one call: a fraction of a millisecond, against which the call itself is nothing."""


def peak_call(stages: Sequence[Stage], dtype: str) -> Callable[[], float] | None:
    """A call of the loop, which returns the floating-point operations it did; None where no stage has one."""
    for stage in stages:
        if stage.ceilings is not None:
            return partial(stage.ceilings.peak, dtype, ROUNDS)
    return None


def flops_per_second(call: Callable[[], float], measurement: Measurement) -> float:
    """One core's peak in FLOP/s, from the times that `call` was measured to take."""
    return call() / measurement.fastest
