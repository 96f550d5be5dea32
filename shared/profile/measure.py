"""Noted and plain steps in turns, until there are enough rounds or the time is up; then what bounds each operation."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from shared.bench.kinds.steps import Case
from shared.bench.measuring.gpu import on_gpu
from shared.bench.measuring.timing import summarise
from shared.contract import Stage, is_emulated
from shared.profile.bound import NEITHER, bound_of
from shared.profile.c_step import CStep
from shared.profile.operations import Operation
from shared.profile.python_step import PythonStep
from shared.profile.roofs import Roofs
from shared.profile.step_profile import Bound, Listener, Noted, Profile, Timed

LEAST_ROUNDS = 3
WARM_UP = 3
"""Steps before the first round, at most: a step that takes seconds needs one."""

CALLS = 2_000
FIRST_FLOOR, C_FLOOR, GPU_FLOOR = 1, 3, 4


@dataclass(frozen=True)
class Effort:
    """rounds: at most, each a plain and a noted step; seconds: for all of them, but for LEAST_ROUNDS"""

    rounds: int = 200
    seconds: float = 6.0


def listener_of(stage: Stage, case: Case) -> Listener:
    """How this stage's step is listened to."""
    if stage.number == C_FLOOR:
        return CStep(stage, case)
    if stage.number == GPU_FLOOR:
        from shared.profile.kernel_step import KernelStep  # here, because it needs the device of stage 4

        return KernelStep(stage, case)
    return PythonStep(stage, case)


def profile(
    stage: Stage,
    case: Case,
    threads: int,
    roofs: Roofs,
    effort: Effort = Effort(),
    say: Callable[[float], object] = lambda done: None,
) -> Profile:
    """The profile of this stage's training step of the case.

    say: told now and then what share of the rounds is done
    """
    threads = 1 if stage.number == FIRST_FLOOR or on_gpu(stage) else threads
    listener = listener_of(stage, case)
    plain, noted = _rounds(listener, effort, say)
    step = summarise(plain)
    totals = [timeline.total for timeline in noted]
    lasted = np.array([[seconds for _, seconds in timeline.spans] for timeline in noted])
    between = [total - float(sum(row)) for total, row in zip(totals, lasted, strict=True)]
    emulated = is_emulated(stage.name)
    bound = partial(
        _bound,
        dtype=case.dtype,
        threads=threads,
        roofs=roofs,
        call=_call_seconds(stage, case.dtype) if stage.number == 2 else None,
        interpreted=stage.number == FIRST_FLOOR,
    )
    peak = None if emulated else roofs.peak_of(case.dtype, threads)
    timed = []
    for i, operation in enumerate(listener.operations):
        measured = summarise([float(seconds) for seconds in lasted[:, i]])
        share_of_peak = operation.flops / measured.median / peak if peak and measured.median else None
        limit = Bound(NEITHER, None, "emulated") if emulated else bound(operation, measured.median)
        timed.append(Timed(operation, measured, measured.median / step.median, share_of_peak, limit))
    middle = min(noted, key=lambda timeline: abs(timeline.total - float(np.median(totals))))
    return Profile(
        stage.name,
        case.model or "-".join(map(str, case.layer_sizes)),
        case.batch,
        case.dtype,
        threads,
        emulated,
        listener.clock,
        step,
        summarise(totals),
        summarise([max(gap, 0.0) for gap in between]),
        listener.notes,
        listener.cost_of_a_note(),
        timed,
        middle,
    )


def _rounds(listener: Listener, effort: Effort, say: Callable[[float], object]) -> tuple[list[float], list[Noted]]:
    """(seconds of the plain steps, the noted steps)."""
    begin = time.perf_counter()
    for _ in range(WARM_UP):
        listener.step()
        listener.noted_step()
        if time.perf_counter() - begin > effort.seconds / 4:
            break
    plain: list[float] = []
    noted: list[Noted] = []
    collecting = gc.isenabled()
    gc.disable()  # a collection would fall into whichever operation is running
    try:
        begin = time.perf_counter()
        while len(plain) < effort.rounds:
            spent = time.perf_counter() - begin
            if len(plain) >= min(LEAST_ROUNDS, effort.rounds) and spent > effort.seconds:
                break
            start = time.perf_counter()
            listener.step()
            plain.append(time.perf_counter() - start)
            noted.append(listener.noted_step())
            say(max(len(plain) / effort.rounds, min(1.0, spent / effort.seconds)))
    finally:
        if collecting:
            gc.enable()
    return plain, [timeline for timeline in noted if min(seconds for _, seconds in timeline.spans) >= 0] or noted


def _bound(operation: Operation, seconds: float, **how: object) -> Bound:
    return bound_of(operation, max(seconds, 1e-9), **how)  # type: ignore[arg-type]


def _call_seconds(stage: Stage, dtype: str) -> float:
    """Seconds of a call of an operation of this stage on a single number."""
    one = stage.arrays.asarray([[1.0]], dtype)
    out = stage.arrays.asarray([[1.0]], dtype)
    samples: Sequence[float] = [_seconds_of(partial(stage.activations.relu, one, out=out)) for _ in range(5)]
    return min(samples)


def _seconds_of(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begin) / CALLS
