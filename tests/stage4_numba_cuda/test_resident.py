"""A training run whose data stays on the device ends where one ends that is fed batch by batch."""

from typing import Any

import numpy as np
import pytest

from shared.architectures import mlp
from shared.contract import Stage, load_stage
from shared.data.batches import as_targets, batch_order
from shared.data.datasets import Split
from shared.dropout import step_masks
from shared.training.loop import train
from shared.training.schedules import Schedule
from shared.training.settings import QUIET, Hooks, Saving, TrainingSettings
from stage4_numba_cuda.plans import mlp_launches, mlp_memory, resident, resident_data, resident_host
from tests.wide import wide

STAGE: Stage = load_stage("stage4_numba_cuda")
COUNT, FEATURES, BATCH = 53, 21, 8
RATES = [0.1 / (1 + i) for i in range(7)]  # 53 samples in batches of 8: seven steps, the last of five rows


def images(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (COUNT, FEATURES))
    return pixels.astype(np.float32) / np.float32(255), rng.integers(0, 3, COUNT)


def make(
    loss: str = "softmax_cross_entropy",
    dtype: str = "float64",
    sizes: tuple[int, ...] = (FEATURES, 12, 3),
    dropout: float = 0.0,
) -> Any:
    return STAGE.network.Network(mlp(sizes, "tanh", dropout), loss=loss, seed=4, dtype=dtype)


def fed_by_hand(network: Any, optimizer: Any, x: np.ndarray, labels: np.ndarray, first_step: int) -> list[float]:
    """An epoch through train_step: the batches, masks and targets made on the host."""
    order = batch_order(COUNT, seed=3, epoch=0)
    losses = []
    for step, rate in enumerate(RATES):
        indices = order[step * BATCH : (step + 1) * BATCH]
        optimizer.learning_rate = rate
        masks = step_masks(len(indices), network.architecture.dropouts(), 5, first_step + step, network.dtype)
        y = as_targets(labels[indices], network.loss_name, network.layer_sizes[-1], network.dtype)
        given = None if masks is None else [STAGE.arrays.asarray(mask, network.dtype) for mask in masks]
        losses.append(network.train_step(x[indices], y, optimizer, given))
    return losses


def assert_same_parameters(got: Any, expected: Any, **tolerance: float) -> None:
    for g, e in zip(got.parameters, expected.parameters, strict=True):
        np.testing.assert_allclose(g.copy_to_host(), e.copy_to_host(), **tolerance)


@pytest.mark.parametrize("at_once", [1, 3, 7])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_resident_epoch_is_the_epoch_fed_by_hand(at_once: int, dropout: float) -> None:
    x, labels = images()
    ours, theirs = make(dropout=dropout), make(dropout=dropout)
    optimizer, other = (STAGE.optimizers.Adam(0.1, epsilon=1e-3) for _ in range(2))
    run = ours.resident(x, labels, optimizer, BATCH, 5)
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    losses = []
    for first in range(0, len(RATES), at_once):
        losses += run.take(first, RATES[first : first + at_once], 40 + first)
    expected = fed_by_hand(theirs, other, x, labels, first_step=40)
    np.testing.assert_allclose(losses, expected, rtol=1e-11)
    assert_same_parameters(ours, theirs, rtol=1e-10, atol=1e-12)
    assert optimizer.state()["steps"] == other.state()["steps"] == len(RATES)


