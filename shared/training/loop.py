"""The training loop, the same for all stages.

    for each epoch:
        for each mini-batch, in an order drawn from the seed:
            set the learning rate, draw the dropout masks, take one step
        measure; remember the best epoch; save a checkpoint; stop early if nothing improves

The settings are in `shared.training.settings`, the steps of an epoch in `shared.training.epochs`, and what a run must
remember to go on after an interruption in `shared.training.runs`.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shared.contract import NetworkLike, Optimizer, Stage
from shared.data.accepted_data import Split
from shared.data.batches import check_fit, split_validation
from shared.layers import BatchNorm
from shared.training.checkpoints import CheckpointError
from shared.training.epochs import EpochRunner, diverged
from shared.training.interrupts import Note, noted_interrupts
from shared.training.metrics import EpochRecord, evaluate
from shared.training.progress import TrainingBar
from shared.training.recorder import Recorder, recording
from shared.training.runs import Position, Run, remembered_settings
from shared.training.settings import Hooks, Saving, TrainingSettings

TRAIN_ACCURACY_SAMPLES = 1000


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C (or SIGTERM) came; the run was saved at `checkpoint` after `step` steps of `epoch` (both from 1)."""

    def __init__(self, checkpoint: Path, epoch: int, step: int) -> None:
        super().__init__(f"interrupted in epoch {epoch} after step {step}; saved {checkpoint}")
        self.checkpoint, self.epoch, self.step = checkpoint, epoch, step


