"""shared.bench_epochs: the same epoch for everyone, with the accuracy beside the time."""

import numpy as np
from conftest import USABLE_STAGES

from shared import bench_epochs, contract
from shared.datasets import Dataset, Split
from shared.training import train


def small_data() -> Dataset:
    random = np.random.default_rng(0)
    splits = []
    for count in (150, 40):
        y = random.integers(0, 3, count)
        x = (random.random((count, 6)) + np.eye(3)[y].repeat(2, axis=1)).astype(np.float32)
        splits.append(Split(x, y))
    return Dataset("blobs", *splits, 3)


def test_every_upper_stage_trains_the_same_epoch() -> None:
    stages = [contract.load_stage(name) for name in USABLE_STAGES]
    data = small_data()
    rows = list(bench_epochs.epoch_rows(stages, data, rounds=2, threads=1))
    timed = [name for name in USABLE_STAGES[1:] if not contract.is_emulated(name)]
    assert [row.stage for row in rows] == timed
    for row in rows:
        assert (row.kind, row.name, row.dtype) == ("epoch", "6-128-3, batch 64, blobs", "float32")
        assert row.measurement is not None
        assert row.measurement.samples == 2
        assert row.accuracy == rows[0].accuracy
    assert rows[0].ratio == 1


def test_the_accuracy_is_that_of_an_epoch_of_training() -> None:
    stage, data = contract.load_stage("2"), small_data()
    network = stage.network.Network([6, bench_epochs.HIDDEN, 3], seed=bench_epochs.SEED)
    optimizer = stage.optimizers.SGD(bench_epochs.LEARNING_RATE)
    result = train(stage, network, optimizer, data.train, epochs=1, test_data=data.test, progress_bar=False)
    (row,) = bench_epochs.epoch_rows([stage], data, rounds=1, threads=1)
    assert row.accuracy == result.epochs[0].test_accuracy


def test_stage_1_alone_has_no_epochs() -> None:
    assert list(bench_epochs.epoch_rows([contract.load_stage("1")], small_data(), threads=1)) == []
