"""The steps of an epoch: the batch, the learning rate and the dropout masks of a step follow from its number alone.

Nothing is drawn from a generator that has a state. So all stages train on the same numbers, and a run that was stopped
after any step goes on from there bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from shared.communicator import ALONE, Communicator
from shared.contract import NetworkLike, Optimizer, ResidentRun, Stage, can_be_resident
from shared.data.accepted_data import Split, square
from shared.data.batches import BatchFeeder, batch_order
from shared.dropout import step_masks
from shared.plain_arrays import check_held
from shared.training import schedules
from shared.training.runs import Position
from shared.training.settings import TrainingSettings
from shared.training.shared_step import SharedStep


class EpochRunner:
    """Takes the steps of an epoch, one by one, or several at once on a network that can keep the data on its device.

    base_rate: the optimizer's learning rate when the runner was made, the highest one of the schedule
    shared: takes the steps where a batch is cut into parts or shared between ranks; None where it is not
    seconds, communication: time of the steps since the runner was made, and how much of it went to the other ranks
    settled: whether the network is in the state after the step that was reported last; only then can it be saved
    Raises ValueError if the settings ask for augmentation and the samples are no images.
    """

    def __init__(
        self,
        stage: Stage,
        network: NetworkLike,
        optimizer: Optimizer,
        data: Split,
        settings: TrainingSettings,
        checkpoint_every: int | None = None,
        ranks: Communicator = ALONE,
    ) -> None:
        self.stage, self.network, self.optimizer = stage, network, optimizer
        self.data, self.settings = data, settings
        self.base_rate = optimizer.learning_rate
        self.steps_per_epoch = math.ceil(len(data) / settings.batch_size)
        self._dropouts = network.architecture.dropouts()
        self._image_shape: tuple[int, ...] = ()
        if settings.augmentation is not None:
            self._image_shape = _image_shape(network, data)
            narrower = min(np.dtype(network.dtype), data.x.dtype, key=lambda dtype: dtype.itemsize)
            check_held("augmentation: background", np.array(settings.augmentation.background, np.float64), narrower)
        self.ranks = ranks
        self.seconds = self.communication = 0.0
        self.shared: SharedStep | None = None
        if ranks.size > 1 or settings.accumulate > 1:
            self.shared = SharedStep(stage, network, optimizer, ranks, settings.accumulate, settings.local_statistics)
        self.settled = True
        self.checkpoint_every = checkpoint_every
        self._feeder = BatchFeeder(stage, network, data, settings.batch_size)
        self._resident: ResidentRun | None = None
        if self.shared is None and can_be_resident(network):
            self._resident = network.resident(
                data.x, data.y, optimizer, settings.batch_size, settings.seed, settings.augmentation
            )

    def learning_rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0 since the training began."""
        settings = self.settings
        return schedules.learning_rate_at(
            self.base_rate, settings.schedule, step, self.steps_per_epoch, settings.epochs
        )

    def steps_done(self, position: Position) -> int:
        """Number of optimizer steps since the training began."""
        return position.epoch * self.steps_per_epoch + position.step

    def rest_of_epoch(self, position: Position) -> Iterator[tuple[float, float]]:
        """Take the steps from position to the end of its epoch and move position along.

        Yields (mean loss of the epoch so far, loss of the step) after each step.
        Raises ValueError if a loss is not finite.
        """
        order = batch_order(len(self.data), self.settings.seed, position.epoch)
        if self._resident is not None:
            self._resident.begin_epoch(order)
        while position.step < self.steps_per_epoch:
            started, before = time.perf_counter(), self.ranks.seconds
            if self._resident is None:
                losses = [self._one_step(order, position)]
            else:
                losses = self._several_steps(self._resident, position)
            spent = time.perf_counter() - started
            position.seconds += spent
            self.seconds += spent
            self.communication += self.ranks.seconds - before
            for i, loss in enumerate(losses, start=1):
                if not math.isfinite(loss):
                    raise ValueError(diverged(loss, "at", position.epoch + 1, position.step + 1))
                start = position.step * self.settings.batch_size
                count = min(self.settings.batch_size, len(order) - start)
                position.loss_sum += loss * count
                position.step += 1
                self.settled = i == len(losses)
                yield position.loss_sum / (start + count), loss

    def _one_step(self, order: np.ndarray, position: Position) -> float:
        """Take one step of the stage. Returns its loss."""
        size, seed = self.settings.batch_size, self.settings.seed
        step, dtype = self.steps_done(position), self.network.dtype
        indices = order[position.step * size : (position.step + 1) * size]
        self.optimizer.learning_rate = self.learning_rate(step)

        def batch(rows: range) -> tuple[Any, Any, list[Any] | None]:
            """x, y and the masks of these rows of the batch."""
            own = indices[rows.start : rows.stop]
            change = partial(self._augmented, own, position.epoch) if self.settings.augmentation is not None else None
            x, y = self._feeder.batch(own, change)
            masks = step_masks(len(own), self._dropouts, seed, step, dtype, rows.start)
            return x, y, None if masks is None else [self.stage.arrays.asarray(mask, dtype) for mask in masks]

        if self.shared is not None:
            return self.shared.take(len(indices), batch)
        x, y, masks = batch(range(len(indices)))
        return float(self.network.train_step(x, y, self.optimizer, dropout_masks=masks))

    def _augmented(self, indices: np.ndarray, epoch: int, rows: np.ndarray) -> np.ndarray:
        """The rows of these training samples as the network sees them in this epoch, (batch, features)."""
        assert self.settings.augmentation is not None
        images = rows.reshape(-1, *self._image_shape)
        return self.settings.augmentation.augmented(images, indices, self.settings.seed, epoch).reshape(rows.shape)

    def _several_steps(self, resident: ResidentRun, position: Position) -> list[float]:
        """Take the network's steps up to the next checkpoint at the latest, in one call. Returns their losses."""
        last = min(position.step + resident.interval, self.steps_per_epoch)
        if self.checkpoint_every:
            last = min(last, position.step - position.step % self.checkpoint_every + self.checkpoint_every)
        done = self.steps_done(position)
        settings, count = self.settings, last - position.step
        rates = schedules.learning_rates(
            self.base_rate, settings.schedule, done, count, self.steps_per_epoch, settings.epochs
        )

        def meanwhile() -> None:
            """Send the order of the next epoch while the device works on the last steps of this one."""
            if last == self.steps_per_epoch:
                resident.prefetch(batch_order(len(self.data), self.settings.seed, position.epoch + 1))

        return resident.take(position.step, rates, done, meanwhile)


def _image_shape(network: NetworkLike, data: Split) -> tuple[int, int, int]:
    """(channels, height, width) of a sample: what the network's architecture says, else the data, else a square
    grey image."""
    features = data.x.shape[1]
    taken = network.architecture.input_shape
    shape = taken if len(taken) == 3 else data.shape or square(features)
    if shape is None:
        raise ValueError(f"augmentation: the samples have {features} features, which are no square image")
    channels, height, width = shape
    return channels, height, width


def diverged(loss: float, when: str, epoch: int, step: int) -> str:
    """The sentence for a loss that is not finite; when: "at" or "after" the step."""
    return (
        f"the loss is {loss} {when} epoch {epoch}, step {step}: the training diverged; "
        "lower the learning rate (the last checkpoint, if any, is from before that)"
    )
