"""Stopping and going on: a run that died anywhere resumes to the same bits, or says why it cannot."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.data.datasets import Split
from shared.training.checkpoints import CheckpointError, load_checkpoint
from shared.training.interrupts import noted_interrupts
from shared.training.loop import TrainingInterrupted, train
from shared.training.metrics import EpochRecord, read_metrics
from shared.training.runs import Position
from shared.training.schedules import Schedule
from shared.training.settings import QUIET, Hooks, Saving
from tests import interrupts
from tests.shared.training.small_runs import (
    CONSTANT,
    DATA,
    FULL,
    TEST,
    Died,
    assert_same_run,
    dying_after,
    host,
    make,
    run,
)
from tests.wide import widely


@pytest.mark.usefixtures("one_step_at_a_time")
@pytest.mark.parametrize("stop_after", widely([1, 5, 13, 6, 20], first=3))
def test_a_run_that_died_anywhere_resumes_to_the_same_bits(
    stage: contract.Stage, stop_after: int, tmp_path: Path
) -> None:
    run(stage, make(stage), FULL, tmp_path / "whole", checkpoint_every=2)

    with pytest.raises(Died):
        run(stage, make(stage), FULL, tmp_path / "r", dying_after(stop_after), checkpoint_every=2)
    other_weights = make(stage, seed=99)  # all of them must come from the checkpoint
    run(stage, other_weights, FULL, tmp_path / "r", checkpoint_every=2, resume=True)
    assert_same_run(tmp_path / "r", tmp_path / "whole")


@interrupts.heard()
@pytest.mark.usefixtures("one_step_at_a_time")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", widely([(2, 3), (3, 5), pytest.param((1, 1))], first=2))
def test_a_signal_lets_the_step_finish_saves_it_and_says_where(
    stage: contract.Stage, number: signal.Signals, at: tuple[int, int], tmp_path: Path
) -> None:
    run(stage, make(stage), FULL, tmp_path / "whole")

    def interrupt(epoch: int, step: int, loss: float) -> None:
        if (epoch, step) == at:
            os.kill(os.getpid(), number)

    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(TrainingInterrupted, match=r"saved .*last\.safetensors") as caught:
        run(stage, make(stage), FULL, tmp_path / "r", Hooks(on_batch=interrupt, progress_bar=False))
    assert (caught.value.epoch, caught.value.step) == at
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    position = load_checkpoint(tmp_path / "r" / "last.safetensors").about_run["position"]
    assert (position["epoch"] + 1, position["step"]) == at

    result = run(stage, make(stage, seed=99), FULL, tmp_path / "r", resume=True)
    assert result.steps == 20 - 5 * (at[0] - 1) - at[1]
    assert_same_run(tmp_path / "r", tmp_path / "whole")


@interrupts.heard()
def test_a_signal_between_two_epochs_is_heard_and_after_the_last_one_the_run_is_finished(
    numpy_stage: contract.Stage, tmp_path: Path
) -> None:
    def interrupt(record: EpochRecord) -> None:
        if record.epoch in (2, 4):
            os.kill(os.getpid(), signal.SIGINT)

    hooks = Hooks(on_epoch=interrupt, progress_bar=False)
    with pytest.raises(TrainingInterrupted) as caught:
        run(numpy_stage, make(numpy_stage), FULL, tmp_path, hooks)
    assert (caught.value.epoch, caught.value.step) == (3, 0)
    assert len(run(numpy_stage, make(numpy_stage), FULL, tmp_path, hooks, resume=True).epochs) == 4


@pytest.mark.usefixtures("one_step_at_a_time")
def test_a_run_is_saved_at_every_so_many_steps_and_at_the_end_of_each_epoch(
    numpy_stage: contract.Stage, tmp_path: Path
) -> None:
    saved = []

    def look(epoch: int, step: int, loss: float) -> None:
        position = load_checkpoint(tmp_path / "last.safetensors").about_run["position"]
        saved.append((position["epoch"], position["step"]))

    run(numpy_stage, make(numpy_stage), FULL, tmp_path, Hooks(on_batch=look, progress_bar=False), checkpoint_every=2)
    assert saved[:7] == [(0, 0), (0, 0), (0, 2), (0, 2), (0, 4), (1, 0), (1, 0)]


def test_a_finished_run_takes_no_step_and_more_epochs_go_on(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    settings = replace(FULL, schedule=Schedule("exponential"))
    run(numpy_stage, make(numpy_stage), settings, tmp_path / "r")
    result = run(numpy_stage, make(numpy_stage), settings, tmp_path / "r", resume=True)
    assert (result.steps, len(result.epochs)) == (0, 4)
    more = replace(settings, epochs=6)
    run(numpy_stage, make(numpy_stage), more, tmp_path / "r", resume=True)
    run(numpy_stage, make(numpy_stage), more, tmp_path / "whole")
    assert_same_run(tmp_path / "r", tmp_path / "whole")


def test_an_early_stopped_run_stays_stopped_until_it_gets_more_patience(
    numpy_stage: contract.Stage, tmp_path: Path
) -> None:
    def again(patience: int, **saving: Any) -> Any:
        network, optimizer = make(numpy_stage)
        optimizer.learning_rate = 0.3
        settings = replace(CONSTANT, epochs=60, patience=patience)
        return run(numpy_stage, (network, optimizer), settings, tmp_path / "r", **saving)

    first = again(patience=2)
    stopped = again(patience=2, resume=True)
    assert (stopped.steps, stopped.stopped_early) == (0, True)
    assert len(again(patience=4, resume=True).epochs) >= len(first.epochs) + 2


def test_a_run_of_one_stage_goes_on_in_another(tmp_path: Path) -> None:
    one, two = contract.load_stage("stage1_pure_python"), contract.load_stage("stage2_numpy")
    whole, optimizer = make(two)
    run(two, (whole, optimizer), CONSTANT)
    run(one, make(one), replace(CONSTANT, epochs=2), tmp_path / "r")
    network, optimizer = make(two)
    run(two, (network, optimizer), CONSTANT, tmp_path / "r", resume=True)
    for got, expected in zip(host(two, network), host(two, whole), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def _hinge(stage: contract.Stage) -> Any:
    return make(stage, loss="hinge")[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 16}, "its batch size is 8, this run's is 16"),
        ({"network": lambda stage: make(stage, dropout=0.5)[0]}, "its dropout is 0.25, this run's is 0.5"),
        ({"schedule": Schedule("step", warmup_epochs=1)}, "its schedule is cosine, this run's is step"),
        ({"epochs": 9}, "its number of epochs, which the cosine schedule depends on, is 4, this run's is 9"),
        ({"data": Split(DATA.x[::-1], DATA.y)}, "its training data is crc32"),
        ({"optimizer": lambda stage: stage.optimizers.SGD(0.02)}, "its optimizer is Adam, this run's is SGD"),
        ({"optimizer": lambda stage: stage.optimizers.Adam(0.1)}, "its learning rate is 0.02, this run's is 0.1"),
        ({"network": lambda stage: stage.network.Network([4, 3])}, r"its layer sizes is \[4, 6, 5, 3\].* is \[4, 3\]"),
        ({"network": _hinge}, "its loss is softmax_cross_entropy, this run's is hinge"),
    ],
)
def test_resuming_with_anything_else_names_both_values(
    numpy_stage: contract.Stage, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    run(numpy_stage, make(numpy_stage), FULL, tmp_path / "r")
    before = (tmp_path / "r" / "last.safetensors").read_bytes()
    network, optimizer = make(numpy_stage)
    change = dict(change)
    data = change.pop("data", DATA)
    if "network" in change:
        network = change.pop("network")(numpy_stage)
    if "optimizer" in change:
        optimizer = change.pop("optimizer")(numpy_stage)
    with pytest.raises(CheckpointError, match=message):
        train(
            *(numpy_stage, network, optimizer, data, replace(FULL, **change)),
            test_data=TEST,
            saving=Saving(tmp_path / "r", resume=True),
            hooks=QUIET,
        )
    assert (tmp_path / "r" / "last.safetensors").read_bytes() == before


def test_resuming_from_nothing_is_an_error(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        run(numpy_stage, make(numpy_stage), FULL, tmp_path, resume=True)
    run(numpy_stage, make(numpy_stage), FULL, tmp_path)
    (tmp_path / "best.safetensors").replace(tmp_path / "last.safetensors")
    with pytest.raises(CheckpointError, match="holds a network but no training run to resume"):
        run(numpy_stage, make(numpy_stage), FULL, tmp_path, resume=True)


def test_a_run_is_only_replaced_when_asked(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    run(numpy_stage, make(numpy_stage), FULL, tmp_path)
    with pytest.raises(ValueError, match="holds a run already; go on with --resume, or replace it with --overwrite"):
        run(numpy_stage, make(numpy_stage), FULL, tmp_path)
    result = run(numpy_stage, make(numpy_stage), replace(FULL, epochs=2), tmp_path, overwrite=True)
    assert read_metrics(tmp_path / "metrics.jsonl") == result.epochs
    (tmp_path / "last.safetensors").unlink()
    with pytest.raises(ValueError, match="holds a run already"):
        run(numpy_stage, make(numpy_stage), FULL, tmp_path)

    def die(*arguments: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        run(numpy_stage, make(numpy_stage), FULL, tmp_path, Hooks(on_batch=die, progress_bar=False), overwrite=True)
    assert not (tmp_path / "best.safetensors").exists()
    (tmp_path / "metrics.jsonl").unlink()
    result = run(numpy_stage, make(numpy_stage), FULL, tmp_path, resume=True)
    assert read_metrics(tmp_path / "metrics.jsonl") == result.epochs


def test_of_equally_good_epochs_the_first_is_the_best() -> None:
    for monitor in ("train_loss", "train_accuracy"):
        position = Position()
        records = [EpochRecord(i, 0.1, 0.5, 0.5, None, None, None, None, 1.0, 1.0) for i in (1, 2)]
        assert [position.finish_epoch(record, monitor) for record in records] == [True, False]
        assert (position.best_epoch, position.epochs_since_best) == (1, 1)


def test_leftovers_of_a_killed_writer_are_removed_on_resume(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    run(numpy_stage, make(numpy_stage), FULL, tmp_path)
    (tmp_path / ".groundup-last.safetensors-123.tmp").write_bytes(b"half")
    run(numpy_stage, make(numpy_stage), FULL, tmp_path, resume=True)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"last.safetensors", "best.safetensors", "metrics.jsonl", "steps.jsonl", "run.json"}


def test_a_signal_that_was_ignored_before_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with noted_interrupts() as note:
            os.kill(os.getpid(), signal.SIGTERM)
        assert not note.requested
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


@interrupts.heard()
def test_a_second_signal_acts_at_once() -> None:
    with noted_interrupts() as note:
        os.kill(os.getpid(), signal.SIGINT)
        assert note.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
