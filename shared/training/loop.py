"""The training loop, the one that all stages share.

    for each epoch:
        for each mini-batch, in an order drawn from the seed:
            set the learning rate, draw the dropout masks, take one step
        measure; remember the best; save a checkpoint; stop early if nothing improves

Everything random is computed from the seed and a counter (epoch or step) instead of being drawn from a generator that
remembers: so two stages train on the same numbers, and a run that was stopped anywhere ends, once resumed, bit for bit
where it would have ended. What a run must remember is in `shared.training.runs`.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shared.contract import NetworkLike, Optimizer, Stage
from shared.data.batches import BatchFeeder, as_targets, batch_order, split_validation
from shared.data.datasets import Split
from shared.dropout import step_masks
from shared.training.interrupts import Note, noted_interrupts
from shared.training.metrics import EpochRecord, evaluate
from shared.training.progress import TrainingBar
from shared.training.runs import Progress, Run
from shared.training.schedules import check_schedule, learning_rate_at

__all__ = ["EpochRecord", "TrainingInterrupted", "TrainingResult", "as_targets", "batch_order", "evaluate", "train"]

MONITORS = ("train_loss", "validation_loss", "validation_accuracy")
TRAIN_ACCURACY_SAMPLES = 1000


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C (or SIGTERM) came; the run was saved at `checkpoint` after `step` steps of `epoch` (both from 1)."""

    def __init__(self, checkpoint: Path, epoch: int, step: int) -> None:
        super().__init__(f"interrupted in epoch {epoch} after step {step}; saved {checkpoint}")
        self.checkpoint, self.epoch, self.step = checkpoint, epoch, step


@dataclass(frozen=True)
class TrainingResult:
    """What training gave.

    epochs: one record for each epoch, those before a resume included
    best_epoch: the epoch (from 1) with the best `monitor`; stopped_early: whether patience ended the training
    steps: optimizer steps taken by this call; 0 where the resumed run was finished already
    """

    epochs: list[EpochRecord]
    monitor: str
    best_epoch: int
    stopped_early: bool
    steps: int


def train(
    stage: Stage,
    network: NetworkLike,
    optimizer: Optimizer,
    train_data: Split,
    *,
    epochs: int,
    batch_size: int = 64,
    seed: int = 0,
    test_data: Split | None = None,
    validation: float = 0.0,
    schedule: str = "constant",
    warmup_epochs: float = 0.0,
    step_epochs: float = 3.0,
    gamma: float | None = None,
    dropout: float = 0.0,
    patience: int | None = None,
    monitor: str | None = None,
    run_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_every: int | None = None,
    notes: Mapping[str, Any] | None = None,
    on_start: Callable[[], None] | None = None,
    on_epoch: Callable[[EpochRecord], None] | None = None,
    on_batch: Callable[[int, int, float], None] | None = None,
    progress_bar: bool | None = None,
) -> TrainingResult:
    """Train the network in place.

    epochs, batch_size: an epoch's last batch is as short as it comes out
    seed: of the batch order, the validation split and the dropout masks
    test_data: measured after each epoch, never used to choose anything
    validation: the fraction of the training data set aside to choose by
    schedule, warmup_epochs, step_epochs, gamma: see `shared.training.schedules`; the base is optimizer.learning_rate,
        which is put back at the end
    dropout: the probability of dropping a hidden neuron
    patience: stop after so many epochs without a better monitor; needs validation
    monitor: what the best epoch is chosen by: train_loss, validation_loss or validation_accuracy. None: validation_loss
        if there is validation, else train_loss
    run_dir: folder for last.safetensors, best.safetensors and metrics.jsonl (see `shared.training.runs`); None writes
        nothing
    resume: go on from run_dir; the network and the optimizer are put where they were
    overwrite: replace a run that is in run_dir already
    checkpoint_every: also save after every so many steps
    notes: kept in the checkpoints for the caller, as JSON
    on_start: called once all arguments are found good, before the first step
    on_epoch: called with each epoch's record; on_batch: with (epoch, step of the epoch, loss), both from 1. On a stage
        that takes several steps at once the losses of those come one after the other, when all have been taken
    progress_bar: None shows one where stderr is a terminal

    Raises ValueError for an argument out of its range, and where the loss stops being a finite number; CheckpointError
    where resuming is not possible; OSError where run_dir cannot be written; TrainingInterrupted, a KeyboardInterrupt,
    after Ctrl-C or SIGTERM, once the running step is over and saved (only with a run_dir).
    """
    _check_counts(epochs=epochs, batch_size=batch_size, patience=patience, checkpoint_every=checkpoint_every)
    check_schedule(schedule, epochs, warmup_epochs, step_epochs, gamma)
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout: expected a rate of at least 0 and below 1, got {dropout}")
    if run_dir is None and (resume or overwrite or checkpoint_every):
        raise ValueError("resume, overwrite and checkpoint_every need a run_dir")
    _check_data(network, train_data, seed)
    monitor = _choose_monitor(monitor, validation, patience)
    fitted, held_out = split_validation(train_data, validation, seed)
    base_rate = optimizer.learning_rate
    rates = partial(
        learning_rate_at,
        *(base_rate, schedule),
        epochs=epochs,
        warmup_epochs=warmup_epochs,
        step_epochs=step_epochs,
        gamma=gamma,
    )
    stepper = Stepper(stage, network, optimizer, fitted, batch_size, seed, dropout, rates, checkpoint_every)

    run, position = None, Progress()
    if run_dir is not None:
        settings = {
            "training_samples": len(train_data),
            "training_data": _checksum(train_data),
            "batch_size": batch_size,
            "seed": seed,
            "validation": validation,
            "monitor": monitor,
            "dropout": dropout,
            "schedule": schedule,
            "warmup_epochs": warmup_epochs,
            "step_epochs": step_epochs,
            "gamma": gamma,
            "epochs": epochs,
        }
        run = Run(Path(run_dir), stage, network, optimizer, settings, dict(notes or {}))
        position = run.resume() if resume else run.begin(overwrite)

    def save() -> None:
        if run is not None:
            optimizer.learning_rate = base_rate  # a checkpoint names the rate asked for; each step sets its own
            run.save(position)

    def finished() -> bool:
        return position.epoch >= epochs or (patience is not None and position.epochs_since_best >= patience)

    if on_start is not None:
        on_start()
    steps_before = position.epoch * stepper.steps_per_epoch + position.step
    with (
        TrainingBar(epochs, stepper.steps_per_epoch, steps_before, progress_bar) as bar,
        noted_interrupts() if run is not None else contextlib.nullcontext(Note()) as note,
        # an overflow is no secret here: the loss shows it, and the loop stops with an error that says more
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
    ):
        try:
            while not finished():
                for mean_loss, loss in stepper.rest_of_epoch(position):
                    bar.step(position.epoch, stepper.steps_done(position), mean_loss)
                    if on_batch is not None:
                        on_batch(position.epoch + 1, position.step, loss)
                    if not stepper.settled:
                        continue
                    if note.requested or (checkpoint_every and position.step % checkpoint_every == 0):
                        save()
                    if note.requested and run is not None:
                        raise TrainingInterrupted(run.last, position.epoch + 1, position.step)
                record = _measure(stepper, position, held_out, test_data)
                if _remember(position, record, monitor) and run is not None:
                    run.save_best(record)
                save()
                bar.accuracy(record)
                if on_epoch is not None:
                    on_epoch(record)
                if note.requested and run is not None and not finished():
                    raise TrainingInterrupted(run.last, position.epoch + 1, 0)
        finally:
            optimizer.learning_rate = base_rate
    return TrainingResult(
        epochs=list(position.records),
        monitor=monitor,
        best_epoch=position.best_epoch or 0,
        stopped_early=position.epoch < epochs,
        steps=stepper.steps_done(position) - steps_before,
    )


