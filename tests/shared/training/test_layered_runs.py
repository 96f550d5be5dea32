"""Training a network of any architecture: equal on every stage, saved whole, and resumed to the same bits."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.architectures import Architecture, mlp
from shared.data.augmentation import Augmentation
from shared.data.datasets import Split
from shared.layers import Activate, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual
from shared.training.checkpoints import CheckpointError, build_network, load_checkpoint, save_checkpoint
from shared.training.loop import TrainingResult, train
from shared.training.metrics import evaluate
from shared.training.schedules import Schedule
from shared.training.settings import QUIET, Hooks, Saving, TrainingSettings
from tests.shared.stage_params import STAGE_4_WIDE
from tests.shared.training.small_runs import Died, assert_same_run, dying_after, host, timeless
from tests.stages import USABLE_STAGES
from tests.wide import WIDE

SHAPE = (1, 6, 6)
ARCHITECTURE = Architecture(
    SHAPE,
    (
        Conv(3, 3, padding=1),
        BatchNorm(),
        Residual((Conv(3, 1), Dropout(0.25))),
        Activate("relu"),
        MaxPool(2),
        Flatten(),
        Dropout(0.5),
        Dense(3),
    ),
)
RNG = np.random.default_rng(11)
Y = RNG.integers(0, 3, 30)
IMAGES = 0.5 * RNG.random((30, 6, 6))
IMAGES[np.arange(30), 2 * Y] += 0.5
DATA = Split(IMAGES.reshape(30, 36).astype(np.float32), Y)
TEST = Split(DATA.x[:10], DATA.y[:10])
SETTINGS = TrainingSettings(
    epochs=3,
    batch_size=8,
    seed=3,
    validation=0.2,
    schedule=Schedule("cosine", warmup_epochs=1),
    augmentation=Augmentation(shift=1, rotation=20.0, background=-0.25),
)


def make(stage: contract.Stage, seed: int = 1, architecture: Architecture = ARCHITECTURE) -> tuple[Any, Any]:
    return stage.network.Network(architecture, seed=seed, dtype="float64"), stage.optimizers.Adam(0.02)


def run(
    stage: contract.Stage,
    made: tuple[Any, Any],
    folder: Path | None = None,
    settings: TrainingSettings = SETTINGS,
    hooks: Hooks = QUIET,
    **saving: Any,
) -> TrainingResult:
    saved = None if folder is None else Saving(folder, **saving)
    return train(stage, *made, DATA, settings, test_data=TEST, saving=saved, hooks=hooks)


@pytest.fixture(params=STAGE_4_WIDE)
def stage(request: pytest.FixtureRequest) -> contract.Stage:
    """test_runs.py resumes stage 4 with dense layers."""
    return contract.load_stage(request.param)


def statistics(stage: contract.Stage, network: Any) -> list[np.ndarray]:
    return [np.array(stage.arrays.to_host(array)) for array in network.running_statistics]


@pytest.mark.parametrize("stop_after", [1, 4])
def test_a_run_that_died_resumes_to_the_same_bits(stage: contract.Stage, stop_after: int, tmp_path: Path) -> None:
    whole = make(stage)
    run(stage, whole, tmp_path / "whole")

    with pytest.raises(Died):
        run(stage, make(stage), tmp_path / "r", hooks=dying_after(stop_after), checkpoint_every=2)
    other = make(stage, seed=99)  # all of its numbers must come from the checkpoint
    for mean in other[0].running_statistics:
        mean[:] = stage.arrays.asarray([7.0] * len(mean), "float64")
    run(stage, other, tmp_path / "r", checkpoint_every=2, resume=True)
    assert_same_run(tmp_path / "r", tmp_path / "whole")
    for name in ("last.safetensors", "best.safetensors"):
        one, two = (load_checkpoint(tmp_path / each / name) for each in ("r", "whole"))
        assert len(one.running_statistics) == 2
        for a, b in zip(one.running_statistics, two.running_statistics, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(statistics(stage, other[0]), statistics(stage, whole[0]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_all_stages_train_on_the_same_images_and_masks_to_the_same_network() -> None:
    """Augmentation, dropout by each layer's rate, and running statistics: any difference would grow over the steps."""
    trained = {}
    names = [name for name in USABLE_STAGES if WIDE or name != "stage4_numba_cuda"]
    for name in names:
        stage = contract.load_stage(name)
        network, _ = make(stage)
        # Batch normalisation takes the mean away, so the bias before it has a gradient of rounding alone. Adam would
        # divide that by its own size.
        result = run(stage, (network, stage.optimizers.SGD(0.1, momentum=0.9)))
        trained[name] = host(stage, network), statistics(stage, network), result.epochs
    expected = trained.pop(names[0])
    for parameters, running, records in trained.values():
        for got, wanted in zip([*parameters, *running], [*expected[0], *expected[1]], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)
        for record, other in zip(timeless(records), timeless(expected[2]), strict=True):
            assert record.test_accuracy == other.test_accuracy
            assert record.train_loss == pytest.approx(other.train_loss, rel=1e-10)


