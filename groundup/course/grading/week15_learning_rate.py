"""Week 15: the learning rate of a step, by the schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from shared.training import schedules

Arguments = tuple[float, schedules.Schedule, int, int, int]
"""base, schedule, step, steps_per_epoch, epochs."""


def rate(
    base: float,
    schedule: schedules.Schedule,
    step: int,
    steps_per_epoch: int,
    epochs: int,
    *,
    warm: Callable[[int, float], float] = lambda step, warmup: (step + 1) / warmup,
    begin: bool = True,
    shorter: bool = True,
    whole: Callable[[float], float] = math.floor,
    whole_epochs: bool = False,
    whole_steps: bool = False,
    between: Callable[[float], float] = float,
    of_steps: bool = True,
    half: float = 2.0,
    up_to_end: bool = True,
    factors: dict[str, float] = {"constant": 1.0, "step": 0.5, "exponential": 0.9, "cosine": 1.0},  # noqa: B006
    fixed_factor: bool = False,
) -> float:
    """The learning rate of a step. The switches make known mistakes."""
    warmup = round(schedule.warmup_epochs * steps_per_epoch)
    if step < warmup:
        return base * warm(step, warmup)
    t = step - warmup if begin else step
    gamma = factors[schedule.name] if schedule.gamma is None or fixed_factor else schedule.gamma
    epoch = t / steps_per_epoch if of_steps else t
    if schedule.name == "step":
        return base * gamma ** whole((math.floor(epoch) if whole_steps else epoch) / between(schedule.step_epochs))
    if schedule.name == "exponential":
        return base * gamma ** (math.floor(epoch) if whole_epochs else epoch)
    if schedule.name == "cosine":
        total = max(1, epochs * steps_per_epoch - (warmup if shorter else 0))
        return base * (1 + math.cos(math.pi * (min(t, total) if up_to_end else t) / total)) / half
    return base


MISTAKES: list[tuple[str, dict[str, Any]]] = [
    (
        "the warm-up begins with step + 1 of warmup_steps: a first step with a rate of 0 would change nothing",
        {"warm": lambda step, warmup: step / warmup},
    ),
    ("during the warm-up the rate rises: it is base * (step + 1) / warmup_steps", {"warm": lambda step, warmup: 1.0}),
    (
        "t counts from the end of the warm-up: subtract the warm-up's steps from step",
        {"begin": False},
    ),
    (
        "the cosine ends with the training, and begins after the warm-up: between them are epochs * steps_per_epoch "
        "steps without those of the warm-up",
        {"shorter": False},
    ),
    (
        "step_epochs may be a fraction: 2.5 epochs of 5 steps are 12.5 steps, not 10",
        {"between": int},
    ),
    (
        "step_epochs may be a fraction: 2.5 epochs of 5 steps are 12.5 steps, so divide before you round",
        {"whole_steps": True},
    ),
    ("the step schedule keeps its rate between two drops: floor, before gamma's power", {"whole": float}),
    ("the drop comes when step_epochs are over, and not when they are half over: floor, not round", {"whole": round}),
    (
        "the exponential schedule falls a little at every step: t / steps_per_epoch is not rounded",
        {"whole_epochs": True},
    ),
    ("gamma is for an epoch, and t counts steps: divide t by steps_per_epoch", {"of_steps": False}),
    ("1 + cos lies between 0 and 2: halve it", {"half": 1.0}),
    ("after the end of the training the cosine rises again: t is at most T", {"up_to_end": False}),
    (
        "a gamma that is None is DEFAULT_GAMMA's, which differs from schedule to schedule",
        {"factors": dict.fromkeys(schedules.SCHEDULES, 1.0)},
    ),
    ("gamma is the schedule's own, and DEFAULT_GAMMA's only where it is None", {"fixed_factor": True}),
]


def learning_rate_at() -> list[Check]:
    """The learning rate of one step, of each schedule."""
    function = schedules.learning_rate_at

    def arguments(rng: np.random.Generator, size: tuple[str, float, float | None, int]) -> Arguments:
        name, warmup, gamma, epochs = size
        steps_per_epoch = int(rng.integers(5, 40))
        schedule = schedules.Schedule(name, warmup, float(rng.integers(1, 4)), gamma)
        step = int(rng.integers(1, max(2, epochs * steps_per_epoch)))
        return float(rng.uniform(0.01, 1)), schedule, step, steps_per_epoch, epochs

    def mistake(text: str, change: dict[str, Any]) -> Mistake:
        return Mistake(text, lambda *given: rate(*given, **change))

    def schedule(name: str, warmup: float = 0.0, step_epochs: float = 3.0, gamma: float | None = None) -> Any:
        return schedules.Schedule(name, warmup, step_epochs, gamma)

    return checks_of(
        Exercise(
            call=function,
            reference=rate,
            show=lambda base, s, step, per_epoch, epochs: (
                f"learning_rate_at({base:.4g}, {s.name}, warm-up {s.warmup_epochs:g}, step_epochs {s.step_epochs:g}, "
                f"gamma {s.gamma}, step {step} of {epochs} epochs with {per_epoch} steps)"
            ),
            hand=[
                ((0.8, schedule("cosine"), 10, 5, 4), 0.4),
                ((0.8, schedule("cosine"), 0, 5, 4), 0.8),
                ((0.8, schedule("cosine"), 20, 5, 4), 0.0),
                ((0.8, schedule("cosine"), 25, 5, 4), 0.0),
                ((0.6, schedule("cosine", warmup=1), 10, 5, 4), 0.45),
                ((0.8, schedule("constant"), 17, 5, 4), 0.8),
                ((0.8, schedule("constant"), 25, 5, 4), 0.8),
                ((0.8, schedule("constant", warmup=2), 0, 5, 4), 0.08),
                ((0.8, schedule("constant", warmup=2), 9, 5, 4), 0.8),
                ((0.6, schedule("constant", warmup=0.52), 0, 5, 4), 0.2),
                ((0.8, schedule("step", step_epochs=2), 9, 5, 4), 0.8),
                ((0.8, schedule("step", step_epochs=2), 10, 5, 4), 0.4),
                ((0.8, schedule("step", step_epochs=2), 19, 5, 4), 0.4),
                ((0.8, schedule("step", step_epochs=2.5, gamma=0.25), 13, 5, 8), 0.2),
                ((0.8, schedule("step", step_epochs=2.5, gamma=0.25), 30, 5, 8), 0.05),
                ((0.8, schedule("step", warmup=1, step_epochs=1, gamma=0.25), 14, 5, 4), 0.2),
                ((0.8, schedule("exponential", gamma=0.25), 10, 5, 4), 0.05),
                ((0.9, schedule("exponential"), 5, 5, 4), 0.81),
                ((1.0, schedule("exponential", gamma=0.0625), 3, 4, 4), 0.125),
                ((0.8, schedule("cosine", warmup=4), 19, 5, 4), 0.8),
                ((0.8, schedule("cosine", warmup=4), 21, 5, 4), 0.0),
            ],
            arguments=arguments,
            typical=("cosine", 0.5, None, 6),
            sizes=[
                (name, warmup, gamma, epochs)
                for epochs in (5, 1)
                for warmup in (0.3, 0.0, 1.0)
                for gamma in (None, 0.7)
                for name in schedules.SCHEDULES
            ],
            again=[
                ("cosine", 0.5, None, 6),
                ("step", 0.0, 0.5, 3),
                ("exponential", 1.0, None, 9),
                ("cosine", 0, None, 6),
            ],
            scale=lambda *given: given[0],
            mistakes=[mistake(*each) for each in MISTAKES],
            fresh=True,
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {"15.4": learning_rate_at}
