"""Learning-rate schedules: large steps at the beginning of training, small steps towards its end.

Each schedule is a plain function of t, the number of optimizer steps since the warm-up ended. It has no state, so
training can stop and resume after any step. T is the number of steps between the warm-up and the end of training.

    constant       base
    step           base * gamma^floor(t / (step_epochs * steps_per_epoch))    torch.optim.lr_scheduler.StepLR
    exponential    base * gamma^(t / steps_per_epoch)                         ExponentialLR, applied at each step
    cosine         base * (1 + cos(pi * t / T)) / 2                           CosineAnnealingLR(T_max=T, eta_min=0)

During a warm-up the rate rises in a straight line, base * (step + 1) / warmup_steps (LinearLR). The first gradients of
a fresh network and the first estimates of Adam are unreliable, and small steps limit the harm they do.
"""

import math
from dataclasses import dataclass

SCHEDULES = ("constant", "step", "exponential", "cosine")

DEFAULT_GAMMA = {"constant": 1.0, "step": 0.5, "exponential": 0.9, "cosine": 1.0}
"""The decay factor where none is given; constant and cosine do not use it."""


@dataclass(frozen=True)
class Schedule:
    """How the learning rate changes during training.

    name: one of SCHEDULES
    warmup_epochs: length of the warm-up, in epochs (fractions allowed)
    step_epochs: epochs between two drops of the step schedule (fractions allowed)
    gamma: factor of the step schedule (at each drop) and of the exponential one (in each epoch); None: DEFAULT_GAMMA

    Raises ValueError for an unknown name or a number out of its range.
    """

    name: str = "constant"
    warmup_epochs: float = 0.0
    step_epochs: float = 3.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            raise ValueError(f"unknown schedule {self.name!r}; choose one of {', '.join(SCHEDULES)}")
        if not 0.0 < self.step_epochs < math.inf:
            raise ValueError(f"step_epochs: expected a finite number above 0, got {self.step_epochs}")
        if self.gamma is not None and not 0.0 < self.gamma <= 1.0:
            raise ValueError(f"gamma: expected a number above 0 and at most 1, got {self.gamma}")

    def check_warmup(self, epochs: int) -> None:
        """Raise ValueError if the warm-up is longer than a training of so many epochs, or shorter than 0."""
        if not 0.0 <= self.warmup_epochs <= epochs:
            raise ValueError(f"warmup_epochs: expected 0 to {epochs} (the epochs), got {self.warmup_epochs}")


def learning_rate_at(base: float, schedule: Schedule, step: int, steps_per_epoch: int, epochs: int) -> float:
    """The learning rate of one optimizer step, by the formulas at the top of the file.

    base: the highest rate of the schedule
    schedule: its name, warmup_epochs, step_epochs and gamma; a gamma of None is that of DEFAULT_GAMMA
    step: number of optimizer steps taken before this one
    epochs: length of the whole training, which only the cosine schedule depends on: after its end the cosine stays 0
    """
    warmup_steps = _warmup_steps(schedule, steps_per_epoch)
    if step < warmup_steps:
        return base * (step + 1) / warmup_steps
    t = step - warmup_steps
    gamma = DEFAULT_GAMMA[schedule.name] if schedule.gamma is None else schedule.gamma
    if schedule.name == "step":
        return base * gamma ** math.floor(t / (schedule.step_epochs * steps_per_epoch))
    if schedule.name == "exponential":
        return base * gamma ** (t / steps_per_epoch)
    if schedule.name == "cosine":
        total = max(1, epochs * steps_per_epoch - warmup_steps)
        return base * (1.0 + math.cos(math.pi * min(t, total) / total)) / 2.0
    return base


def learning_rates(
    base: float, schedule: Schedule, first: int, count: int, steps_per_epoch: int, epochs: int
) -> list[float]:
    """The learning rates of `count` steps from step `first` on. The other arguments are those of learning_rate_at."""
    if schedule.name == "constant" and first >= _warmup_steps(schedule, steps_per_epoch):
        return [base] * count  # a GPU computes a step in microseconds, and would wait for a function of each
    return [learning_rate_at(base, schedule, first + i, steps_per_epoch, epochs) for i in range(count)]


def _warmup_steps(schedule: Schedule, steps_per_epoch: int) -> int:
    return round(schedule.warmup_epochs * steps_per_epoch)
