"""An epoch of training on real data: the time and, beside it, the accuracy it bought.

All contenders start from the same weights, see the same batches in the same order and take plain SGD steps at the same
rate, so that they end at the same accuracy, up to the few images that float32's rounding decides. A faster epoch that
learnt less would be no faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import sleep
from typing import Any

import numpy as np

from shared import bench_torch
from shared.bench_steps import Case
from shared.benchmark import REST, BenchRow, summarise, times_as_fast
from shared.contract import Stage, is_emulated
from shared.datasets import Dataset, Split
from shared.environment import usable_cores
from shared.initialize import initialize_parameters
from shared.training import train

HIDDEN = 128
BATCH = 64
LEARNING_RATE = 0.1
SEED = 0
DTYPE = "float32"
WARM_UP_SAMPLES = 2048


def epoch_rows(
    stages: Sequence[Stage],
    data: Dataset,
    *,
    rounds: int = 5,
    threads: int | None = None,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time the first epoch of 784-128-10 on data, batches of 64, on every stage but the first, and on PyTorch.

    rounds: epochs of each contender, interleaved, each from the start. The seconds are of training alone: batches and
    steps, no evaluation. The reference is the first contender. Stage 1 would take a quarter of an hour, and computes
    in float64; what is emulated is no time to set beside the others. Both are left out. threads: as in `ladder_rows`.
    """
    threads = threads or usable_cores()
    case = Case((data.train.x.shape[1], HIDDEN, data.classes), BATCH, DTYPE)
    parameters = [np.array(each, DTYPE) for each in initialize_parameters(case.layer_sizes, "he", SEED)]
    contenders: dict[str, Callable[[Dataset], tuple[float, float]]] = {
        stage.name: partial(_epoch, stage, case) for stage in stages if stage.number > 1 and not is_emulated(stage.name)
    }
    if torch is not None:
        settings: dict[str, Any] = {"batch_size": BATCH, "learning_rate": LEARNING_RATE, "seed": SEED}
        contenders["pytorch"] = lambda some: bench_torch.epoch(torch, parameters, some, **settings)
    if not contenders:
        return
    warm_up = Dataset(data.name, _first(data.train), _first(data.test), data.classes)
    for epoch in contenders.values():
        epoch(warm_up)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    accuracy: dict[str, float] = {}
    for _ in range(rounds):
        for name, epoch in contenders.items():
            sleep(REST if threads > 1 else 0.0)
            taken, accuracy[name] = epoch(data)
            seconds[name].append(taken)
    measured = {name: summarise(samples) for name, samples in seconds.items()}
    reference = next(iter(contenders))
    opponents = {name: name for name in ("stage2_numpy", "pytorch")}
    for name, result in measured.items():
        yield BenchRow(
            "epoch",
            name,
            f"{case.name}, {data.name}",
            DTYPE,
            tuple(case.layer_sizes),
            case.flops * len(data.train) // BATCH,
            result,
            f"the epoch of {reference}",
            result.median / measured[reference].median,
            threads=threads,
            against=times_as_fast(measured, name, opponents),
            accuracy=accuracy[name],
        )


def _epoch(stage: Stage, case: Case, data: Dataset) -> tuple[float, float]:
    """One epoch from the start: (seconds of training, test accuracy)."""
    network = stage.network.Network(list(case.layer_sizes), seed=SEED, dtype=case.dtype)
    optimizer = stage.optimizers.SGD(LEARNING_RATE)
    result = train(
        stage,
        network,
        optimizer,
        data.train,
        epochs=1,
        batch_size=case.batch,
        seed=SEED,
        test_data=data.test,
        progress_bar=False,
    )
    (record,) = result.epochs
    assert record.test_accuracy is not None
    return record.seconds, record.test_accuracy


def _first(split: Split) -> Split:
    return Split(split.x[:WARM_UP_SAMPLES], split.y[:WARM_UP_SAMPLES])
