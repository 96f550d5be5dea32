"""A run, by the plan of operations, whose data stays on the device ends where one ends that is fed batch by batch."""

from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture
from shared.contract import Stage, load_stage
from shared.data.augmentation import Augmentation
from shared.data.batches import as_targets, batch_order
from shared.data.datasets import Split
from shared.data.normalisation import Normalisation
from shared.dropout import step_masks
from shared.layers import Activate, BatchNorm, Conv, Dense, Dropout, Flatten, Layer, MaxPool
from shared.training.loop import train
from shared.training.schedules import Schedule
from shared.training.settings import QUIET, TrainingSettings
from stage4_numba_cuda.plans import resident_data
from stage4_numba_cuda.plans.resident import ResidentRun
from tests.stage4_numba_cuda.test_cuda_graphs import Recorder, recorder
from tests.stage4_numba_cuda.test_cuda_graphs import pytestmark as needs_emulator
from tests.wide import wide

__all__ = ["recorder"]

STAGE: Stage = load_stage("stage4_numba_cuda")
COUNT, BATCH, SHAPE = 29, 8, (1, 6, 5)
RATES = [0.1 / (1 + i) for i in range(4)]  # 29 samples in batches of 8: four steps, the last of five rows


def form(dropping: bool, classes: int = 3) -> Architecture:
    """A small network with every kind of memory: statistics, indices of maxima, and masks if it drops."""
    first: tuple[Layer, ...] = (Conv(2, 3), BatchNorm(), Activate("relu"), MaxPool(2, 1))
    drops: tuple[Layer, ...] = (Dropout(0.25), Dense(4), Activate("tanh"), Dropout(0.5)) if dropping else ()
    return Architecture(SHAPE, (*first, Flatten(), *drops, Dense(classes)))


