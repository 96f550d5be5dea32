"""After its first step, stage 2 trains without allocating anything that grows with the batch.

NumPy reports its memory to tracemalloc. The measure is the most that a step holds above what was held when it
began. What NumPy and Python need for themselves is the same for 10,000 rows and for 20,000: array headers, tuples, and
the buffer through which NumPy broadcasts in place, which is at most 8192 numbers long (np.getbufsize) and is full
at either size. One array of a single byte for each row would add 10,000 bytes.
"""

import tracemalloc
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from shared import layers
from shared.architectures import Architecture, mlp
from shared.contract import ACTIVATIONS, LABEL_LOSSES, LOSSES, load_part, load_stage
from tests.wide import widely

STAGE = load_stage("stage2_numpy")
STAGE_ARRAYS = load_part("stage2_numpy", "arrays")
SMALL, LARGE = 10_000, 20_000
SIZES = [6, 5, 4, 3]
SLACK = 4000  # bytes, which Python's own objects of a step vary by; a small part of one byte for each further row
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: STAGE.optimizers.SGD(0.01),
    "SGD weight decay": lambda: STAGE.optimizers.SGD(0.01, weight_decay=0.01),
    "nesterov": lambda: STAGE.optimizers.SGD(0.01, momentum=0.9, nesterov=True, weight_decay=0.01),
    "RMSProp": lambda: STAGE.optimizers.RMSProp(weight_decay=0.01),
    "Adam": lambda: STAGE.optimizers.Adam(weight_decay=0.01),
}


def make_batch(rows: int, loss: str, dtype: str) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """x, answers and dropout masks."""
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, SIZES[0])).astype(dtype)
    y = rng.integers(0, SIZES[-1], rows) if loss in LABEL_LOSSES else rng.random((rows, SIZES[-1])).astype(dtype)
    masks = [np.where(rng.random((rows, size)) < 0.5, 0.0, 2.0).astype(dtype) for size in SIZES[1:-1]]
    return x, y, masks


def peak_of(step: Callable[[], object]) -> int:
    """Bytes at the highest point of the call above those held before it; the smallest of three calls.

    The smallest, because a first use of anything in Python may fill a cache once.
    """
    peaks = []
    for _ in range(3):
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            step()
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
    return min(peaks)


def step_peak(
    rows: int, activation: str, loss: str, optimizer: Any, dtype: str = "float32", dropout: bool = False
) -> int:
    """The peak of a training step on `rows` rows, after one to warm up."""
    form = mlp(SIZES, activation, 0.5 if dropout else 0.0)
    network = STAGE.network.Network(form, loss=loss, dtype=dtype)
    x, y, masks = make_batch(rows, loss, dtype)
    arguments = (x, y, optimizer, masks if dropout else None)
    network.train_step(*arguments)
    return peak_of(lambda: network.train_step(*arguments))


def test_the_measure_sees_one_byte_a_row() -> None:
    assert peak_of(lambda: np.ones(LARGE, dtype=bool)) - peak_of(lambda: np.ones(SMALL, dtype=bool)) > SLACK


@pytest.mark.parametrize("dtype", widely(["float32", "float64"]))
@pytest.mark.parametrize(("activation", "loss"), widely(product(ACTIVATIONS, LOSSES), 8))
def test_a_step_allocates_the_same_for_any_batch_size(activation: str, loss: str, dtype: str) -> None:
    small, large = (
        step_peak(rows, activation, loss, STAGE.optimizers.SGD(0.01), dtype=dtype) for rows in (SMALL, LARGE)
    )
    assert large - small < SLACK


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_optimizer_allocates_by_the_batch(name: str) -> None:
    small, large = (
        step_peak(rows, "relu", "softmax_cross_entropy", OPTIMIZERS[name](), dropout=True) for rows in (SMALL, LARGE)
    )
    assert large - small < SLACK


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_optimizer_allocates_by_the_size_of_the_parameters(name: str) -> None:
    def peak(features: int) -> int:
        optimizer = OPTIMIZERS[name]()
        p, g = np.ones((features, 8), dtype=np.float32), np.ones((features, 8), dtype=np.float32)
        optimizer.step([p], [g])
        return peak_of(lambda: optimizer.step([p], [g]))

    assert peak(LARGE) - peak(SMALL) < SLACK


