"""Training for real: MNIST and Fashion-MNIST with 784-128-10, accuracy after every epoch, seconds to 97 %.

By the training loop that all stages share, with the data resident on the device. Kernels are compiled beforehand, on a
few batches, and what that took is told apart. Where the full data sets are not here, the bundled subset stands in.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from shared.contract import load_stage
from shared.data.datasets import DataError, Dataset, Split, limited, load_dataset
from shared.training.loop import train
from shared.training.metrics import EpochRecord
from shared.training.schedules import Schedule
from shared.training.settings import Hooks, TrainingSettings

from .part import Part

DATASETS = ("mnist", "fashion-mnist")
SUBSET = "mnist-subset"
HIDDEN, BATCH, RATE, MOMENTUM = 128, 64, 0.1, 0.5
EPOCHS, QUICK_EPOCHS = 10, 2
WARM_UP = 3
"""Batches, of which the last is short: every kernel of an epoch has run, and every graph is captured."""

GOAL = 0.97


def run(part: Part) -> None:
    """A row for each epoch of each data set, and one that sums it up."""
    sets = {}
    for name in DATASETS:
        try:
            sets[name] = load_dataset(name, part.plan.data_dir)
        except DataError as reason:
            part.skip(name, str(reason).partition(". ")[0])
    if not sets or part.plan.tiny:
        sets = {SUBSET: limited(load_dataset(SUBSET), 320 if part.plan.tiny else None)}
    for data in sets.values():
        _train(part, data)
    part.finish("ok")


def _train(part: Part, data: Dataset) -> None:
    stage = load_stage("4")
    epochs = 1 if part.plan.tiny else QUICK_EPOCHS if part.plan.quick else EPOCHS
    begin = time.perf_counter()
    rest = len(data.train) % BATCH
    few = Split(*(each[: WARM_UP * BATCH + rest] for each in (data.train.x, data.train.y)))
    _run(stage, Dataset(data.name, few, limited(data, BATCH).test, data.classes), 2, lambda record: None)
    part.facts[f"warm-up on {data.name}"] = time.perf_counter() - begin
    taken = 0.0
    records: list[EpochRecord] = []
    goal: float | None = None

    def note(record: EpochRecord) -> None:
        nonlocal taken, goal
        taken += record.seconds
        records.append(record)
        if goal is None and (record.test_accuracy or 0.0) >= GOAL:
            goal = taken
        part.add(
            f"{data.name}, epoch {record.epoch}: {record.test_accuracy:.2%} after {taken:.3g} s of training",
            kind="epoch", dataset=data.name, training_seconds=taken, **asdict(record),
        )  # fmt: skip

    _run(stage, data, epochs, note)
    last = records[-1]
    said = f"; {GOAL:.0%} after {goal:.3g} s" if goal is not None else ""
    part.add(
        f"{data.name}: {last.test_accuracy:.2%} in {taken:.3g} s of training{said}",
        kind="summary", dataset=data.name, network=[data.train.x.shape[1], HIDDEN, data.classes], batch=BATCH,
        learning_rate=RATE, momentum=MOMENTUM, epochs=epochs, samples=len(data.train), seconds=taken,
        test_accuracy=last.test_accuracy, seconds_to_goal=goal, goal=GOAL,
    )  # fmt: skip


def _run(stage: Any, data: Dataset, epochs: int, on_epoch: Any) -> None:
    network = stage.network.Network([data.train.x.shape[1], HIDDEN, data.classes], seed=0, dtype="float32")
    train(
        stage, network, stage.optimizers.SGD(RATE, momentum=MOMENTUM), data.train,
        TrainingSettings(epochs, BATCH, schedule=Schedule("cosine")), test_data=data.test,
        hooks=Hooks(on_epoch=on_epoch, progress_bar=False),
    )  # fmt: skip
