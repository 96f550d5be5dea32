"""The main job: every stage trains the same network on the same batches; do they agree, and how long does each take?

The stages start from the same weights and see the same images in the same order, so they should end at the same
numbers, up to rounding. In float64 that means ten digits and more, and the same prediction for every single test
image. In float32 two correct programs may round an image that lies on the edge to either side, so there the
predictions are counted and reported, and the parameters decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from shared.bench.document import Results
from shared.bench.rows import BenchRow, Curve
from shared.bench.timing import summarise
from shared.charts.curves import training_curves
from shared.charts.ladder_share import ladder_share
from shared.charts.staircase import staircase
from shared.charts.style import save
from shared.checks.equivalence import Comparison, compare_parameters
from shared.contract import STAGES, NetworkLike, Stage, StageUnavailable, is_emulated, load_stage
from shared.data.datasets import Dataset, Split
from shared.training.loop import train
from shared.training.metrics import EpochRecord, evaluate
from shared.training.schedules import Schedule
from shared.training.settings import Hooks, TrainingSettings

SCHEMA = 1


@dataclass(frozen=True)
class Settings:
    """What all stages are given alike. limit: use only so many training and test samples; None uses all."""

    dataset: str = "mnist-subset"
    hidden: int = 32
    epochs: int = 5
    batch_size: int = 32
    learning_rate: float = 0.05
    momentum: float = 0.9
    schedule: str = "cosine"
    seed: int = 0
    dtype: str = "float64"
    limit: int | None = None

    def check(self) -> None:
        """Raise ValueError for a value that no race can have; the stages check the rest."""
        for name in ("hidden", "epochs", "batch_size", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name.replace('_', '-')} must be at least 1, got {value}")


@dataclass(frozen=True)
class Lap:
    """One stage's race: its epochs, the trained network and its predictions (n,) for the test images."""

    stage: Stage
    network: NetworkLike
    epochs: list[EpochRecord]
    predictions: np.ndarray
    test_loss: float
    test_accuracy: float

    @property
    def seconds_per_epoch(self) -> float:
        """Training only, evaluation left out; the median over the epochs."""
        return median(record.seconds for record in self.epochs)

    @property
    def samples_per_second(self) -> float:
        """The median over the epochs."""
        return median(record.samples_per_second for record in self.epochs)


@dataclass(frozen=True)
class Agreement:
    """How one stage compares with the first: other_predictions counts test images with another class, worst is the
    parameter entry that lies furthest apart in units of the tolerance."""

    other_predictions: int
    worst: Comparison
    ok: bool


def stages_for(choice: str | None) -> tuple[list[Stage], dict[str, str]]:
    """The stages to race, and for those that cannot run here, the reason.

    choice: None for all four; else names or numbers with commas between ("1,2"), all of which must be available.
    Raises ValueError for an unknown name or none at all, StageUnavailable for a chosen stage that is not there.
    """
    if choice is not None:
        names = [name.strip() for name in choice.split(",") if name.strip()]
        if not names:
            raise ValueError("stages: expected names or numbers with commas between, like 1,2; got none")
        chosen = {stage.name: stage for stage in map(load_stage, names)}
        return sorted(chosen.values(), key=lambda stage: stage.number), {}
    stages, unavailable = [], {}
    for name in STAGES:
        try:
            stages.append(load_stage(name))
        except StageUnavailable as reason:
            unavailable[name] = str(reason)
    return stages, unavailable


def limited(data: Dataset, limit: int | None) -> Dataset:
    """The first `limit` samples of each split, in their order; all of them where limit is None."""
    if limit is None:
        return data
    train_split, test_split = (Split(split.x[:limit], split.y[:limit]) for split in (data.train, data.test))
    return Dataset(data.name, train_split, test_split, data.classes)


def run_lap(
    stage: Stage, data: Dataset, settings: Settings, on_batch: Callable[[int, int, float], None] | None = None
) -> Lap:
    """Train one stage from the start and judge it on the test images."""
    sizes = [data.train.x.shape[1], settings.hidden, data.classes]
    network = stage.network.Network(sizes, seed=settings.seed, dtype=settings.dtype)
    optimizer = stage.optimizers.SGD(settings.learning_rate, momentum=settings.momentum)
    result = train(
        stage,
        network,
        optimizer,
        data.train,
        TrainingSettings(settings.epochs, settings.batch_size, settings.seed, schedule=Schedule(settings.schedule)),
        test_data=data.test,
        hooks=Hooks(on_batch=on_batch, progress_bar=False),
    )
    loss, accuracy, predictions = evaluate(stage, network, data.test)
    return Lap(stage, network, result.epochs, np.asarray(predictions), loss, accuracy)