class Stepper:
    """Takes the steps of an epoch: the batch, the learning rate and the masks of each follow from its number.

    A stage whose network has `resident` keeps the data on its device and takes several steps at once; their losses are
    told one by one all the same. settled: whether the network stands where the step told last left it; only then can
    it be saved.
    """

    def __init__(
        self,
        stage: Stage,
        network: NetworkLike,
        optimizer: Optimizer,
        data: Split,
        batch_size: int,
        seed: int,
        dropout: float,
        rates: Callable[[int, int], float],
        checkpoint_every: int | None,
    ) -> None:
        self.stage, self.network, self.optimizer, self.data = stage, network, optimizer, data
        self.batch_size, self.seed, self.dropout, self.rates = batch_size, seed, dropout, rates
        self.steps_per_epoch = math.ceil(len(data) / batch_size)
        self._feeder = BatchFeeder(stage, network, data, batch_size)
        self._hidden_sizes = list(network.layer_sizes[1:-1])
        self._checkpoint_every = checkpoint_every
        self.settled = True
        resident = getattr(network, "resident", None)
        self._resident: Any = resident and resident(data.x, data.y, optimizer, batch_size, dropout, seed)

    def steps_done(self, position: Progress) -> int:
        """Optimizer steps since the training began."""
        return position.epoch * self.steps_per_epoch + position.step

    def rest_of_epoch(self, position: Progress) -> Iterator[tuple[float, float]]:
        """Take the epoch's steps from where position stands, yielding (mean loss so far, loss of the step) after each.

        Raises ValueError where a loss is not finite.
        """
        order = batch_order(len(self.data), self.seed, position.epoch)
        take = self._take_one if self._resident is None else self._take_some
        if self._resident is not None:
            self._resident.begin_epoch(order)
        while position.step < self.steps_per_epoch:
            started = time.perf_counter()
            losses = take(order, position)
            position.seconds += time.perf_counter() - started
            for i, loss in enumerate(losses, start=1):
                if not math.isfinite(loss):
                    raise ValueError(
                        f"the loss is {loss} at epoch {position.epoch + 1}, step {position.step + 1}: the training "
                        "diverged; lower the learning rate (the last checkpoint, if any, is from before that)"
                    )
                start = position.step * self.batch_size
                count = min(self.batch_size, len(order) - start)
                position.loss_sum += loss * count
                position.step += 1
                self.settled = i == len(losses)
                yield position.loss_sum / (start + count), loss

    def _take_one(self, order: np.ndarray, position: Progress) -> list[float]:
        start = position.step * self.batch_size
        return [self._step(order[start : start + self.batch_size], self.steps_done(position))]

    def _take_some(self, order: np.ndarray, position: Progress) -> list[float]:
        """As many steps as the stage takes at once, but no further than where the network is to be saved."""
        last = min(position.step + self._resident.interval, self.steps_per_epoch)
        if self._checkpoint_every:
            last = min(last, position.step - position.step % self._checkpoint_every + self._checkpoint_every)
        done = self.steps_done(position)
        rates = [self.rates(done + i, self.steps_per_epoch) for i in range(last - position.step)]

        def meanwhile() -> None:
            """While the device works on the epoch's last steps: the next one's order."""
            if last == self.steps_per_epoch:
                self._resident.prefetch(batch_order(len(self.data), self.seed, position.epoch + 1))

        losses: list[float] = self._resident.take(position.step, rates, done, meanwhile)
        return losses

    def _step(self, indices: np.ndarray, step: int) -> float:
        dtype, convert = self.network.dtype, self.stage.arrays.asarray
        self.optimizer.learning_rate = self.rates(step, self.steps_per_epoch)
        x, y = self._feeder.batch(indices)
        masks = step_masks(len(indices), self._hidden_sizes, self.dropout, self.seed, step, dtype)
        own_masks = None if masks is None else [convert(mask, dtype) for mask in masks]
        return float(self.network.train_step(x, y, self.optimizer, dropout_masks=own_masks))