@pytest.mark.parametrize("loss", ["mean_squared_error", "sigmoid_cross_entropy", "hinge"])
def test_every_loss_gets_its_targets_on_the_device(loss: str) -> None:
    x, labels = images()
    ours, theirs = make(loss), make(loss)
    optimizer, other = (STAGE.optimizers.SGD(0.1, momentum=0.5) for _ in range(2))
    run = ours.resident(x, labels, optimizer, BATCH, 5)
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    np.testing.assert_allclose(run.take(0, RATES, 0), fed_by_hand(theirs, other, x, labels, first_step=0), rtol=1e-11)
    assert_same_parameters(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sizes", [(FEATURES, 3), (FEATURES, 12, 40)], ids=["no hidden layer", "40 outputs"])
def test_networks_that_the_three_kernels_cannot_do_are_trained_too(sizes: tuple[int, ...]) -> None:
    x, labels = images()
    ours, theirs = make(sizes=sizes, dropout=0.25), make(sizes=sizes, dropout=0.25)
    optimizer, other = (STAGE.optimizers.SGD(0.1, momentum=0.5) for _ in range(2))
    run = ours.resident(x, labels, optimizer, BATCH, 5)
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    np.testing.assert_allclose(run.take(0, RATES, 9), fed_by_hand(theirs, other, x, labels, first_step=9), rtol=1e-11)
    assert_same_parameters(ours, theirs, rtol=1e-10, atol=1e-12)


def test_numbers_that_are_no_bytes_travel_as_they_are() -> None:
    x, labels = images()
    x = np.random.default_rng(1).standard_normal(x.shape)
    ours, theirs = make(), make()
    optimizer, other = (STAGE.optimizers.SGD(0.1) for _ in range(2))
    run = ours.resident(x, labels, optimizer, BATCH, 5)
    assert not run.is_bytes
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    np.testing.assert_allclose(run.take(0, RATES, 0), fed_by_hand(theirs, other, x, labels, first_step=0), rtol=1e-11)
    assert_same_parameters(ours, theirs, rtol=1e-10, atol=1e-12)


def test_what_is_copied_to_the_host_was_written_also_where_the_last_batch_is_short() -> None:
    x, labels = images()
    run = make().resident(x, labels, STAGE.optimizers.SGD(0.1), BATCH, 5)
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    run.take(0, RATES, 0)
    assert np.isfinite(run.row_losses.copy_to_host()).all()  # memory that nobody has written holds NaN


def test_bytes_are_recognised_exactly() -> None:
    every = (np.arange(256, dtype=np.float32) / np.float32(255))[None]
    np.testing.assert_array_equal(resident_data.bytes_of(every), np.arange(256, dtype=np.uint8)[None])
    nearly = every.copy()
    nearly[0, 7] = np.nextafter(nearly[0, 7], np.float32(1))
    for other in (nearly, every + 1, -every, every.astype(np.float64), np.full((1, 1), np.nan, np.float32)):
        assert resident_data.bytes_of(other) is None
    many = np.repeat(every, resident_data.AT_ONCE + 2, axis=0)
    np.testing.assert_array_equal(
        resident_data.bytes_of(many), np.repeat(resident_data.bytes_of(every), len(many), axis=0)
    )
    many[-1, 7] = nearly[0, 7]
    assert resident_data.bytes_of(many) is None


def test_more_steps_than_their_losses_can_be_kept_for_are_refused() -> None:
    x, labels = images()
    run = make().resident(np.tile(x, (20, 1)), np.tile(labels, 20), STAGE.optimizers.SGD(0.1), 1, 5)
    run.begin_epoch(np.arange(20 * COUNT))
    with pytest.raises(ValueError, match="take: 1025 steps at once; the losses of at most 1024 can be kept"):
        run.take(0, [0.1] * 1025, 0)


def test_larger_batches_have_fewer_steps_between_two_readings() -> None:
    steps_at = {batch: resident_host.steps_between_readings(batch) for batch in (1, 64, 128, 1024, 60_000)}
    assert steps_at == {1: 1024, 64: 1024, 128: 512, 1024: 64, 60_000: 64}


@pytest.mark.parametrize("count", [16, 17, 23, 24])
def test_batches_are_those_of_the_epoch(count: int) -> None:
    starts = range(0, count, 8)
    expected = [min(8, count - start) for start in starts]
    for first in range(len(starts)):
        for many in range(1, len(starts) - first + 1):
            found = resident_host.batches(count, 8, first, many)
            assert [rows for rows, times in found for _ in range(times)] == expected[first : first + many]


def test_losses_are_the_sums_of_the_rows_that_a_step_has() -> None:
    rows = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    rows[2, 5:] = np.nan
    expected = [float(row.astype(np.float64).sum()) for row in (rows[0], rows[1], rows[2, :5])]
    assert resident_host.losses_of(rows, [(8, 2), (5, 1)]) == pytest.approx(expected, rel=1e-14)


class Counting:
    """Somebody else's optimizer."""

    learning_rate = 0.1

    def __init__(self) -> None:
        self.rates: list[float] = []

    def step(self, parameters: Any, gradients: Any) -> None:
        self.rates.append(self.learning_rate)


def test_somebody_elses_optimizer_sees_every_rate() -> None:
    x, labels = images()
    optimizer = Counting()
    run = make().resident(x, labels, optimizer, BATCH, 5)
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    run.take(0, RATES, 0)
    assert optimizer.rates == RATES


@pytest.mark.parametrize("interval", [1, 4, 64])
@pytest.mark.parametrize("checkpoint_every", [None, 3])
def test_the_training_loop_tells_the_same_whatever_the_interval(
    interval: int, checkpoint_every: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    x, labels = images()
    data = Split(x, labels)
    told: dict[int, list[Any]] = {}
    parameters = {}
    for at_once in (1, interval):
        monkeypatch.setattr(resident.MlpRun, "interval", at_once)
        network = make(dropout=0.2)
        told[at_once] = []
        result = train(
            *(STAGE, network, STAGE.optimizers.SGD(0.1, momentum=0.9), data),
            TrainingSettings(2, BATCH, schedule=Schedule("cosine")),
            saving=Saving(tmp_path / f"{at_once}", overwrite=True, checkpoint_every=checkpoint_every),
            hooks=Hooks(on_batch=lambda *what, told=told[at_once]: told.append(what), progress_bar=False),
        )
        parameters[at_once] = [p.copy_to_host() for p in network.parameters]
        assert result.steps == 14
    assert told[1] == told[interval]
    assert [(epoch, step) for epoch, step, _ in told[1]] == [(e, s) for e in (1, 2) for s in range(1, 8)]
    for one, many in zip(parameters[1], parameters[interval], strict=True):
        np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("loss", ["softmax_cross_entropy", "mean_squared_error"])
def test_stage_2_and_stage_4_train_to_the_same_numbers(loss: str) -> None:
    x, labels = images()
    ended = []
    for name in ("stage2_numpy", "stage4_numba_cuda"):
        stage = load_stage(name)
        network = stage.network.Network(mlp([FEATURES, 12, 3], dropout=0.2), loss=loss, seed=4, dtype="float64")
        train(
            *(stage, network, stage.optimizers.SGD(0.1, momentum=0.9), Split(x, labels)),
            TrainingSettings(3, BATCH, schedule=Schedule("cosine")),
            hooks=QUIET,
        )
        ended.append([np.asarray(stage.arrays.to_host(p)) for p in network.parameters])
    for theirs, ours in zip(*ended, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("at_once", [1, 7])
def test_a_network_can_be_used_in_every_way_after_a_resident_run(at_once: int) -> None:
    x, labels = images()
    network = make()
    run = network.resident(x, labels, STAGE.optimizers.SGD(0.1), BATCH, 5)
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    for first in range(0, 7, at_once):
        run.take(first, RATES[first : first + at_once], first)
    expected = network.loss(x[:9], labels[:9])
    assert network.train_step(x[:9], labels[:9], STAGE.optimizers.SGD(0.0)) == pytest.approx(expected, rel=1e-12)
    for _ in range(70):  # more often than there are lines for losses
        network.gradients(x[:9], labels[:9])


def test_a_batch_larger_than_the_data_takes_no_more_memory_than_the_data() -> None:
    x, labels = images()
    network = make()
    run = network.resident(x, labels, STAGE.optimizers.SGD(0.1), 10_000_000, 5)
    run.begin_epoch(batch_order(COUNT, seed=3, epoch=0))
    (loss,) = run.take(0, [0.0], 0)
    assert loss == pytest.approx(network.loss(x, labels), rel=1e-12)
    assert network.plans.mlp_memory(network, 1).capacity == COUNT


@wide
def test_a_product_cut_into_parts_is_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU does with a small batch: tiles of 16, and k cut into parts."""
    x, labels = images()
    whole, cut = make(), make()
    expected = whole.gradients(x[:19], labels[:19])
    monkeypatch.setattr(mlp_memory, "multiprocessors", lambda: 132)
    monkeypatch.setattr(mlp_launches, "TILE", 16)
    wide = STAGE.network.Network([200, 12, 3], seed=1, dtype="float64")
    assert mlp_memory.splits(19, 200, 12) == 6
    wide_x = np.random.default_rng(0).standard_normal((19, 200))
    assert wide.train_step(wide_x, labels[:19], STAGE.optimizers.SGD(0.0)) == pytest.approx(
        wide.loss(wide_x, labels[:19]), rel=1e-12
    )
    for got, wanted in zip(cut.gradients(x[:19], labels[:19]), expected, strict=True):
        np.testing.assert_allclose(got.copy_to_host(), wanted.copy_to_host(), rtol=1e-10, atol=1e-16)


def test_a_large_seed_draws_the_masks_of_shared_dropout() -> None:
    x, labels = images()
    network = make(dropout=0.3)
    run = network.resident(x, labels, STAGE.optimizers.SGD(0.0), COUNT, 2**64 + 1)
    run.begin_epoch(np.arange(COUNT))
    (loss,) = run.take(0, [0.0], 6)
    masks = step_masks(COUNT, [(12, 0.3)], seed=2**64 + 1, step=6, dtype="float64")
    assert loss == pytest.approx(network.loss(x, labels, masks), rel=1e-12)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"x": np.zeros((53, 20))}, r"resident: x is \(53, 20\), expected \(samples, 21\)"),
        ({"labels": np.full(53, 3)}, r"resident: labels\[0\] is 3, expected 0 to 2"),
        ({"labels": np.zeros(52, int)}, "resident: expected 53 labels, one a row"),
        ({"batch_size": 0}, "resident: batch_size: expected at least 1, got 0"),
    ],
)
def test_data_that_does_not_fit_is_refused(what: dict[str, Any], message: str) -> None:
    x, labels = images()
    given: dict[str, Any] = {"x": x, "labels": labels, "optimizer": STAGE.optimizers.SGD(0.1), "batch_size": BATCH}
    with pytest.raises(ValueError, match=message):
        make().resident(**{**given, **what}, seed=0)


@pytest.mark.parametrize("loss", ["softmax_cross_entropy", "hinge"])
def test_a_single_output_has_no_column_for_the_label_1(loss: str) -> None:
    x, _ = images()
    labels = np.arange(COUNT) % 2
    with pytest.raises(ValueError, match=r"resident: labels\[1\] is 1, expected 0 to 0 \(1 classes\)"):
        make(loss, sizes=(FEATURES, 12, 1)).resident(x, labels, STAGE.optimizers.SGD(0.1), BATCH, 0)


def test_an_order_and_steps_that_do_not_fit_are_refused() -> None:
    x, labels = images()
    run = make().resident(x, labels, STAGE.optimizers.SGD(0.1), BATCH, 5)
    with pytest.raises(ValueError, match="take: there is no order yet; call begin_epoch first"):
        run.take(0, [0.1], 0)
    for order in (
        [0, 1, 9],
        np.zeros(COUNT, int),
        np.arange(1, COUNT + 1),
        np.arange(-1, COUNT - 1),
        np.arange(float(COUNT)),
    ):
        with pytest.raises(ValueError, match="resident: order: expected each index from 0 to 52 once"):
            run.begin_epoch(order)
    run.begin_epoch(np.arange(COUNT))
    with pytest.raises(ValueError, match="take: steps 6 to 8 of an epoch that has 7"):
        run.take(6, [0.1, 0.1], 0)
    assert run.take(3, [], 0) == []


def test_an_order_whose_copy_was_interrupted_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, order = resident_host.Orders(9), np.arange(9)[::-1]
    orders.prefetch(np.arange(9))
    with monkeypatch.context() as patch:
        patch.setattr(type(orders.now), "copy_to_device", interrupted)
        with pytest.raises(KeyboardInterrupt):
            orders.prefetch(order)
    orders.begin(order)
    np.testing.assert_array_equal(orders.now.copy_to_host(), order)


def interrupted(*arguments: Any, **named: Any) -> None:
    raise KeyboardInterrupt


def test_half_precision_data_is_taken() -> None:
    x, labels = images()
    half = x.astype(np.float16)
    network = make()
    run = network.resident(half, labels, STAGE.optimizers.SGD(0.0), COUNT, 5)
    run.begin_epoch(np.arange(COUNT))
    assert run.take(0, [0.0], 0) == [pytest.approx(network.loss(half, labels), rel=1e-12)]