def agreements(laps: Sequence[Lap], settings: Settings, steps: int) -> dict[str, Agreement]:
    """Every stage against the first, by stage name; the first agrees with itself, exactly.

    steps: training steps that were taken, which the tolerance grows with.
    """
    first = laps[0]
    longest_sum = max(settings.batch_size, *first.network.layer_sizes)
    return {lap.stage.name: _agreement(lap, first, settings.dtype, steps, longest_sum) for lap in laps}


def _agreement(lap: Lap, first: Lap, dtype: str, steps: int, longest_sum: int) -> Agreement:
    got, expected = (
        [np.asarray(each.stage.arrays.to_host(array)) for array in each.network.parameters] for each in (lap, first)
    )
    compared = compare_parameters(got, expected, dtype, steps=steps, longest_sum=longest_sum)
    worst = max(compared, key=lambda comparison: comparison.tolerances)
    others = int(np.count_nonzero(lap.predictions != first.predictions))
    return Agreement(others, worst, worst.ok and (others == 0 or dtype != "float64"))


def results(
    settings: Settings,
    laps: Sequence[Lap],
    found: Mapping[str, Agreement],
    unavailable: Mapping[str, str],
    rows: Sequence[BenchRow],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """The results document, ready for JSON; times in seconds."""
    first = laps[0].seconds_per_epoch
    return {
        "schema": SCHEMA,
        "kind": "groundup race",
        "environment": dict(facts),
        "settings": asdict(settings),
        "network": list(laps[0].network.layer_sizes),
        "agree": all(agreement.ok for agreement in found.values()),
        "reference": laps[0].stage.name,
        "stages": [
            {
                "stage": lap.stage.name,
                "title": lap.stage.title,
                "emulated": is_emulated(lap.stage.name),
                "test_accuracy": lap.test_accuracy,
                "test_loss": lap.test_loss,
                "seconds_per_epoch": lap.seconds_per_epoch,
                "samples_per_second": lap.samples_per_second,
                "speed": first / lap.seconds_per_epoch,
                "other_predictions": found[lap.stage.name].other_predictions,
                "worst": asdict(found[lap.stage.name].worst) | {"text": str(found[lap.stage.name].worst)},
                "epochs": [asdict(record) for record in lap.epochs],
            }
            for lap in laps
        ],
        "unavailable": dict(unavailable),
        "ladders": [row.as_dict() for row in rows],
    }


def draw(
    folder: Path,
    settings: Settings,
    laps: Sequence[Lap],
    agree: bool,
    rows: Sequence[BenchRow],
    facts: Mapping[str, Any],
) -> list[Path]:
    """Write the charts for which there is enough into the folder, each as PNG and SVG; returns their paths.

    rows: of the ladders; where there are none (an emulated stage alone), there is no chart of them. A single stage has
    no staircase of times.
    """
    results = Results(
        rows=[*rows, *(_epoch_row(lap, settings) for lap in laps)],
        curves=[_curve(lap, settings) for lap in laps],
        environment=facts,
    )
    charts = [training_curves(results, agree=agree), staircase(results, emulated=True), ladder_share(results)]
    return [path for chart in charts if chart is not None for path in save(chart.figure, folder / chart.name)]


def _epoch_row(lap: Lap, settings: Settings) -> BenchRow:
    sizes = tuple(lap.network.layer_sizes)
    return BenchRow(
        "epoch",
        lap.stage.name,
        f"{'-'.join(map(str, sizes))}, batch {settings.batch_size}, {settings.dataset}",
        settings.dtype,
        sizes,
        measurement=summarise([record.seconds for record in lap.epochs]),
        accuracy=lap.test_accuracy,
        emulated=is_emulated(lap.stage.name),
    )


def _curve(lap: Lap, settings: Settings) -> Curve:
    return Curve(
        lap.stage.name,
        "-".join(map(str, lap.network.layer_sizes)),
        settings.dataset,
        [record.epoch for record in lap.epochs],
        [record.train_loss for record in lap.epochs],
        [record.test_accuracy or 0.0 for record in lap.epochs],
        list(accumulate(record.seconds for record in lap.epochs)),
        emulated=is_emulated(lap.stage.name),
    )
