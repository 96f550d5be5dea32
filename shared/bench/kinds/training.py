"""Training on real images: the time of an epoch, the time until an accuracy is reached, and the curves.

All contenders start from the same weights, see the same batches in the same order and take the same steps, so that they
end at the same accuracy, up to the few images that rounding decides. A fast epoch that learns less is no
gain, so each time is shown with its accuracy.

The seconds are of training alone, as `shared.training.loop.train` counts them: batches and steps, no evaluation. The
contenders take turns, an epoch each, so that a machine that slows down slows down for all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import sleep
from typing import Any

from shared.bench.kinds.steps import Case, start_parameters
from shared.bench.measuring import gpu
from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.measuring.timing import REST, Measurement, summarise, times_as_fast
from shared.bench.peers import pytorch
from shared.bench.peers.pytorch import Trained
from shared.contract import Stage, is_emulated
from shared.data.datasets import Dataset, Split
from shared.machine.hardware import usable_cores
from shared.training.epochs import EpochRunner
from shared.training.metrics import evaluate
from shared.training.runs import Position
from shared.training.schedules import Schedule, learning_rate_at
from shared.training.settings import TrainingSettings

WARM_UP_BATCHES = 2
EPOCH_LIMIT = 60.0
"""Seconds that an epoch may be expected to take: stage 1 needs some six minutes for one of all of MNIST."""

NUMPY_STAGE, PYTORCH = "stage2_numpy", "pytorch"


@dataclass(frozen=True)
class Recipe:
    """The training that every contender does. target: the test accuracy, in [0, 1], whose time is asked for.

    model: the name of a known network, which has no size `hidden`; "" for one of dense layers
    """

    hidden: int
    batch: int
    learning_rate: float
    momentum: float
    schedule: str
    epochs: int
    target: float
    dtype: str
    seed: int = 0
    model: str = ""

    def case(self, data: Dataset) -> Case:
        """The network and batch for these images."""
        if self.model:
            return Case((data.train.x.shape[1], data.classes), self.batch, self.dtype, self.model)
        return Case((data.train.x.shape[1], self.hidden, data.classes), self.batch, self.dtype)

    def settings(self) -> TrainingSettings:
        """The settings of the training loop."""
        return TrainingSettings(self.epochs, self.batch, self.seed, schedule=Schedule(self.schedule))

    def rates(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate after so many steps."""
        return learning_rate_at(self.learning_rate, Schedule(self.schedule), step, steps_per_epoch, self.epochs)


RECIPES = {
    "mnist": Recipe(128, 64, 0.2, 0.0, "cosine", 8, 0.97, "float32"),
    "mnist-subset": Recipe(32, 32, 0.05, 0.9, "cosine", 5, 0.90, "float64"),
}
"""By the name of the images. That of the subset is the one of `groundup race --epochs 5`: the first stage can follow it."""


MODEL_RECIPES = {
    "lenet5": Recipe(0, 32, 0.05, 0.9, "cosine", 3, 0.95, "float32", model="lenet5"),
    "fashion_cnn": Recipe(0, 32, 0.02, 0.9, "cosine", 2, 0.95, "float32", model="fashion_cnn"),
    "residual_cnn": Recipe(0, 32, 0.05, 0.9, "cosine", 2, 0.95, "float32", model="residual_cnn"),
}
"""Of known networks on the bundled images. The recipes of `groundup train --model` take minutes to hours."""


