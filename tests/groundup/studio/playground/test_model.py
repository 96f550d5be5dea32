"""The playground's training: the same numbers on every stage, in its middle too, and mistakes that are really made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from groundup.studio.playground import model
from groundup.studio.playground.mistakes import LARGE
from groundup.studio.playground.model import Playground
from groundup.studio.playground.settings import OPTIMIZERS, Settings
from shared.contract import STAGES, Stage, StageUnavailable
from tests.stages import USABLE_STAGES

SMALL = Settings(data="spirals", samples=32, layers=(5, 3), batch_size=8, dropout=0.2, seed=4)
"""21 training points, so that the last batch of an epoch is a short one."""


def numbers(playground: Playground) -> list[np.ndarray]:
    """Everything that the next step depends on, but for the position."""
    state = playground.state()
    buffers = [each for name in sorted(state.optimizer["buffers"]) for each in state.optimizer["buffers"][name]]
    return [*state.parameters, *buffers, np.array(state.optimizer["steps"])]


def assert_same(first: Playground, second: Playground) -> None:
    assert first.position == second.position
    for one, other in zip(numbers(first), numbers(second), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def stayed(settings: Settings, steps: int) -> Playground:
    playground = Playground(settings)
    playground.step(steps)
    return playground


def test_a_training_goes_on_from_the_same_state_on_each_floor(stage: Stage) -> None:
    playground = stayed(SMALL, 4)  # in the middle of the second epoch
    assert playground.change(replace(SMALL, stage=stage.name))
    assert playground.stage.name == stage.name
    playground.step(4)
    assert_same(playground, stayed(SMALL, 8))
    assert playground.change(SMALL)
    playground.step(4)
    assert_same(playground, stayed(SMALL, 12))


def test_the_gradients_of_the_last_step_stay_when_the_floor_changes() -> None:
    playground = stayed(replace(SMALL, stage="2"), 3)
    before = playground.gradients()
    playground.change(replace(playground.settings, stage="1"))
    for one, other in zip(playground.gradients(), before, strict=True):
        np.testing.assert_array_equal(one, other)
    playground.step()
    assert all(np.any(one != other) for one, other in zip(playground.gradients(), before, strict=True))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_training_climbs_through_all_floors_with_each_optimizer(optimizer: str) -> None:
    settings = replace(SMALL, optimizer=optimizer, stage="1")
    playground = Playground(settings)
    floors = [name for name in USABLE_STAGES if name != "stage4_numba_cuda" or optimizer == "Adam"]
    for name in floors:
        playground.change(replace(settings, stage=name))
        playground.step(2)
    assert_same(playground, stayed(settings, 2 * len(floors)))


def test_back_at_the_start_the_same_seed_gives_the_same_numbers() -> None:
    playground = stayed(SMALL, 5)
    before = numbers(playground)
    playground.begin()
    assert playground.position.steps == 0
    playground.step(5)
    for one, other in zip(before, numbers(playground), strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_sample_is_seen_once_in_an_epoch_whatever_the_batch_becomes() -> None:
    playground = Playground(SMALL)
    rows = []
    batch = playground._feeder.batch
    for size in (8, 3, 20):
        playground.change(replace(playground.settings, batch_size=size))
        batch = playground._feeder.batch
        playground._feeder.batch = lambda chosen, batch=batch: rows.extend(chosen) or batch(chosen)  # type: ignore[method-assign,func-returns-value,misc]
        playground.step()
    assert sorted(rows) == list(range(21))
    assert (playground.position.epoch, playground.position.used, playground.position.steps) == (1, 0, 3)


def moved(settings: Settings) -> list[np.ndarray]:
    """By how much the first step changes each parameter."""
    playground = Playground(settings)
    before = playground.state().parameters
    playground.step()
    return [after - first for after, first in zip(playground.state().parameters, before, strict=True)]


@pytest.mark.parametrize(("mistake", "factor"), [("wrong_sign", -1), ("missing_mean", 8), ("large_rate", LARGE)])
def test_a_mistake_in_the_step_is_really_made(stage: Stage, mistake: str, factor: float) -> None:
    right = replace(SMALL, optimizer="SGD", learning_rate=0.01, stage=stage.name)
    for wrong, should in zip(moved(replace(right, mistake=mistake)), moved(right), strict=True):
        assert np.abs(should).max() > 0
        np.testing.assert_allclose(wrong, factor * should, rtol=0, atol=1e-12)


def test_neurons_that_start_at_zero_stay_equal() -> None:
    playground = stayed(replace(SMALL, mistake="zero_initialisation", activation="sigmoid", dropout=0.0), 20)
    weights = playground.state().parameters[0]
    assert np.abs(weights).max() > 0
    np.testing.assert_allclose(weights, weights[:, :1].repeat(weights.shape[1], axis=1), rtol=0, atol=1e-12)


def test_the_gradients_are_those_of_the_last_batch(stage: Stage) -> None:
    settings = replace(SMALL, stage=stage.name, dropout=0.0)
    playground = Playground(settings)
    order = np.random.default_rng([settings.seed, 0]).permutation(21)[:8]
    x, y = playground.data.train.x[order].astype("float64"), playground.data.train.y[order]
    expected = playground.network.gradients(stage.arrays.asarray(x, "float64"), y)
    playground.step()
    for got, each in zip(playground.gradients(), expected, strict=True):
        np.testing.assert_allclose(got, np.asarray(stage.arrays.to_host(each)), rtol=0, atol=1e-14)


def test_what_begins_a_new_training_and_what_does_not() -> None:
    playground = stayed(SMALL, 3)
    for change in ({"learning_rate": 0.5}, {"batch_size": 3}, {"dropout": 0.0}, {"mistake": "wrong_sign"}):
        assert playground.change(replace(playground.settings, **change)), change
        assert playground.position.steps == 3
    for change in ({"layers": (4,)}, {"noise": 0.2}, {"seed": 5}, {"mistake": "zero_initialisation"}):
        playground.step()
        assert not playground.change(replace(playground.settings, **change)), change
        assert playground.position.steps == 0


def test_a_floor_that_cannot_be_used_leaves_the_training_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(name: str) -> Stage:
        raise StageUnavailable("there is no compiler")

    playground = stayed(SMALL, 3)
    before, load = numbers(playground), model.load_stage
    monkeypatch.setattr(model, "load_stage", unavailable)
    with pytest.raises(StageUnavailable, match="there is no compiler"):
        playground.change(replace(SMALL, stage=STAGES[2]))
    monkeypatch.setattr(model, "load_stage", load)
    for one, other in zip(before, numbers(playground), strict=True):
        np.testing.assert_array_equal(one, other)
    playground.step()
    assert_same(playground, stayed(SMALL, 4))


@pytest.mark.parametrize("name", [name for name in USABLE_STAGES if name != "stage4_numba_cuda"])
def test_numbers_that_overflow_do_not_end_a_training(name: str) -> None:
    diverging = Settings(
        activation="identity", loss="mean_squared_error", optimizer="SGD", learning_rate=10.0, mistake="large_rate"
    )
    settings = replace(diverging, stage=name, samples=40)
    playground = stayed(settings, 60)
    assert not np.isfinite(playground.state().parameters[0]).all()
