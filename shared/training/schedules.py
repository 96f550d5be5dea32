"""Learning-rate schedules: large steps while there is far to go, small ones to settle.

Each schedule is a plain function of t, the optimizer steps taken since the warm-up ended, so that training can be
stopped and resumed anywhere: there is no state to lose. T is the number of steps from there to the end of training.

    constant       base
    step           base * gamma^floor(t / (step_epochs * steps_per_epoch))    torch.optim.lr_scheduler.StepLR
    exponential    base * gamma^(t / steps_per_epoch)                         ExponentialLR, applied at each step
    cosine         base * (1 + cos(pi * t / T)) / 2                           CosineAnnealingLR(T_max=T, eta_min=0)

A warm-up before any of them rises in a straight line, base * (step + 1) / warmup_steps (LinearLR), because the first
gradients of a fresh network, and Adam's first estimates, deserve little trust.
"""

import math

SCHEDULES = ("constant", "step", "exponential", "cosine")

DEFAULT_GAMMA = {"constant": 1.0, "step": 0.5, "exponential": 0.9, "cosine": 1.0}
"""The factor of each decay where none is given; constant and cosine do not use it."""


def learning_rate_at(
    base: float,
    schedule: str,
    step: int,
    steps_per_epoch: int,
    epochs: int,
    *,
    warmup_epochs: float = 0.0,
    step_epochs: float = 3.0,
    gamma: float | None = None,
) -> float:
    """The learning rate of one optimizer step.

    base: the rate at its highest
    step: optimizer steps taken before this one, from 0
    epochs: of the whole training; only cosine needs to know where the end is
    warmup_epochs: length of the warm-up, in epochs (fractions allowed)
    step_epochs: epochs between the drops of `step`
    gamma: the factor of `step` (each drop) and `exponential` (each epoch); DEFAULT_GAMMA where None
    Raises ValueError as `check_schedule` does.
    """
    check_schedule(schedule, epochs, warmup_epochs, step_epochs, gamma)
    warmup_steps = round(warmup_epochs * steps_per_epoch)
    if step < warmup_steps:
        return base * (step + 1) / warmup_steps
    t = step - warmup_steps
    factor = DEFAULT_GAMMA[schedule] if gamma is None else gamma
    if schedule == "step":
        return base * factor ** math.floor(t / (step_epochs * steps_per_epoch))
    if schedule == "exponential":
        return base * factor ** (t / steps_per_epoch)
    if schedule == "cosine":
        total = max(1, epochs * steps_per_epoch - warmup_steps)
        return base * (1.0 + math.cos(math.pi * min(t, total) / total)) / 2.0
    return base


def check_schedule(
    schedule: str, epochs: int, warmup_epochs: float = 0.0, step_epochs: float = 3.0, gamma: float | None = None
) -> None:
    """ValueError for an unknown schedule, or a number that makes no sense for it."""
    if schedule not in SCHEDULES:
        raise ValueError(f"unknown schedule {schedule!r}; choose one of {', '.join(SCHEDULES)}")
    if epochs < 1:
        raise ValueError(f"epochs: expected at least 1, got {epochs}")
    if not 0.0 <= warmup_epochs <= epochs:
        raise ValueError(f"warmup_epochs: expected 0 to {epochs} (the epochs), got {warmup_epochs}")
    if not 0.0 < step_epochs < math.inf:
        raise ValueError(f"step_epochs: expected a finite number above 0, got {step_epochs}")
    if gamma is not None and not 0.0 < gamma <= 1.0:
        raise ValueError(f"gamma: expected a number above 0 and at most 1, got {gamma}")
