"""Small training runs that several test files share, and how two of them are compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shared import contract
from shared.architectures import mlp
from shared.data.datasets import Split
from shared.training.checkpoints import load_checkpoint
from shared.training.loop import TrainingResult, train
from shared.training.metrics import EpochRecord, read_metrics
from shared.training.schedules import Schedule
from shared.training.settings import QUIET, Hooks, Saving, TrainingSettings

RNG = np.random.default_rng(7)
Y = RNG.integers(0, 3, 50)
DATA = Split((RNG.random((50, 4)) + np.eye(3, 4)[Y]).astype(np.float32), Y)
TEST = Split(DATA.x[:20], DATA.y[:20])
FULL = TrainingSettings(epochs=4, batch_size=8, seed=3, validation=0.2, schedule=Schedule("cosine", warmup_epochs=1))
CONSTANT = replace(FULL, schedule=Schedule("constant", warmup_epochs=1))


def make(
    stage: contract.Stage, dtype: str = "float64", seed: int = 1, dropout: float = 0.25, **options: Any
) -> tuple[Any, Any]:
    network = stage.network.Network(mlp([4, 6, 5, 3], "tanh", dropout), seed=seed, dtype=dtype, **options)
    return network, stage.optimizers.Adam(0.02)


def run(
    stage: contract.Stage,
    made: tuple[Any, Any],
    settings: TrainingSettings = FULL,
    folder: Path | None = None,
    hooks: Hooks = QUIET,
    **saving: Any,
) -> TrainingResult:
    """Train what `make` made on DATA; with a folder, save it there with these arguments of `Saving`."""
    return train(
        *(stage, *made, DATA, settings),
        test_data=TEST,
        saving=None if folder is None else Saving(folder, **saving),
        hooks=hooks,
    )


class Died(Exception):
    """What `dying_after` raises."""


def dying_after(steps: int) -> Hooks:
    """Hooks of a run that dies after so many steps."""
    left = iter(range(steps - 1))

    def die(*arguments: object) -> None:
        if next(left, None) is None:
            raise Died

    return Hooks(on_batch=die, progress_bar=False)


def host(stage: contract.Stage, network: Any) -> list[np.ndarray]:
    return [np.array(stage.arrays.to_host(array)) for array in network.parameters]


def timeless(records: list[EpochRecord]) -> list[EpochRecord]:
    """The records without the clock's share."""
    return [replace(record, seconds=0.0, samples_per_second=0.0) for record in records]


def assert_same_run(one: Path, other: Path) -> None:
    for name in ("last.safetensors", "best.safetensors"):
        a, b = load_checkpoint(one / name), load_checkpoint(other / name)
        numbers = ([*each.parameters, *each.running_statistics] for each in (a, b))
        for x, y in zip(*numbers, strict=True):
            np.testing.assert_array_equal(x, y)
        assert a.optimizer_state["steps"] == b.optimizer_state["steps"]
        assert a.optimizer_state["buffers"].keys() == b.optimizer_state["buffers"].keys()
        for buffer, arrays in a.optimizer_state["buffers"].items():
            for x, y in zip(arrays, b.optimizer_state["buffers"][buffer], strict=True):
                np.testing.assert_array_equal(x, y)
    assert timeless(read_metrics(one / "metrics.jsonl")) == timeless(read_metrics(other / "metrics.jsonl"))