def training_rows(
    stages: Sequence[Stage],
    data: Dataset,
    *,
    recipe: Recipe | None = None,
    epochs_of: Mapping[str, int] | None = None,
    epoch_limit: float = EPOCH_LIMIT,
    curve: bool = True,
    threads: int | None = None,
    torch: Any | None = None,
) -> Iterator[BenchRow | Curve]:
    """Train every stage, and PyTorch: an "epoch" row of each, a "target" row, and a Curve.

    recipe: None for that of RECIPES.
    epochs_of: stage or "pytorch" -> how many epochs of the recipe's it is to do, whose schedule stays that of them all.
        Who does not do them all has an epoch row alone, and who does none has no row.
    epoch_limit: seconds; who is expected to take longer for an epoch is skipped, with that reason.
    curve: whether there are curves. threads: as in `ladder_rows`. torch: the module; None leaves it out.
    The epoch's seconds are the median over the epochs, its accuracy is that after the first.
    Raises ValueError for images that no recipe is named after, where none is given.
    """
    if recipe is None and data.name not in RECIPES:
        raise ValueError(f"training_rows: no recipe for {data.name!r}; give one, or one of {', '.join(RECIPES)}")
    recipe = recipe or RECIPES[data.name]
    threads = threads or usable_cores()
    run = _Run(recipe, data, threads, {stage.name for stage in stages if is_emulated(stage.name)})
    contenders: dict[str, Iterator[Trained]] = {}
    wanted = {name: min(count, recipe.epochs) for name, count in (epochs_of or {}).items()}
    for stage in stages:
        if wanted.get(stage.name) == 0:
            continue
        expected = _expected_seconds(stage, recipe, data)
        if expected > epoch_limit:
            reason = f"an epoch would take about {expected:.0f} s; the limit is {epoch_limit:g} s"
            yield run.epoch_row(stage.name, skipped=reason)
        else:
            contenders[stage.name] = _epochs(stage, recipe, data)
    if torch is not None:
        start = start_parameters(run.case.network, recipe.dtype, recipe.seed)
        settings: dict[str, Any] = {"rates": recipe.rates, "momentum": recipe.momentum, "seed": recipe.seed}
        settings["model"] = recipe.model
        next(pytorch.training(torch, start, _first(data, recipe), batch_size=recipe.batch, **settings))
        contenders[PYTORCH] = pytorch.training(torch, start, data, batch_size=recipe.batch, **settings)
    done: dict[str, list[Trained]] = {name: [] for name in contenders}
    for number in range(recipe.epochs):
        for name, epochs in contenders.items():
            if number < wanted.get(name, recipe.epochs):
                sleep(REST if run.threads_of(name) > 1 else 0.0)
                done[name].append(next(epochs))
    yield from run.rows({name: epochs for name, epochs in done.items() if epochs}, curve)


