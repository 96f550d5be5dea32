"""The gradient check: right gradients pass on every stage, wrong ones are named, and kinks are skipped and counted."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from shared import contract
from shared.architectures import mlp
from shared.checks.gradients import (
    LIMIT,
    MOST_SKIPPED,
    SIZES,
    STEP,
    GradientCheck,
    check_gradients,
    relative_error,
    slope,
)
from tests.shared.stage_params import STAGE_4_WIDE


@pytest.mark.parametrize("loss", contract.LOSSES)
@pytest.mark.parametrize("activation", contract.ACTIVATIONS)
@pytest.mark.parametrize("name", STAGE_4_WIDE)
def test_the_gradient_is_the_slope_of_the_loss(name: str, activation: str, loss: str) -> None:
    found = check_gradients(contract.load_stage(name), mlp(SIZES, activation), loss)
    assert found.ok, str(found)
    assert 0 < found.worst <= LIMIT
    assert found.skipped_share <= MOST_SKIPPED
    assert found.checked + found.skipped == 4 * 5 + 5 + 5 * 3 + 3 + 3 * 3 + 3


@pytest.mark.parametrize(
    ("room", "name", "activation", "loss"),
    [
        ("activations", "relu_backward", "relu", "hinge"),
        ("activations", "softmax_backward", "softmax", "mean_squared_error"),
        ("losses", "hinge_backward", "tanh", "hinge"),
        ("losses", "softmax_cross_entropy_backward", "sigmoid", "softmax_cross_entropy"),
    ],
)
def test_a_gradient_one_millionth_off_is_caught(
    monkeypatch: pytest.MonkeyPatch, room: str, name: str, activation: str, loss: str
) -> None:
    stage = contract.load_stage("stage2_numpy")
    real = getattr(getattr(stage, room), name)

    def wrong(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        result *= 1.000001
        return result

    monkeypatch.setattr(getattr(stage, room), name, wrong)
    found = check_gradients(stage, mlp(SIZES, activation), loss)
    assert not found.ok
    assert LIMIT < found.worst <= 1e-5


def test_a_wrong_entry_is_named_with_parameter_index_and_both_values(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = contract.load_stage("stage2_numpy")
    real = stage.network.Network.gradients

    def wrong(self: Any, *args: Any, **kwargs: Any) -> Any:
        gradients = real(self, *args, **kwargs)
        gradients[2][3, 1] += 0.5
        return gradients

    monkeypatch.setattr(stage.network.Network, "gradients", wrong)
    found = check_gradients(stage, mlp(SIZES, "tanh"), "softmax_cross_entropy")
    assert not found.ok
    assert (found.parameter, found.index) == ("layer 3, Dense: weights", (3, 1))
    assert found.analytic - found.numeric == pytest.approx(0.5, abs=1e-8)
    assert str(found).startswith("tanh, softmax_cross_entropy: d loss / d layer 3, Dense: weights[3, 1] is ")


def test_a_gradient_of_nan_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = contract.load_stage("stage2_numpy")
    real = stage.network.Network.gradients

    def wrong(self: Any, *args: Any, **kwargs: Any) -> Any:
        gradients = real(self, *args, **kwargs)
        gradients[1][2] = math.nan
        return gradients

    monkeypatch.setattr(stage.network.Network, "gradients", wrong)
    found = check_gradients(stage, mlp(SIZES), "mean_squared_error")
    assert not found.ok
    assert (found.parameter, found.index, found.worst) == ("layer 1, Dense: bias", (2,), math.inf)


def test_a_gradient_of_another_shape_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = contract.load_stage("stage2_numpy")
    real = stage.network.Network.gradients
    monkeypatch.setattr(stage.network.Network, "gradients", lambda self, *args: [g.T for g in real(self, *args)])
    with pytest.raises(ValueError, match=r"gradients: number 0 is shaped \(5, 4\), expected \(4, 5\)"):
        check_gradients(stage, mlp(SIZES), "mean_squared_error")


@pytest.mark.parametrize(
    ("function", "derivative"),
    [(math.exp, math.exp), (math.sin, math.cos), (lambda p: p**3, lambda p: 3 * p**2), (lambda p: 4.0, lambda p: 0.0)],
)
@pytest.mark.parametrize("p", [-1.3, 0.0, 0.7, 2.0])
def test_smooth_functions_are_measured_and_not_skipped(
    function: Callable[[float], float], derivative: Callable[[float], float], p: float
) -> None:
    found = slope(function, p, function(p))
    assert found == pytest.approx(derivative(p), abs=LIMIT)


@pytest.mark.parametrize(
    ("function", "p", "expected", "error"),
    [
        (lambda p: p * p, -1e8, -2e8, 1.0),  # the step grows with p
        (lambda p: math.sin(p) - 1e6, 0.2, math.cos(0.2), 1e-4),  # a large loss is rounded more
        (lambda p: math.sin(p) - 1e6, 0.9, math.cos(0.9), 1e-4),
        (lambda p: -1e6 * (p - 0.7), 0.7, -1e6, 1e-3),  # and so is a steep one
    ],
)
def test_large_parameters_losses_and_slopes_are_measured_beside_their_size(
    function: Callable[[float], float], p: float, expected: float, error: float
) -> None:
    assert slope(function, p, function(p)) == pytest.approx(expected, rel=0.0, abs=error)


@pytest.mark.parametrize("jump", [1.0, 1e-3, 1e-5])
@pytest.mark.parametrize("where", [0.0, 0.1, 1 / 3, 0.5, 0.7, 0.9, -0.2, -1 / 3, -0.6, -0.9])
def test_a_kink_anywhere_within_the_step_is_seen(where: float, jump: float) -> None:
    kink = 0.5 + where * STEP

    def bent(p: float) -> float:
        return math.sin(p) + jump * max(0.0, p - kink)

    assert slope(bent, 0.5, bent(0.5)) is None


@pytest.mark.parametrize("where", [-50.0, -1.01, 1.01, 50.0])
def test_a_kink_outside_the_step_does_no_harm(where: float) -> None:
    kink = 0.5 + where * STEP

    def bent(p: float) -> float:
        return max(0.0, p - kink)

    assert slope(bent, 0.5, bent(0.5)) == pytest.approx(float(kink < 0.5), abs=LIMIT)


@pytest.mark.parametrize(
    ("worst", "skipped", "ok"),
    [(LIMIT, 5, True), (1.001 * LIMIT, 0, False), (0.0, 6, False), (math.inf, 0, False)],
)
def test_a_check_allows_the_limit_and_a_twentieth_of_the_parameters_on_kinks(
    worst: float, skipped: int, ok: bool
) -> None:
    check = GradientCheck("stage2_numpy", "relu", "hinge", 100 - skipped, skipped, worst, "W1", (0, 0), 0.0, 0.0)
    assert check.skipped_share == skipped / 100
    assert check.ok is ok


def test_the_relative_error_is_beside_the_largest_of_three() -> None:
    assert relative_error(2.0, 1.0, 0.5) == 0.5
    assert relative_error(1.0, 2.0, -4.0) == 0.25
    assert relative_error(-2.0, -1.0, 0.5) == 0.5
    assert relative_error(1.0, -2.0, 0.5) == 1.5
    assert relative_error(1.0, -1.0, 0.0) == 2.0
    assert relative_error(1e-12, 0.0, 4.0) == 2.5e-13
    assert relative_error(0.0, 0.0, 0.0) == 0.0
    assert math.isnan(relative_error(math.nan, 1.0, 1.0))
