"""Every function of every room has an example, with which all stages agree."""

from __future__ import annotations

import numpy as np
import pytest

from groundup.studio.floors import source
from groundup.studio.floors.rooms import FUNCTIONS, LADDERS
from shared.checks.one_function import called, example
from shared.contract import STAGES, load_stage
from tests.stages import USABLE_STAGES
from tests.wide import wide

NAMES = [(room, name) for room, names in FUNCTIONS.items() for name in names]


@pytest.mark.parametrize(
    "stage", [pytest.param(each, marks=wide if each == STAGES[3] else ()) for each in USABLE_STAGES]
)
@pytest.mark.parametrize(("room", "name"), NAMES)
def test_stages_agree_on_every_function(room: str, name: str, stage: str) -> None:
    for rung in (source.ladder(stage, LADDERS[name][0]) if name in LADDERS else {}) or [""]:
        made = called(load_stage(stage), example(room, name, seed=2), rung)
        assert made.results, rung
        assert made.seconds > 0
        for result in made.results:
            assert np.isfinite(result.values).all()
            assert result.agrees, (rung, result.name)
            assert result.apart <= result.allowed


def test_an_example_can_be_computed_by_hand() -> None:
    shown = example("matmul", "matmul", seed=5)
    a, b = shown.inputs["a"], shown.inputs["b"]
    assert (np.round(a, 1) == a).all()
    (result,) = called(load_stage("numpy"), shown).results
    np.testing.assert_allclose(result.values, a @ b)
    assert (example("matmul", "matmul", seed=5).inputs["a"] == a).all()
    assert (example("matmul", "matmul", seed=6).inputs["a"] != a).any()


def test_a_step_gives_the_loss_and_every_parameter() -> None:
    made = called(load_stage("numpy"), example("network", "Network.train_step", seed=0))
    assert [result.name for result in made.results] == ["loss", "W1", "b1", "W2", "b2"]
    given = example("network", "Network.train_step", seed=0).inputs
    assert all((result.values != given[result.name]).any() for result in made.results[1:])


def test_a_wrong_number_is_beyond_what_rounding_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = load_stage("numpy")
    right = stage.pooling.max_pool2d_backward
    monkeypatch.setattr(stage.pooling, "max_pool2d_backward", lambda grad, *rest: right(grad, *rest) + 1e-9)
    other = load_stage("stage1_pure_python").pooling
    monkeypatch.setattr(other, "max_pool2d_backward", lambda *given: [[[[0.0] * 4] * 4]])
    (result,) = called(load_stage("stage1_pure_python"), example("pooling", "max_pool2d_backward")).results
    assert result.apart > result.allowed
    assert not result.agrees


def test_a_room_without_examples_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="cellar"):
        example("cellar", "relu")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_never_agrees(monkeypatch: pytest.MonkeyPatch, wrong: float) -> None:
    stage = load_stage("stage1_pure_python")
    right = stage.activations.relu

    def relu(z: list[list[float]]) -> list[list[float]]:
        return [[wrong, *right(z)[0][1:]], *right(z)[1:]]

    monkeypatch.setattr(stage.activations, "relu", relu)
    (result,) = called(stage, example("activations", "relu")).results
    assert not result.agrees


def test_a_result_of_another_shape_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = load_stage("stage1_pure_python")
    monkeypatch.setattr(stage.activations, "relu", lambda z: [[0.0]])
    with pytest.raises(ValueError, match=r"relu: expected a result of shape \(2, 3\), got \(1, 1\)"):
        called(stage, example("activations", "relu"))


@pytest.mark.parametrize("seed", [33, 74, 78])
def test_a_right_step_agrees_where_rounding_would_decide_what_relu_lets_pass(seed: int) -> None:
    """Numbers with one decimal often add up to 0 before relu, and to 1e-17 in another order."""
    made = called(load_stage("stage1_pure_python"), example("network", "Network.train_step", seed))
    assert all(result.agrees for result in made.results)
