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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shared.communicator import ALONE, Communicator
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
    communication: of several ranks, the share of the steps' time in which this one sent or waited for others
    """

    epochs: list[EpochRecord]
    monitor: str
    best_epoch: int
    stopped_early: bool
    steps: int
    communication: float | None = None


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
    ranks: Communicator = ALONE,
) -> TrainingResult:
    """Train the network in place.

    optimizer: its learning_rate is the highest one of the schedule, and is put back at the end
    test_data: measured after each epoch, never used to choose anything
    saving: where the run is saved; None writes nothing
    hooks: functions to call during training, and the progress bar
    ranks: the processes that train this network together. Each of them calls this function with the same arguments;
        only rank 0 saves the run, and its state is that of all when the training begins or goes on

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
    _check_last_batch(network, len(fitted), settings, ranks)
    checkpoint_every = saving.checkpoint_every if saving else None
    runner = EpochRunner(stage, network, optimizer, fitted, settings, checkpoint_every, ranks)
    if saving is None or ranks.rank > 0:
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
    settings, optimizer, ranks = runner.settings, runner.optimizer, runner.ranks
    position = _as_on_first(runner, position)
    is_saved = ranks.from_first(lambda: run is not None)
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
        noted_interrupts() if is_saved else contextlib.nullcontext(Note()) as note,
        recording(run, runner, position) as recorder,
        # The loss shows an overflow, and the loop then stops with an error that says more than NumPy's warning.
        np.errstate(all="ignore"),
    ):
        if runner.shared is not None:
            runner.shared.wants_to_stop = lambda: note.requested

        def stops() -> bool:
            """Whether to stop after this step: all ranks do, or none."""
            return note.requested if ranks.size == 1 or runner.shared is None else runner.shared.stopping

        def interrupted(epoch: int, step: int) -> TrainingInterrupted:
            return TrainingInterrupted(ranks.from_first(lambda: run and run.last), epoch, step)

        try:
            while not finished():
                for mean_loss, loss in runner.rest_of_epoch(position):
                    _tell(bar, hooks, recorder, runner, position, mean_loss, loss)
                    if not runner.settled:
                        continue
                    if stops() or (checkpoint_every and position.step % checkpoint_every == 0):
                        save()
                    if stops() and is_saved:
                        raise interrupted(position.epoch + 1, position.step)
                record = _measure(runner, position, held_out, test_data)
                if position.finish_epoch(record, settings.best_by) and run is not None:
                    run.save_best(record)
                save()
                bar.accuracy(record)
                if hooks.on_epoch is not None:
                    hooks.on_epoch(record)
                if stops() and is_saved and not finished():
                    raise interrupted(position.epoch + 1, 0)
        finally:
            optimizer.learning_rate = runner.base_rate
    return TrainingResult(
        epochs=list(position.records),
        monitor=settings.best_by,
        best_epoch=position.best_epoch or 0,
        stopped_early=position.epoch < settings.epochs,
        steps=runner.steps_done(position) - steps_before,
        communication=runner.communication / runner.seconds if ranks.size > 1 and runner.seconds else None,
    )


def _as_on_first(runner: EpochRunner, position: Position) -> Position:
    """The position of rank 0, and the state of its network and optimizer, on every rank."""
    ranks, arrays, dtype = runner.ranks, runner.stage.arrays, runner.network.dtype
    if ranks.size == 1:
        return position
    own = [*runner.network.parameters, *runner.network.running_statistics]
    state = runner.optimizer.state()
    position, arrays_of_first, state = ranks.from_first(
        lambda: (position, [np.asarray(arrays.to_host(array)) for array in own], _on_host(arrays, state))
    )
    if ranks.rank > 0:
        for array, values in zip(own, arrays_of_first, strict=True):
            array[:] = arrays.asarray(values, dtype)
        buffers = {name: [arrays.asarray(v, dtype) for v in each] for name, each in state["buffers"].items()}
        runner.optimizer.load_state({"steps": state["steps"], "buffers": buffers})
    return position


def _on_host(arrays: Any, state: dict[str, Any]) -> dict[str, Any]:
    buffers = {name: [np.asarray(arrays.to_host(each)) for each in own] for name, own in state["buffers"].items()}
    return {"steps": state["steps"], "buffers": buffers}


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

    ranks = runner.ranks
    if ranks.size > 1:
        # They differ by rounding, or altogether with local_statistics; no step reads them, and rank 0 saves its own.
        for array in runner.network.running_statistics:
            values = ranks.from_first(partial(runner.stage.arrays.to_host, array))
            array[:] = runner.stage.arrays.asarray(values, runner.network.dtype)

    def loss_and_accuracy(data: Split | None) -> tuple[float, float] | tuple[None, None]:
        if data is None:
            return None, None
        loss, accuracy = _evaluated(runner, data)
        if not math.isfinite(loss):
            raise ValueError(diverged(loss, "after", position.epoch + 1, position.step))
        return loss, accuracy

    data = runner.data
    validation_loss, validation_accuracy = loss_and_accuracy(held_out)
    test_loss, test_accuracy = loss_and_accuracy(test_data)
    record = EpochRecord(
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
    return ranks.from_first(lambda: record)  # every rank has its own clock


def _evaluated(runner: EpochRunner, data: Split) -> tuple[float, float]:
    """(mean loss, accuracy) of the network on data, of which each rank takes its share."""
    stage, network, ranks = runner.stage, runner.network, runner.ranks
    if ranks.size == 1:
        return evaluate(stage, network, data)[:2]
    own = ranks.rows(range(len(data)))
    sums = np.zeros(2)
    if own:
        share = Split(data.x[own.start : own.stop], data.y[own.start : own.stop], data.shape)
        loss, _, predictions = evaluate(stage, network, share)
        sums[:] = loss * len(own), np.count_nonzero(predictions == share.y)
    ranks.add(sums)
    return float(sums[0] / len(data)), float(sums[1] / len(data))


def _check_last_batch(network: NetworkLike, count: int, settings: TrainingSettings, ranks: Communicator) -> None:
    """Raise ValueError if a batch, or a part of it that is normalised by itself, may be a single sample where a batch
    normalisation needs two: before the first step, and not after an epoch of them."""
    last = count % settings.batch_size or settings.batch_size
    pieces = settings.accumulate * (ranks.size if settings.local_statistics else 1)
    if last // pieces > 1:
        return
    for each in network.architecture.placed():
        if isinstance(each.layer, BatchNorm) and math.prod(each.input_shape[1:]) == 1:
            cut = f" that is cut into {pieces} parts" if pieces > 1 else ""
            raise ValueError(
                f"batch_size: {count} samples in batches of {settings.batch_size} end in a batch of {last}{cut}, and "
                f"layer {each.number}, a batch normalisation, needs 2 values for each channel; choose another "
                "batch_size"
            )