def test_dropout_and_augmentation_change_the_training() -> None:
    """Or the tests above would compare trainings without them."""
    stage = contract.load_stage("numpy")
    layers = ARCHITECTURE.layers
    without = Architecture(SHAPE, (*layers[:2], Residual((Conv(3, 1),)), *layers[3:6], layers[7]))
    runs = [(ARCHITECTURE, SETTINGS), (without, SETTINGS), (ARCHITECTURE, replace(SETTINGS, augmentation=None))]
    losses = {run(stage, make(stage, 1, each), settings=settings).epochs[0].train_loss for each, settings in runs}
    assert len(losses) == 3


@pytest.mark.parametrize("reader", STAGE_4_WIDE)
def test_every_stage_reads_what_every_stage_wrote(stage: contract.Stage, reader: str, tmp_path: Path) -> None:
    network, optimizer = make(stage)
    run(stage, (network, optimizer), settings=replace(SETTINGS, epochs=1))
    save_checkpoint(tmp_path / "c", stage, network, optimizer, {"why": "a test"})
    checkpoint = load_checkpoint(tmp_path / "c")
    assert checkpoint.architecture == ARCHITECTURE
    other = contract.load_stage(reader)
    again = build_network(other, checkpoint)
    for got, expected in zip(statistics(other, again), statistics(stage, network), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert evaluate(other, again, TEST)[0] == pytest.approx(evaluate(stage, network, TEST)[0], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda layers: (Conv(3, 3, padding=1), *layers[1:3], Activate("tanh"), *layers[4:]),
            "layer 4 is Activate('rel",
        ),
        (lambda layers: (*layers[:6], Dense(3)), "layer 7 is Dropout(0.5), this run's is Dense(3)"),
        (lambda layers: (Flatten(), Dense(3)), "architecture is one of other layers, this run's is a stack of dense"),
    ],
)
def test_resuming_another_architecture_names_the_layer(change: Any, message: str, tmp_path: Path) -> None:
    stage = contract.load_stage("numpy")
    run(stage, make(stage), tmp_path / "r", replace(SETTINGS, epochs=1))
    other = Architecture(SHAPE, change(ARCHITECTURE.layers))
    with pytest.raises(CheckpointError, match=re.escape(message)):
        run(stage, make(stage, 1, other), tmp_path / "r", replace(SETTINGS, epochs=1), resume=True)


def test_a_running_statistic_that_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    stage = contract.load_stage("numpy")
    network, optimizer = make(stage)
    network.running_statistics[1][2] = np.inf
    with pytest.raises(ValueError, match="running statistic 1 is no longer finite"):
        run(stage, (network, optimizer), tmp_path / "r")
    assert not (tmp_path / "r" / "last.safetensors").exists()


def test_a_stack_of_dense_layers_is_augmented_alike_on_every_floor() -> None:
    """Stage 4's too, which then takes the steps one by one: data that stays on its device cannot change."""
    trained = []
    for name in USABLE_STAGES:
        stage = contract.load_stage(name)
        network = stage.network.Network(mlp([36, 5, 3], dropout=0.25), seed=1, dtype="float64")
        optimizer = stage.optimizers.SGD(0.1, momentum=0.9)
        run(stage, (network, optimizer), settings=replace(SETTINGS, epochs=1))
        trained.append(host(stage, network))
    for parameters in trained[1:]:
        for got, expected in zip(parameters, trained[0], strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def test_samples_that_are_no_images_cannot_be_augmented() -> None:
    stage = contract.load_stage("numpy")
    network = stage.network.Network([35, 3])
    data = Split(DATA.x[:, :35], DATA.y)
    with pytest.raises(ValueError, match="augmentation: the samples have 35 features, which are no square image"):
        train(stage, network, stage.optimizers.SGD(0.1), data, SETTINGS, hooks=QUIET)