def _measure(stepper: Stepper, position: Progress, held_out: Split | None, test_data: Split | None) -> EpochRecord:
    """The record of the epoch whose steps have all been taken."""

    def loss_and_accuracy(data: Split | None) -> tuple[float, float] | tuple[None, None]:
        if data is None:
            return None, None
        loss, accuracy, _ = evaluate(stepper.stage, stepper.network, data)
        if not math.isfinite(loss):
            raise ValueError(
                f"the loss is {loss} after epoch {position.epoch + 1}, step {position.step}: the training diverged; "
                "lower the learning rate (the last checkpoint, if any, is from before that)"
            )
        return loss, accuracy

    data = stepper.data
    some = Split(data.x[:TRAIN_ACCURACY_SAMPLES], data.y[:TRAIN_ACCURACY_SAMPLES])
    validation_loss, validation_accuracy = loss_and_accuracy(held_out)
    test_loss, test_accuracy = loss_and_accuracy(test_data)
    return EpochRecord(
        epoch=position.epoch + 1,
        learning_rate=stepper.rates(stepper.steps_done(position) - 1, stepper.steps_per_epoch),
        train_loss=position.loss_sum / len(data),
        train_accuracy=loss_and_accuracy(some)[1],
        validation_loss=validation_loss,
        validation_accuracy=validation_accuracy,
        test_loss=test_loss,
        test_accuracy=test_accuracy,
        seconds=position.seconds,
        samples_per_second=len(data) / position.seconds,
    )


def _remember(position: Progress, record: EpochRecord, monitor: str) -> bool:
    """Move position to the next epoch. Returns whether this one was the best so far."""
    value = getattr(record, monitor)
    best = position.best_value
    higher_is_better = monitor.endswith("accuracy")
    improved = best is None or (value > best if higher_is_better else value < best)
    if improved:
        position.best_value, position.best_epoch, position.epochs_since_best = value, record.epoch, 0
    else:
        position.epochs_since_best += 1
    position.records.append(record)
    position.epoch, position.step, position.loss_sum, position.seconds = record.epoch, 0, 0.0, 0.0
    return improved


def _choose_monitor(monitor: str | None, validation: float, patience: int | None) -> str:
    if monitor is None:
        monitor = "validation_loss" if validation else "train_loss"
    if monitor not in MONITORS:
        raise ValueError(f"unknown monitor {monitor!r}; choose one of {', '.join(MONITORS)}")
    if not validation and (patience is not None or monitor != "train_loss"):
        raise ValueError("patience and a validation monitor need a validation split; give validation a fraction")
    return monitor


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")


def _check_data(network: NetworkLike, data: Split, seed: int) -> None:
    if seed < 0:
        raise ValueError(f"seed: expected at least 0, got {seed}")
    if len(data) == 0 or len(data.x) != len(data.y):
        raise ValueError(f"training data: expected as many samples as labels, got {len(data.x)} and {len(data.y)}")
    if data.x.shape[1] != network.layer_sizes[0]:
        raise ValueError(f"the data has {data.x.shape[1]} features, but the network takes {network.layer_sizes[0]}")
    as_targets(data.y, network.loss_name, network.layer_sizes[-1])


def _checksum(data: Split) -> str:
    """Tells one data set from another of the same size."""
    return f"crc32 {zlib.crc32(np.ascontiguousarray(data.y).data, zlib.crc32(np.ascontiguousarray(data.x).data)):08x}"
