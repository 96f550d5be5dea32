"""shared.bench.kinds.training: the same training for everyone, its time beside the accuracy that it bought."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from groundup.race import Settings
from shared import contract
from shared.bench.kinds import training
from shared.bench.kinds.training import Recipe
from shared.bench.measuring.rows import BenchRow, Curve
from shared.data.datasets import Dataset, Split
from shared.training.loop import train
from shared.training.schedules import Schedule
from shared.training.settings import QUIET, TrainingSettings
from tests.stages import USABLE_STAGES
from tests.wide import WIDE

SMALL = Recipe(4, 16, 0.1, 0.9, "cosine", 3, 0.6, "float64")


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "REST", 0.0)


def small_data() -> Dataset:
    """Three classes, of which the smallest of networks has learnt something after two epochs."""
    random = np.random.default_rng(0)
    splits = []
    for count in (150, 40):
        y = random.integers(0, 3, count)
        x = (random.random((count, 6)) + np.eye(3)[y].repeat(2, axis=1)).astype(np.float32)
        splits.append(Split(x, y))
    return Dataset("blobs", *splits, 3)


def found(stages: list[contract.Stage], **settings: Any) -> tuple[dict[tuple[str, str], BenchRow], list[Curve]]:
    """Rows by (kind, stage), and curves."""
    settings = {"recipe": SMALL, "threads": 1} | settings
    things = list(training.training_rows(stages, settings.pop("data", small_data()), **settings))
    rows = {(thing.kind, thing.stage): thing for thing in things if isinstance(thing, BenchRow)}
    return rows, [thing for thing in things if isinstance(thing, Curve)]


def test_every_stage_learns_the_same() -> None:
    names = [name for name in USABLE_STAGES if WIDE or name != "stage4_numba_cuda"]
    stages = [contract.load_stage(name) for name in names]
    rows, curves = found(stages)
    assert list(rows) == [(kind, name) for kind in ("epoch", "target") for name in names]
    assert [curve.stage for curve in curves] == names
    for curve in curves:
        assert curve.accuracy == curves[0].accuracy
        np.testing.assert_allclose(curve.loss, curves[0].loss, rtol=1e-10)
        assert (curve.network, curve.dataset, list(curve.epochs)) == ("6-4-3", "blobs", [1, 2, 3])
        assert sorted(curve.seconds) == list(curve.seconds)
    for name in names:
        row, emulated = rows["epoch", name], contract.is_emulated(name)
        assert (row.name, row.dtype, row.shape, row.samples) == ("6-4-3, batch 16, blobs", "float64", (6, 4, 3), 150)
        assert row.measurement is not None
        assert row.measurement.samples == 3
        assert row.accuracy == curves[0].accuracy[0]
        assert row.emulated is emulated
        assert (row.ratio is None) is emulated
        assert row.reference == ("nothing: emulated on the CPU" if emulated else "the epoch of stage2_numpy")
        assert rows["target", name].name == "60 % on blobs, 6-4-3"
    assert rows["epoch", "stage2_numpy"].ratio == 1


def test_the_curve_is_that_of_train() -> None:
    stage, data = contract.load_stage("2"), small_data()
    network = stage.network.Network([6, 4, 3], seed=0, dtype="float64")
    optimizer = stage.optimizers.SGD(0.1, momentum=0.9)
    result = train(
        *(stage, network, optimizer, data.train, TrainingSettings(3, 16, schedule=Schedule("cosine"))),
        test_data=data.test,
        hooks=QUIET,
    )
    _, (curve,) = found([stage])
    assert list(curve.loss) == [record.train_loss for record in result.epochs]
    assert list(curve.accuracy) == [record.test_accuracy for record in result.epochs]


def test_the_target_is_the_end_of_the_first_epoch_that_reaches_it() -> None:
    stage = contract.load_stage("2")
    rows, (curve,) = found([stage])
    number = next(i for i, accuracy in enumerate(curve.accuracy) if accuracy >= 0.6)
    assert number == 1
    row = rows["target", stage.name]
    assert (row.seconds, row.accuracy, row.skipped) == (curve.seconds[1], 0.6, None)


def test_a_target_that_nobody_reaches_is_skipped_with_the_best_accuracy() -> None:
    stage = contract.load_stage("2")
    rows, (curve,) = found([stage], recipe=replace(SMALL, target=1.01))
    row = rows["target", stage.name]
    assert (row.measurement, row.ratio) == (None, None)
    assert row.skipped == f"{100 * max(curve.accuracy):.2f} % at best in 3 epochs"


def test_who_does_fewer_epochs_has_an_epoch_row_alone_and_keeps_the_schedule() -> None:
    stages = [contract.load_stage("1"), contract.load_stage("2")]
    rows, curves = found(stages, epochs_of={"stage1_pure_python": 1})
    assert [curve.stage for curve in curves] == ["stage2_numpy"]
    assert ("target", "stage1_pure_python") not in rows
    capped = rows["epoch", "stage1_pure_python"]
    assert capped.measurement is not None
    assert capped.measurement.samples == 1
    assert capped.accuracy == curves[0].accuracy[0]
    assert capped.threads == 1


def test_an_epoch_that_would_take_too_long_is_skipped_with_its_expected_time(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"stage1_pure_python": 361.2, "stage2_numpy": 0.5}
    monkeypatch.setattr(training, "_expected_seconds", lambda stage, recipe, data: expected[stage.name])
    rows, _ = found([contract.load_stage("1"), contract.load_stage("2")], epoch_limit=60.0)
    row = rows["epoch", "stage1_pure_python"]
    assert (row.measurement, row.samples) == (None, 150)
    assert row.skipped == "an epoch would take about 361 s; the limit is 60 s"
    assert rows["epoch", "stage2_numpy"].skipped is None


def test_the_contenders_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    def epochs(stage: contract.Stage, recipe: Recipe, data: Dataset) -> Any:
        for _ in range(recipe.epochs):
            if len(data.train) == 150:
                order.append(stage.number)
            yield training.Trained(0.5 * stage.number, 1.0, 0.5)

    monkeypatch.setattr(training, "_epochs", epochs)
    rows, _ = found([contract.load_stage("1"), contract.load_stage("2")])
    assert order == [1, 2] * 3
    assert rows["epoch", "stage1_pure_python"].ratio == 0.5
    assert rows["epoch", "stage1_pure_python"].against == {"stage2_numpy": 2.0}


def test_the_subsets_recipe_is_that_of_the_race() -> None:
    race, recipe = Settings(), training.RECIPES["mnist-subset"]
    for name in ("hidden", "learning_rate", "momentum", "schedule", "seed", "dtype"):
        assert getattr(recipe, name) == getattr(race, name)
    assert recipe.batch == race.batch_size


def test_images_without_a_recipe_need_one() -> None:
    with pytest.raises(ValueError, match="no recipe for 'blobs'; give one, or one of mnist, mnist-subset"):
        list(training.training_rows([], small_data()))