@dataclass(frozen=True)
class TrainingResult:
    """The outcome of a training.

    epochs: one record for each epoch, those before a resume included
    monitor: the measurement that decided about best_epoch
    best_epoch: the epoch (from 1) with the best monitor
    stopped_early: whether patience ended the training
    steps: optimizer steps taken by this call; 0 if the resumed run had already finished
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
    settings: TrainingSettings,
    *,
    test_data: Split | None = None,
    saving: Saving | None = None,
    hooks: Hooks | None = None,
) -> TrainingResult:
    """Train the network in place.

    optimizer: its learning_rate is the highest one of the schedule, and is put back at the end
    test_data: measured after each epoch, never used to choose anything
    saving: where the run is saved; None writes nothing
    hooks: functions to call during training, and the progress bar

    Raises ValueError if the data does not fit the network or the loss is no longer finite; CheckpointError if the run
    cannot be resumed; OSError if its folder cannot be written, and RunInUse, which is one, if another training has it;
    TrainingInterrupted, a KeyboardInterrupt, after Ctrl-C
    or SIGTERM, once the running step is over and saved (only with `saving`).
    """
    hooks = hooks or Hooks()
    check_fit("training data", network, train_data)
    if test_data is not None:
        check_fit("test data", network, test_data)
    fitted, held_out = split_validation(train_data, settings.validation, settings.seed)
    _check_last_batch(network, len(fitted), settings.batch_size)
    runner = EpochRunner(stage, network, optimizer, fitted, settings, saving.checkpoint_every if saving else None)
    if saving is None:
        return _trained(runner, None, Position(), held_out, test_data, hooks)
    folder, remembered = Path(saving.run_dir), remembered_settings(settings, train_data)
    run = Run(folder, stage, network, optimizer, remembered, dict(saving.notes))
    if saving.resume and not folder.is_dir():
        run.resume()  # which says what is missing; a lock would make the folder
    with run.lock:
        position = run.resume() if saving.resume else run.begin(saving.overwrite)
        if position.step > runner.steps_per_epoch:
            raise CheckpointError(
                f"{run.last} does not say how far its run has come: step {position.step} of {runner.steps_per_epoch}"
            )
        return _trained(runner, run, position, held_out, test_data, hooks)


def _trained(
    runner: EpochRunner,
    run: Run | None,
    position: Position,
    held_out: Split | None,
    test_data: Split | None,
    hooks: Hooks,
) -> TrainingResult:
    """Train from this position on. run: whose folder is locked; None for a training that is not saved"""
    settings, optimizer = runner.settings, runner.optimizer
    checkpoint_every = runner.checkpoint_every

    def save() -> None:
        if run is not None:
            optimizer.learning_rate = runner.base_rate  # checkpoints name the base rate; each step sets its own
            run.save(position)

    def finished() -> bool:
        patience = settings.patience
        return position.epoch >= settings.epochs or (patience is not None and position.epochs_since_best >= patience)

    if hooks.on_start is not None:
        hooks.on_start()
    steps_before = runner.steps_done(position)
    with (
        TrainingBar(settings.epochs, runner.steps_per_epoch, steps_before, hooks.progress_bar) as bar,
        noted_interrupts() if run is not None else contextlib.nullcontext(Note()) as note,
        recording(run, runner, position) as recorder,
        # The loss shows an overflow, and the loop then stops with an error that says more than NumPy's warning.
        np.errstate(all="ignore"),
    ):
        try:
            while not finished():
                for mean_loss, loss in runner.rest_of_epoch(position):
                    _tell(bar, hooks, recorder, runner, position, mean_loss, loss)
                    if not runner.settled:
                        continue
                    if note.requested or (checkpoint_every and position.step % checkpoint_every == 0):
                        save()
                    if note.requested and run is not None:
                        raise TrainingInterrupted(run.last, position.epoch + 1, position.step)
                record = _measure(runner, position, held_out, test_data)
                if position.finish_epoch(record, settings.best_by) and run is not None:
                    run.save_best(record)
                save()
                bar.accuracy(record)
                if hooks.on_epoch is not None:
                    hooks.on_epoch(record)
                if note.requested and run is not None and not finished():
                    raise TrainingInterrupted(run.last, position.epoch + 1, 0)
        finally:
            optimizer.learning_rate = runner.base_rate
    return TrainingResult(
        epochs=list(position.records),
        monitor=settings.best_by,
        best_epoch=position.best_epoch or 0,
        stopped_early=position.epoch < settings.epochs,
        steps=runner.steps_done(position) - steps_before,
    )


def _tell(
    bar: TrainingBar,
    hooks: Hooks,
    recorder: Recorder | None,
    runner: EpochRunner,
    position: Position,
    mean_loss: float,
    loss: float,
) -> None:
    """Tell whoever listens of the step that was taken last."""
    bar.step(position.epoch, runner.steps_done(position), mean_loss)
    if hooks.on_batch is not None:
        hooks.on_batch(position.epoch + 1, position.step, loss)
    if recorder is not None:
        recorder.step(loss)


def _measure(runner: EpochRunner, position: Position, held_out: Split | None, test_data: Split | None) -> EpochRecord:
    """The record of the epoch of position, all of whose steps have been taken."""

    def loss_and_accuracy(data: Split | None) -> tuple[float, float] | tuple[None, None]:
        if data is None:
            return None, None
        loss, accuracy, _ = evaluate(runner.stage, runner.network, data)
        if not math.isfinite(loss):
            raise ValueError(diverged(loss, "after", position.epoch + 1, position.step))
        return loss, accuracy

    data = runner.data
    validation_loss, validation_accuracy = loss_and_accuracy(held_out)
    test_loss, test_accuracy = loss_and_accuracy(test_data)
    return EpochRecord(
        epoch=position.epoch + 1,
        learning_rate=runner.learning_rate(runner.steps_done(position) - 1),
        train_loss=position.loss_sum / len(data),
        train_accuracy=loss_and_accuracy(data.first(TRAIN_ACCURACY_SAMPLES))[1],
        validation_loss=validation_loss,
        validation_accuracy=validation_accuracy,
        test_loss=test_loss,
        test_accuracy=test_accuracy,
        seconds=position.seconds,
        samples_per_second=len(data) / max(position.seconds, 1e-9),  # a coarse clock may not have moved
    )


def _check_last_batch(network: NetworkLike, count: int, batch_size: int) -> None:
    """Raise ValueError if an epoch ends in a batch of one sample, and a batch normalisation needs two: before the
    first step, and not after an epoch of them."""
    last = count % batch_size or batch_size
    if last != 1:
        return
    for each in network.architecture.placed():
        if isinstance(each.layer, BatchNorm) and math.prod(each.input_shape[1:]) == 1:
            raise ValueError(
                f"batch_size: {count} samples in batches of {batch_size} end in a batch of 1, and layer {each.number}, "
                "a batch normalisation, needs 2 values for each channel; choose another batch_size"
            )
