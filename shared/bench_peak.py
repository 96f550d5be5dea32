"""The roof: how fast could this machine multiply and add if no memory were in the way?

Stage 3 has a loop in C that only multiplies and adds numbers that are in registers already. Its speed is the peak of
one core, which no matrix product can exceed, and a product's share of it says how much is left to be gained. The peak
of several threads is taken as one core's times their number.

Everything else is judged by its median, the peak by its fastest sample: it is a ceiling, and whatever disturbs a
measurement only lowers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shared.benchmark import DTYPES, BenchRow, Measurement, measure
from shared.contract import Stage

ROUNDS = 100_000
"""Turns of the loop in one call: a fraction of a millisecond, against which the call itself is nothing."""

NAME = "registers only"
REFERENCE = "its own fastest sample"


def peak_call(stages: Sequence[Stage], dtype: str) -> Callable[[], float] | None:
    """A call of the loop, which returns the floating-point operations it did; None where no stage has one."""
    for stage in stages:
        peak = getattr(stage.matmul, "peak", None)
        if peak is not None:
            return lambda: float(peak(dtype, ROUNDS))
    return None


def flops_per_second(call: Callable[[], float], measurement: Measurement) -> float:
    """One core's peak in FLOP/s, from the times that `call` was measured to take."""
    return call() / measurement.fastest


def peak_rows(stages: Sequence[Stage], *, dtypes: Sequence[str] = DTYPES, repeats: int = 15) -> Iterator[BenchRow]:
    """The peak of one core for each dtype; no rows where no stage can measure it."""
    for dtype in dtypes:
        for stage in stages:
            call = peak_call([stage], dtype)
            if call is not None:
                result = measure({"peak": call}, repeats=repeats)["peak"]
                flops, peak = int(call()), flops_per_second(call, result)
                ratio = result.median / result.fastest
                yield BenchRow("peak", stage.name, NAME, dtype, (), flops, result, REFERENCE, ratio, peak=peak)
