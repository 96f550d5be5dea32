"""The main job: every stage trains the same network on the same batches. Do they agree, and how long does each take?

The stages start from the same weights and see the same images in the same order, so they must end with the same
numbers, up to rounding. In float64 that means ten digits and more, and the same prediction for every test image. In
float32 two correct programs may round an image between two classes to either side. There the predictions are counted
and reported, and only the parameters decide whether the stages agree.

    settings_of     the settings, with defaults of its own for a known network
    run_lap         train one stage
    agreements      compare all stages with the first
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from groundup.recipes import fitted
from shared.architectures import NAMED, Architecture
from shared.checks.equivalence import Comparison, compare_parameters, longest_sum
from shared.contract import NetworkLike, Stage
from shared.data.datasets import Dataset
from shared.training.loop import train
from shared.training.metrics import EpochRecord, evaluate
from shared.training.schedules import Schedule
from shared.training.settings import Hooks, TrainingSettings


@dataclass(frozen=True)
class Settings:
    """The settings of a race, the same for all stages.

    hidden: neurons of the hidden layer of a stack of dense layers
    limit: number of training and of test samples; None for all
    model: the name of a known network in place of the stack, which then has no hidden size
    Raises ValueError for a size below 1; the stages and the training check the rest.
    """

    dataset: str = "mnist-subset"
    hidden: int | None = 32
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 0.05
    momentum: float = 0.9
    schedule: str = "cosine"
    seed: int = 0
    dtype: str = "float64"
    limit: int | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        for name in ("hidden", "epochs", "batch_size", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name.replace('_', '-')} must be at least 1, got {value}")

    def layers(self, data: Dataset) -> list[int] | Architecture:
        """What the network for these images is made of, as `Network` takes it. Raises ValueError for a model that is
        unknown, or too large for them."""
        if self.model is not None:
            return fitted(self.model, data.described)
        return [data.train.x.shape[1], self.hidden or 1, data.classes]


OF_MODEL: dict[str, Any] = {
    "hidden": None,
    "epochs": 2,
    "batch_size": 8,
    "learning_rate": 0.02,
    "limit": 800,
}
"""The settings of a race of a known network where none are given. Stage 1 needs a twentieth of a second for a step of
one image with LeNet-5, so all stages train on a part of the images."""


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The settings of a race: those given, and for all others the defaults, which a model has of its own.

    Raises ValueError for an unknown model, for a hidden size beside a model, and as Settings does.
    """
    model = options.get("model")
    if model is None:
        return Settings(**options)
    if model not in NAMED:
        raise ValueError(f"unknown model {model!r}; choose one of {', '.join(NAMED)}")
    if "hidden" in options:
        raise ValueError(f"--hidden is for a stack of dense layers; --model {model} has its own: choose one of them")
    return Settings(**{**OF_MODEL, **options})


@dataclass(frozen=True)
class Lap:
    """The training of one stage in a race, with the trained network and its predictions (n,) of the test images.

    warm_up: seconds before the training in which the stage prepared what it does only once, such as compiling kernels
    samples: number of training images; model: the name of a known network
    """

    stage: Stage
    network: NetworkLike
    epochs: list[EpochRecord]
    predictions: np.ndarray
    test_loss: float
    test_accuracy: float
    warm_up: float
    samples: int
    model: str | None = None

    @property
    def seconds_per_epoch(self) -> float:
        """The median over the epochs, of training alone, without evaluation."""
        return median(record.seconds for record in self.epochs)

    @property
    def network_name(self) -> str:
        """'784-32-10', or the name of a known network."""
        return self.model or "-".join(map(str, self.network.layer_sizes))

    @property
    def samples_per_second(self) -> float:
        """The training images divided by `seconds_per_epoch`: one measurement, said in two ways."""
        return self.samples / self.seconds_per_epoch


@dataclass(frozen=True)
class Agreement:
    """How one stage compares with the first.

    other_predictions: number of test images for which it predicts another class
    worst: the entry of a parameter that differs most, in units of the tolerance
    """

    other_predictions: int
    worst: Comparison
    ok: bool


def run_lap(
    stage: Stage, data: Dataset, settings: Settings, on_batch: Callable[[int, int, float], None] | None = None
) -> Lap:
    """Train one stage and evaluate it on the test images. on_batch: as in `shared.training.settings.Hooks`.

    A short training comes first, of another network on a whole batch and the size of the last one, so that no epoch
    contains the compiling of kernels.
    """
    begin = time.perf_counter()
    few = data.train.first(settings.batch_size + len(data.train) % settings.batch_size)
    _train(stage, replace(data, train=few, test=few.first(1)), replace(settings, epochs=1), None)
    warm_up = time.perf_counter() - begin
    network, epochs = _train(stage, data, settings, on_batch)
    loss, accuracy, predictions = evaluate(stage, network, data.test)
    samples = len(data.train)
    return Lap(stage, network, epochs, np.asarray(predictions), loss, accuracy, warm_up, samples, settings.model)


def _train(
    stage: Stage, data: Dataset, settings: Settings, on_batch: Callable[[int, int, float], None] | None
) -> tuple[NetworkLike, list[EpochRecord]]:
    layers = settings.layers(data)
    network = stage.network.Network(layers, seed=settings.seed, dtype=settings.dtype)
    result = train(
        stage,
        network,
        stage.optimizers.SGD(settings.learning_rate, momentum=settings.momentum),
        data.train,
        TrainingSettings(settings.epochs, settings.batch_size, settings.seed, schedule=Schedule(settings.schedule)),
        test_data=data.test,
        hooks=Hooks(on_batch=on_batch, progress_bar=False),
    )
    return network, result.epochs


def agreements(laps: Sequence[Lap], settings: Settings, steps: int) -> dict[str, Agreement]:
    """The agreement of every stage with the first one, by stage name; the first one's with itself included.

    steps: number of training steps; the tolerance grows with it
    """
    first = laps[0]
    k = steps * longest_sum(first.network.architecture, settings.batch_size)
    return {lap.stage.name: _agreement(lap, first, settings.dtype, k) for lap in laps}


def _agreement(lap: Lap, first: Lap, dtype: str, k: int) -> Agreement:
    got, expected = (
        [np.asarray(each.stage.arrays.to_host(array)) for array in each.network.parameters] for each in (lap, first)
    )
    compared = compare_parameters(got, expected, first.network.architecture, dtype, k)
    worst = max(compared, key=lambda comparison: comparison.tolerances)
    others = int(np.count_nonzero(lap.predictions != first.predictions))
    return Agreement(others, worst, worst.ok and (others == 0 or dtype != "float64"))
