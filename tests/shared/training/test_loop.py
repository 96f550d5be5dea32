"""The training loop: the same numbers on all stages, the records, the best epoch, and clear errors."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.data.datasets import Split
from shared.dropout import dropout_mask
from shared.training.checkpoints import load_checkpoint
from shared.training.early_stopping import best_epoch_and_wait
from shared.training.epochs import EpochRunner
from shared.training.loop import train
from shared.training.metrics import EpochRecord, evaluate, read_metrics
from shared.training.runs import Position
from shared.training.schedules import Schedule, learning_rate_at
from shared.training.settings import QUIET, Hooks, TrainingSettings
from tests.shared.training.small_runs import CONSTANT, DATA, FULL, TEST, host, make, run


@pytest.fixture
def numpy_stage() -> contract.Stage:
    return contract.load_stage("stage2_numpy")


def test_training_is_the_steps_written_out(stage: contract.Stage) -> None:
    network, optimizer = make(stage)
    schedule = Schedule("exponential", warmup_epochs=0.5, gamma=0.5)
    settings = TrainingSettings(2, 8, seed=3, schedule=schedule)
    result = train(stage, network, optimizer, DATA, settings, hooks=QUIET)
    assert optimizer.learning_rate == 0.02

    by_hand, optimizer = make(stage)
    losses = []
    for number in range(14):  # 50 samples are 6 batches of 8 and one of 2
        epoch, i = divmod(number, 7)
        chosen = np.random.default_rng([3, epoch]).permutation(50)[8 * i : 8 * i + 8]
        masks = [dropout_mask(len(chosen), n, 0.25, 3, number, k, "float64") for k, n in enumerate((6, 5))]
        own = [stage.arrays.asarray(mask, "float64") for mask in masks]
        x = stage.arrays.asarray(DATA.x[chosen], "float64")
        optimizer.learning_rate = learning_rate_at(0.02, schedule, number, steps_per_epoch=7, epochs=2)
        losses.append(by_hand.train_step(x, DATA.y[chosen], optimizer, dropout_masks=own) * len(chosen))
    for got, expected in zip(host(stage, network), host(stage, by_hand), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert [record.train_loss for record in result.epochs] == [
        pytest.approx(sum(losses[:7]) / 50, rel=1e-12),
        pytest.approx(sum(losses[7:]) / 50, rel=1e-12),
    ]
    assert [record.learning_rate for record in result.epochs] == [0.02 * 0.5 ** (t / 7) for t in (2, 9)]
    assert (result.steps, result.stopped_early) == (14, False)


def test_all_stages_train_to_the_same_numbers(stage: contract.Stage) -> None:
    first = contract.load_stage("stage1_pure_python")
    reference, optimizer = make(first)
    expected = run(first, (reference, optimizer))
    network, optimizer = make(stage)
    got = run(stage, (network, optimizer))
    for a, b in zip(host(stage, network), host(first, reference), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert [r.test_accuracy for r in got.epochs] == [r.test_accuracy for r in expected.epochs]


def test_records_hold_what_was_measured_and_the_rate_of_the_last_step(stage: contract.Stage, tmp_path: Path) -> None:
    network, optimizer = make(stage)
    seen: list[EpochRecord] = []
    steps: list[tuple[int, int]] = []
    began: list[int] = []
    hooks = Hooks(
        lambda: began.append(len(steps)),
        seen.append,
        lambda epoch, step, loss: steps.append((epoch, step)),
        progress_bar=False,
    )
    result = run(stage, (network, optimizer), FULL, tmp_path / "run", hooks)
    assert began == [0]
    assert seen == result.epochs == read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert steps == [(epoch, step) for epoch in range(1, 5) for step in range(1, 6)]
    assert [record.epoch for record in seen] == [1, 2, 3, 4]
    assert seen[0].learning_rate == 0.02  # the warm-up's last step
    assert 0.0 < seen[-1].learning_rate < 0.001
    assert optimizer.learning_rate == 0.02
    loss, accuracy, _ = evaluate(stage, network, TEST)
    assert (seen[-1].test_loss, seen[-1].test_accuracy) == (loss, accuracy)
    assert seen[-1].validation_accuracy is not None
    assert 0.0 < seen[-1].seconds < 600.0
    assert seen[-1].samples_per_second == pytest.approx(40 / seen[-1].seconds)


def test_best_checkpoint_is_the_epoch_with_the_best_monitor(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    network, optimizer = make(numpy_stage)
    optimizer.learning_rate = 0.3  # too large, so that the last epoch is not the best
    result = run(numpy_stage, (network, optimizer), replace(CONSTANT, epochs=12), tmp_path / "r")
    losses = [record.validation_loss for record in result.epochs]
    assert result.monitor == "validation_loss"
    assert result.best_epoch == 1 + int(np.argmin(np.array(losses, float)))
    assert result.best_epoch < 12
    best = load_checkpoint(tmp_path / "r" / "best.safetensors")
    assert best.about_run["record"]["epoch"] == result.best_epoch
    last = load_checkpoint(tmp_path / "r" / "last.safetensors")
    assert not np.array_equal(best.parameters[0], last.parameters[0])


def test_without_validation_the_training_loss_chooses_and_never_the_test_data(numpy_stage: contract.Stage) -> None:
    network, optimizer = make(numpy_stage)
    result = run(numpy_stage, (network, optimizer), TrainingSettings(3, 8))
    assert result.monitor == "train_loss"
    assert result.best_epoch == 1 + int(np.argmin([record.train_loss for record in result.epochs]))


@pytest.mark.parametrize("monitor", ["validation_loss", "validation_accuracy"])
def test_early_stopping_waits_for_patience_epochs_after_the_best(numpy_stage: contract.Stage, monitor: str) -> None:
    network, optimizer = make(numpy_stage)
    optimizer.learning_rate = 0.3
    settings = replace(CONSTANT, epochs=60, patience=3, monitor=monitor)
    result = run(numpy_stage, (network, optimizer), settings)
    assert result.stopped_early
    assert len(result.epochs) == result.best_epoch + 3 < 60
    values = [getattr(record, monitor) for record in result.epochs]
    assert values.index(max(values) if monitor.endswith("accuracy") else min(values)) == result.best_epoch - 1


def test_steps_that_are_taken_together_end_with_the_epoch_or_at_a_checkpoint(numpy_stage: contract.Stage) -> None:
    """As on a GPU, which takes many: from any step, where a run was interrupted there. An epoch has 7."""
    runner = EpochRunner(numpy_stage, *make(numpy_stage), DATA, TrainingSettings(2, 8), checkpoint_every=4)
    resident: Any = SimpleNamespace(interval=100, take=lambda first, rates, before, meanwhile: rates)
    taken = [len(runner._several_steps(resident, Position(step=step))) for step in (0, 3, 4, 6)]
    assert taken == [4, 1, 3, 1]


@pytest.mark.parametrize(
    ("values", "higher_is_better", "best"),
    [([3.0, 2.0, 2.5, 2.0], False, 2), ([0.1, 0.9, 0.9, 0.9], True, 2), ([1.0], False, 1), ([1.0, 1.0], True, 1)],
)
def test_of_equal_epochs_the_first_is_the_best(values: list[float], higher_is_better: bool, best: int) -> None:
    assert best_epoch_and_wait(values, higher_is_better) == (best, len(values) - best)


def test_a_progress_bar_goes_to_stderr_when_asked_for(
    numpy_stage: contract.Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    run(numpy_stage, make(numpy_stage), hooks=Hooks(progress_bar=True))
    shown = capsys.readouterr()
    assert "loss" in shown.err
    assert "epoch 4/4" in shown.err
    assert shown.out == ""


@pytest.mark.usefixtures("one_step_at_a_time")
def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_checkpoint(
    stage: contract.Stage, tmp_path: Path
) -> None:
    network, optimizer = make(stage)
    run(stage, (network, optimizer), TrainingSettings(1, 8), tmp_path)
    good = (tmp_path / "last.safetensors").read_bytes()

    def poison(epoch: int, step: int, loss: float) -> None:
        if (epoch, step) == (2, 3):
            network.layers[0].bias[0] = float("nan")

    network, optimizer = make(stage)
    with pytest.raises(ValueError, match="the loss is nan at epoch 2, step 4: the training diverged; lower the learn"):
        run(
            *(stage, (network, optimizer), TrainingSettings(2, 8), tmp_path),
            hooks=Hooks(on_batch=poison, progress_bar=False),
            resume=True,
        )
    assert (tmp_path / "last.safetensors").read_bytes() == good


@pytest.mark.usefixtures("one_step_at_a_time")
def test_an_epoch_whose_measurements_are_not_finite_ends_the_training(numpy_stage: contract.Stage) -> None:
    network, optimizer = make(numpy_stage)

    def poison(epoch: int, step: int, loss: float) -> None:
        if step == 5:
            network.layers[0].bias[0] = float("nan")

    with pytest.raises(ValueError, match="the loss is nan after epoch 1"):
        run(numpy_stage, (network, optimizer), hooks=Hooks(on_batch=poison, progress_bar=False))


@pytest.mark.usefixtures("one_step_at_a_time")
def test_parameters_that_are_not_finite_are_never_saved(stage: contract.Stage, tmp_path: Path) -> None:
    network, optimizer = make(stage)

    def poison(epoch: int, step: int, loss: float) -> None:
        if (epoch, step) == (1, 2):
            network.layers[3].bias[0] = float("inf")

    with pytest.raises(ValueError, match="parameter 3 is no longer finite after epoch 1, step 2; lower the learning"):
        run(
            *(stage, (network, optimizer), FULL, tmp_path),
            hooks=Hooks(on_batch=poison, progress_bar=False),
            checkpoint_every=1,
        )
    position = load_checkpoint(tmp_path / "last.safetensors").about_run["position"]
    assert (position["epoch"], position["step"]) == (0, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs: expected at least 1, got 0"),
        ({"seed": -1}, "seed: expected at least 0, got -1"),
        ({"validation": 1.5}, "validation: expected a fraction of at least 0 and below 1, got 1.5"),
        ({"patience": 2, "validation": 0.0}, "need a validation split"),
        ({"monitor": "test_accuracy"}, "unknown monitor 'test_accuracy'; choose one of train_loss"),
        ({"schedule": Schedule(warmup_epochs=5)}, r"warmup_epochs: expected 0 to 4 \(the epochs\), got 5"),
    ],
)
def test_settings_out_of_range_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(FULL, **change)


def test_data_that_does_not_fit_the_network_is_named(numpy_stage: contract.Stage) -> None:
    once = TrainingSettings(1)
    with pytest.raises(ValueError, match="the data has 2 features, but the network takes 4"):
        train(numpy_stage, *make(numpy_stage), Split(DATA.x[:, :2], DATA.y), once)
    with pytest.raises(ValueError, match=r"labels go from 0 to 9, but 3 output\(s\) can tell 0 to 2 apart"):
        train(numpy_stage, *make(numpy_stage), Split(DATA.x[:10], np.arange(10)), once)
    with pytest.raises(ValueError, match="expected as many samples as labels, got 50 and 3"):
        train(numpy_stage, *make(numpy_stage), Split(DATA.x, DATA.y[:3]), once)
    with pytest.raises(ValueError, match="training data: expected at least one sample, got none"):
        train(numpy_stage, *make(numpy_stage), DATA.first(0), once)
    assert train(numpy_stage, *make(numpy_stage), DATA.first(1), once, hooks=QUIET).steps == 1
    with pytest.raises(ValueError, match=r"validation: 0\.001 of 50 samples leaves one part without any"):
        train(numpy_stage, *make(numpy_stage), DATA, replace(FULL, validation=0.001))