@dataclass(frozen=True)
class _Run:
    """What the rows of one training have in common."""

    recipe: Recipe
    data: Dataset
    threads: int
    emulated: set[str]

    @property
    def case(self) -> Case:
        return self.recipe.case(self.data)

    @property
    def _network(self) -> str:
        """'784-128-10' or 'lenet5'."""
        return self.case.model or "-".join(map(str, self.case.layer_sizes))

    def threads_of(self, name: str) -> int:
        return 1 if name == "stage1_pure_python" else self.threads

    def rows(self, done: Mapping[str, Sequence[Trained]], curve: bool) -> Iterator[BenchRow | Curve]:
        """The rows and curves of all contenders, grouped by kind."""
        comparable = [name for name in done if name not in self.emulated]
        reference = next((name for name in (NUMPY_STAGE, *comparable) if name in comparable), "")
        times = {name: summarise([epoch.seconds for epoch in epochs]) for name, epochs in done.items()}
        for name, epochs in done.items():
            yield self.epoch_row(name, times, reference, epochs[0].accuracy)
        whole = {name: epochs for name, epochs in done.items() if len(epochs) == self.recipe.epochs}
        reached = {name: seconds for name, epochs in whole.items() if (seconds := self._until_target(epochs))}
        targets = {name: summarise([seconds]) for name, seconds in reached.items()}
        for name, epochs in whole.items():
            yield self._target_row(name, epochs, targets, reference)
        if curve:
            yield from (self._curve(name, epochs) for name, epochs in whole.items())

    def epoch_row(
        self,
        name: str,
        times: Mapping[str, Measurement] | None = None,
        reference: str = "",
        accuracy: float | None = None,
        skipped: str | None = None,
    ) -> BenchRow:
        case, samples = self.case, len(self.data.train)
        return BenchRow(
            "epoch",
            name,
            f"{case.name}, {self.data.name}",
            case.dtype,
            tuple(case.layer_sizes),
            case.flops * samples // case.batch,
            (times or {}).get(name),
            skipped=skipped,
            samples=samples,
            accuracy=accuracy,
            **self._beside(name, "the epoch of", times or {}, reference),
        )

    def _target_row(
        self, name: str, epochs: Sequence[Trained], times: Mapping[str, Measurement], reference: str
    ) -> BenchRow:
        case, target = self.case, self.recipe.target
        best = max(epoch.accuracy for epoch in epochs)
        return BenchRow(
            "target",
            name,
            f"{100 * target:g} % on {self.data.name}, {self._network}",
            case.dtype,
            tuple(case.layer_sizes),
            measurement=times.get(name),
            skipped=None if name in times else f"{100 * best:.2f} % at best in {len(epochs)} epochs",
            accuracy=target,
            **self._beside(name, "the same of", times, reference),
        )

    def _beside(self, name: str, what: str, times: Mapping[str, Measurement], reference: str) -> dict[str, Any]:
        """The opponent that the time is compared with, and the ratio; none where the kernels are emulated."""
        common = {"threads": self.threads_of(name), "emulated": name in self.emulated}
        if name in self.emulated:
            return common | {"reference": gpu.NO_REFERENCE}
        if name not in times or reference not in times:
            return common
        return common | {
            "reference": f"{what} {reference}",
            "ratio": times[name].median / times[reference].median,
            "against": times_as_fast(times, name, {each: each for each in (NUMPY_STAGE, PYTORCH)}),
        }

    def _until_target(self, epochs: Sequence[Trained]) -> float | None:
        """Seconds of training until the end of the first epoch that reaches the target; None where none does."""
        sums = itertools.accumulate(epoch.seconds for epoch in epochs)
        pairs = zip(sums, epochs, strict=True)
        return next((seconds for seconds, epoch in pairs if epoch.accuracy >= self.recipe.target), None)

    def _curve(self, name: str, epochs: Sequence[Trained]) -> Curve:
        return Curve(
            name,
            self._network,
            self.data.name,
            list(range(1, len(epochs) + 1)),
            [epoch.loss for epoch in epochs],
            [epoch.accuracy for epoch in epochs],
            list(itertools.accumulate(epoch.seconds for epoch in epochs)),
            self.threads_of(name),
            name in self.emulated,
        )


def _epochs(stage: Stage, recipe: Recipe, data: Dataset) -> Iterator[Trained]:
    """The epochs of `shared.training.loop.train`, one at a time; other contenders train between them."""
    made = stage.network.Network(recipe.case(data).network, seed=recipe.seed, dtype=recipe.dtype)
    network = gpu.in_precision(made, "")
    optimizer = stage.optimizers.SGD(recipe.learning_rate, momentum=recipe.momentum)
    runner = EpochRunner(stage, network, optimizer, data.train, recipe.settings())
    for epoch in range(recipe.epochs):
        position = Position(epoch=epoch)
        for _ in runner.rest_of_epoch(position):
            pass
        _, accuracy, _ = evaluate(stage, network, data.test)
        yield Trained(position.seconds, position.loss_sum / len(data.train), accuracy)


def _expected_seconds(stage: Stage, recipe: Recipe, data: Dataset) -> float:
    """About how long an epoch takes, from a few steps, which also warm the stage up."""
    some = _first(data, recipe)
    *_, last = itertools.islice(_epochs(stage, recipe, some), 2)
    return last.seconds / math.ceil(len(some.train) / recipe.batch) * math.ceil(len(data.train) / recipe.batch)


def _first(data: Dataset, recipe: Recipe) -> Dataset:
    """The first few batches, and one test image."""
    count = WARM_UP_BATCHES * recipe.batch + len(data.train) % recipe.batch  # the last batch as short as in an epoch
    train, test = Split(data.train.x[:count], data.train.y[:count]), Split(data.test.x[:1], data.test.y[:1])
    return Dataset(data.name, train, test, data.classes)
