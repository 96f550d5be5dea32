"""What the training loop is told: the settings that decide about the numbers, where to save, and whom to inform."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.data.augmentation import Augmentation
from shared.training.metrics import EpochRecord, whole
from shared.training.schedules import Schedule

MONITORS = ("train_loss", "validation_loss", "validation_accuracy")


@dataclass(frozen=True)
class TrainingSettings:
    """The settings that decide about the numbers of a training.

    epochs: passes over the training data
    batch_size: samples in a step; the last batch of an epoch may be smaller
    seed: of the batch order, the validation split, the dropout masks and the augmentation
    augmentation: how the training images are changed in each epoch; None for not at all
    schedule: how the learning rate changes; its highest value is the optimizer's learning_rate
    validation: the fraction of the training data that is set aside and only measured
    patience: stop after so many epochs in which the monitor did not improve; needs a validation split
    monitor: the measurement that decides which epoch is the best, one of MONITORS; None: validation_loss with a
        validation split, train_loss without one
    accumulate: into how many parts a batch is cut, one after the other in memory, before the optimizer takes its step
    local_statistics: of several ranks, whether each one normalises by its own rows of a batch, and not by all of them

    Raises ValueError for a value out of its range.
    """

    epochs: int
    batch_size: int = 64
    seed: int = 0
    schedule: Schedule = field(default_factory=Schedule)
    validation: float = 0.0
    patience: int | None = None
    monitor: str | None = None
    augmentation: Augmentation | None = None
    accumulate: int = 1
    local_statistics: bool = False

    def __post_init__(self) -> None:
        _make_whole(self, epochs=1, batch_size=1, patience=1, seed=0, accumulate=1)
        self.schedule.check_warmup(self.epochs)
        if not 0.0 <= self.validation < 1.0:
            raise ValueError(f"validation: expected a fraction of at least 0 and below 1, got {self.validation}")
        if self.monitor is not None and self.monitor not in MONITORS:
            raise ValueError(f"unknown monitor {self.monitor!r}; choose one of {', '.join(MONITORS)}")
        if not self.validation and (self.patience is not None or self.best_by != "train_loss"):
            raise ValueError("patience and a validation monitor need a validation split; give validation a fraction")

    @property
    def best_by(self) -> str:
        """The monitor, or its default where it is None."""
        return self.monitor or ("validation_loss" if self.validation else "train_loss")


@dataclass(frozen=True)
class Saving:
    """Where a run is saved, and whether it goes on from there.

    run_dir: folder for the checkpoints and the records of the run (see `shared.training.runs`)
    resume: go on with the run in run_dir; its checkpoint overwrites the network and the optimizer
    overwrite: replace the run in run_dir
    checkpoint_every: save after every so many steps, in addition to the end of each epoch
    notes: JSON values that the caller wants to find again in the checkpoints
    """

    run_dir: str | os.PathLike[str]
    resume: bool = False
    overwrite: bool = False
    checkpoint_every: int | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _make_whole(self, checkpoint_every=1)


@dataclass(frozen=True)
class Hooks:
    """Functions that the training loop calls, and its progress bar.

    on_start: called before the first step, after all arguments have been checked
    on_epoch: called with the record of each epoch
    on_batch: called after each step with (epoch, step of the epoch, loss), both counted from 1. A network that takes
        several steps at once reports their losses one after the other when all of them have been taken
    progress_bar: None shows the bar if stderr is a terminal
    """

    on_start: Callable[[], None] | None = None
    on_epoch: Callable[[EpochRecord], None] | None = None
    on_batch: Callable[[int, int, float], None] | None = None
    progress_bar: bool | None = None


QUIET = Hooks(progress_bar=False)
"""No calls and no progress bar."""


def _make_whole(settings: Any, **least: int) -> None:
    """Make these settings ints, or raise ValueError: half a sample in a batch would be cut off without a word."""
    for name, smallest in least.items():
        value = getattr(settings, name)
        if value is not None:
            object.__setattr__(settings, name, whole(name, value, smallest))