def test_a_short_last_batch_costs_nothing_nor_does_the_full_batch_after_it() -> None:
    network, optimizer = STAGE.network.Network(SIZES), STAGE.optimizers.Adam()
    full, short = (make_batch(rows, "softmax_cross_entropy", "float32") for rows in (LARGE, SMALL + 1))
    network.train_step(*full[:2], optimizer)

    def epoch_end() -> None:
        network.train_step(*short[:2], optimizer)
        network.train_step(*full[:2], optimizer)

    assert peak_of(epoch_end) - step_peak(SMALL, "relu", "softmax_cross_entropy", STAGE.optimizers.Adam()) < SLACK


def test_what_the_steps_leave_behind_does_not_pile_up() -> None:
    network, optimizer = STAGE.network.Network(SIZES), STAGE.optimizers.Adam()
    x, y, _ = make_batch(SMALL, "softmax_cross_entropy", "float32")
    network.train_step(x, y, optimizer)
    tracemalloc.start()
    try:
        for _ in range(60):  # until Python's lists of freed objects are full
            network.train_step(x, y, optimizer)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            network.train_step(x, y, optimizer)
        assert tracemalloc.get_traced_memory()[0] - before < SLACK
    finally:
        tracemalloc.stop()


def image_calls(batch: int) -> dict[str, Callable[[], object]]:
    """Every function of the modules of convolution on a batch of this size, with memory for all that it needs."""
    conv, pool, norm = STAGE.convolution, STAGE.pooling, STAGE.batch_norm
    rng = np.random.default_rng(0)
    x, weights, bias = (rng.normal(size=shape).astype("float32") for shape in ((batch, 2, 6, 6), (3, 2, 3, 3), 3))
    out, small, same = np.ones((batch, 3, 6, 6), "float32"), np.ones((batch, 2, 3, 3), "float32"), np.ones_like(x)
    indices, shape, scratch = np.empty(small.shape, np.int64), x.shape, STAGE_ARRAYS.Scratch()
    layer = norm.BatchNorm(np.ones(2, "float32"), np.zeros(2, "float32"))
    pool.max_pool2d(x, 2, None, small, indices)
    return {
        "conv2d": lambda: conv.conv2d(x, weights, bias, 1, 1, out, scratch),
        "conv2d_backward": lambda: conv.conv2d_backward(out, x, weights, 1, 1, True, same, scratch),
        "conv2d_backward, stride 2": lambda: conv.conv2d_backward(
            out[:, :, :3, :3], x, weights, 2, 1, True, same, scratch
        ),
        "max_pool2d": lambda: pool.max_pool2d(x, 2, None, small, indices, scratch),
        "max_pool2d_backward": lambda: pool.max_pool2d_backward(small, indices, shape, same, scratch),
        "average_pool2d": lambda: pool.average_pool2d(x, 2, None, small, scratch),
        "average_pool2d_backward": lambda: pool.average_pool2d_backward(small, shape, 2, None, same, scratch),
        "BatchNorm": lambda: (layer.forward(x, True, same), layer.backward(x, same)),
    }


@pytest.mark.parametrize("name", image_calls(1))
def test_the_modules_of_convolution_allocate_the_same_for_any_batch_size(name: str) -> None:
    peaks = []
    for batch in (5_000, 10_000):  # at either, a buffer of 8192 numbers is full
        call = image_calls(batch)[name]
        call()
        peaks.append(peak_of(call))
    assert peaks[1] - peaks[0] < SLACK


def architecture_of_every_layer() -> Architecture:
    block = layers.Residual((layers.Conv(2, 3, padding=1), layers.BatchNorm(), layers.Activate("tanh")))
    return Architecture(
        (1, 9, 8),
        (
            *(layers.Conv(2, 3), layers.BatchNorm(), layers.Activate("relu"), block, layers.MaxPool(2)),
            *(layers.Dropout(0.5), layers.AveragePool(2, 1), layers.Conv(3, 1, stride=2), layers.Flatten()),
            *(layers.Dense(4), layers.Activate("leaky_relu"), layers.Dense(3)),
        ),
    )


def test_a_step_through_every_kind_of_layer_allocates_the_same_for_any_batch_size() -> None:
    network, peaks = STAGE.network.Network(architecture_of_every_layer()), []
    for batch in (5_000, 10_000):
        rng = np.random.default_rng(batch)
        x, y = rng.normal(size=(batch, 72)).astype("float32"), rng.integers(0, 3, batch)
        masks, optimizer = [np.full((batch, 18), 2.0, "float32")], STAGE.optimizers.SGD(0.001, momentum=0.9)
        network.train_step(x, y, optimizer, masks)
        peaks.append(peak_of(lambda x=x, y=y, opt=optimizer, masks=masks: network.train_step(x, y, opt, masks)))
    assert peaks[1] - peaks[0] < SLACK