def images(dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """Pixels from 0 to 255, brought to mean 0 and deviation 1 as `groundup train --normalise` does it; labels."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (COUNT, 30)).astype(np.float32) / np.float32(255)
    return Normalisation.of(x).normalised(x).astype(dtype), rng.integers(0, 3, COUNT)


def make(dropping: bool = True, loss: str = "softmax_cross_entropy", dtype: str = "float64", classes: int = 3) -> Any:
    return STAGE.network.Network(form(dropping, classes), loss=loss, seed=4, dtype=dtype)


def fed_by_hand(network: Any, optimizer: Any, x: np.ndarray, labels: np.ndarray, first_step: int) -> list[float]:
    """An epoch through train_step: the batches, masks and targets made on the host."""
    order, losses = batch_order(COUNT, seed=3, epoch=0), []
    for step, rate in enumerate(RATES):
        indices = order[step * BATCH : (step + 1) * BATCH]
        optimizer.learning_rate = rate
        masks = step_masks(len(indices), network.architecture.dropouts(), 5, first_step + step, network.dtype)
        y = as_targets(labels[indices], network.loss_name, network.layer_sizes[-1], network.dtype)
        losses.append(network.train_step(x[indices], y, optimizer, masks))
    return losses


def resident_epoch(run: Any, first_step: int, at_once: int) -> list[float]:
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    losses = []
    for first in range(0, len(RATES), at_once):
        losses += run.take(first, RATES[first : first + at_once], first_step + first)
    return losses


def everything(network: Any) -> list[np.ndarray]:
    return [np.array(each.copy_to_host()) for each in (*network.parameters, *network.running_statistics)]


def assert_same_bits(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("at_once", [1, 3, 4])
@pytest.mark.parametrize("dropping", [False, True])
def test_a_resident_epoch_is_the_epoch_fed_by_hand_bit_for_bit(dropping: bool, at_once: int) -> None:
    x, labels = images()
    ours, theirs = make(dropping), make(dropping)
    optimizer, other = (STAGE.optimizers.Adam(0.1, epsilon=1e-3) for _ in range(2))
    run = ours.resident(x, labels, optimizer, BATCH, 5)
    assert run.is_bytes
    assert resident_epoch(run, 40, at_once) == fed_by_hand(theirs, other, x, labels, 40)
    assert_same_bits(everything(ours), everything(theirs))
    assert optimizer.state()["steps"] == other.state()["steps"] == len(RATES)
    assert optimizer.learning_rate == RATES[-1]


@pytest.mark.parametrize("loss", ["mean_squared_error", "sigmoid_cross_entropy", "hinge"])
def test_every_loss_gets_its_targets_on_the_device(loss: str) -> None:
    x, labels = images()
    ours, theirs = make(loss=loss), make(loss=loss)
    optimizer, other = (STAGE.optimizers.SGD(0.1) for _ in range(2))
    run = ours.resident(x, labels, optimizer, BATCH, 5)
    assert resident_epoch(run, 0, 4) == fed_by_hand(theirs, other, x, labels, 0)
    assert_same_bits(everything(ours), everything(theirs))


def test_numbers_that_are_no_bytes_travel_as_they_are() -> None:
    _, labels = images()
    x = np.random.default_rng(1).standard_normal((COUNT, 30))
    ours, theirs = make(), make()
    optimizer, other = (STAGE.optimizers.SGD(0.1) for _ in range(2))
    run = ours.resident(x, labels, optimizer, BATCH, 5)
    assert not run.is_bytes
    assert resident_epoch(run, 0, 4) == fed_by_hand(theirs, other, x, labels, 0)
    assert_same_bits(everything(ours), everything(theirs))


def test_bytes_are_recognised_exactly_whatever_was_made_of_them() -> None:
    every = (np.arange(2560).reshape(10, 256) % 256).astype(np.float32) / np.float32(255)
    for made in (every, every - 0.1307, (every - np.float32(0.1307)) / np.float32(0.3081), every[:, 3:77], every * 0):
        for dtype in ("float32", "float64"):
            found = resident_data.bytes_and_table(made.astype(dtype))
            assert found is not None
            places, table = found
            assert places.dtype == np.uint8
            assert table.dtype == dtype
            np.testing.assert_array_equal(table[places], made.astype(dtype))
    nearly = every.copy()
    nearly[7, 7] = np.nextafter(nearly[7, 7], np.float32(1))
    infinite = np.where(every == 0, np.inf, every)
    for other in (nearly, infinite, np.full((1, 1), np.nan, np.float32), every**2):
        assert resident_data.bytes_and_table(other) is None


def test_bytes_are_recognised_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_data, "AT_ONCE", 2)
    rising = np.arange(7 * 30).reshape(7, 30) / 255  # every piece has numbers that those before it had not
    found = resident_data.bytes_and_table(rising)
    assert found is not None
    np.testing.assert_array_equal(found[1][found[0]], rising)
    second = rising[-1:] + 1e-9  # other numbers for the same bytes
    assert resident_data.bytes_and_table(np.vstack([rising, second])) is None


AUGMENTED = Augmentation(2, 30.0, background=-1.25)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=wide)])
def test_images_are_changed_on_the_device_as_on_the_host(dtype: str) -> None:
    """A GPU, and the emulator, may round once where the host rounds twice: in a product and a sum."""
    x = np.random.default_rng(0).integers(0, 256, (COUNT, 60)).astype(dtype) / np.dtype(dtype).type(255)
    x = Normalisation(0.3, 0.5).normalised(x)
    architecture = Architecture((2, 6, 5), (Conv(1, 2), Flatten(), Dense(3)))
    network = STAGE.network.Network(architecture, seed=4, dtype=dtype)
    run = network.resident(x, np.zeros(COUNT, int), STAGE.optimizers.SGD(0.0), BATCH, 2**64 + 3, AUGMENTED)
    for epoch in (0, 5):
        order = batch_order(COUNT, seed=3, epoch=epoch)
        run.begin_epoch(order)
        for step in range(4):
            run.take(step, [0.0], 4 * epoch + step)
            indices = order[step * BATCH : (step + 1) * BATCH]
            got = network.plans.operations(network, len(indices), True, False).own[0].copy_to_host()
            expected = AUGMENTED.augmented(x[indices].reshape(-1, 2, 6, 5), indices, 2**64 + 3, epoch)
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14 if dtype == "float64" else 1e-6)
            assert not np.allclose(got, x[indices].reshape(got.shape), atol=0.1)


@pytest.mark.parametrize("interval", [1, 3])
def test_an_augmented_training_ends_where_the_plain_loop_ends(interval: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResidentRun, "interval", interval)
    x, labels = images("float64")
    ended = []
    for resident in (True, False):
        network = make()
        if not resident:
            network.resident = None
        optimizer = STAGE.optimizers.SGD(0.1, momentum=0.9)
        settings = TrainingSettings(3, BATCH, schedule=Schedule("cosine"), augmentation=Augmentation(1, 10.0))
        train(STAGE, network, optimizer, Split(x, labels), settings, hooks=QUIET)
        ended.append(everything(network))
    for one, other in zip(*ended, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_what_cannot_be_changed_on_the_device_is_left_to_the_host() -> None:
    x, labels = images("float64")
    dense = STAGE.network.Network([30, 3])
    others = ((make(), x + np.linspace(0, 1, 30) ** 2), (make(), x.astype(np.float32)), (dense, x))
    for network, samples in others:
        assert network.resident(samples, labels, STAGE.optimizers.SGD(0.1), BATCH, 5, AUGMENTED) is None
    too_far = Augmentation(shift=5)
    assert make().resident(x, labels, STAGE.optimizers.SGD(0.1), BATCH, 5, too_far) is None
    settings = TrainingSettings(1, BATCH, augmentation=too_far)
    with pytest.raises(ValueError, match="augment_shift: expected less than the images' smaller side, 5 pixels, got 5"):
        train(STAGE, make(), STAGE.optimizers.SGD(0.1), Split(x, labels), settings, hooks=QUIET)


@needs_emulator
def test_a_resident_run_from_graphs_ends_where_one_without_ends(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, labels = images()
    ours, theirs = make(), make()
    optimizer, other = (STAGE.optimizers.Adam(0.1, epsilon=1e-3) for _ in range(2))
    run = ours.resident(x, labels, optimizer, BATCH, 5)
    losses = [resident_epoch(run, 4 * epoch, 4) for epoch in range(4)]
    # Full and last batches, each reading its order from one of two places: four graphs, each first launched plainly.
    assert (recorder.captured, recorder.replayed) == (4, 12)
    monkeypatch.setattr("stage4_numba_cuda.plans.cuda_graphs.available", lambda: False)
    assert losses == [fed_by_hand(theirs, other, x, labels, 4 * epoch) for epoch in range(4)]
    assert_same_bits(everything(ours), everything(theirs))
