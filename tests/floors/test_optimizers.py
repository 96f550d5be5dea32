"""Optimizers: what they change, and a state that can be saved, loaded and carried between stages.

That their steps are PyTorch's is tested in test_oracle, what they refuse in test_same_errors.
"""

import math
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage, load_stage
from tests.stages import STAGE_PARAMS

CASES: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "plain SGD": ("SGD", {"learning_rate": 0.1}, set()),
    "momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}, {"velocity"}),
    "nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {"velocity"}),
    "RMSProp": ("RMSProp", {}, {"square_average"}),
    "Adam": ("Adam", {}, {"first_moment", "second_moment"}),
}


def make(stage: Stage, case: str) -> Any:
    name, arguments, _ = CASES[case]
    return getattr(stage.optimizers, name)(**arguments)


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.array(stage.arrays.to_host(array))


def numbers(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(3, 2)), rng.normal(size=2)]


def arrays(stage: Stage, seed: int) -> list[Any]:
    return [stage.arrays.asarray(values, "float64") for values in numbers(seed)]


def steps(stage: Stage, optimizer: Any, parameters: list[Any], seeds: range) -> list[np.ndarray]:
    """Walk the parameters, one step against each seed's gradients; where they end."""
    for seed in seeds:
        optimizer.step(parameters, arrays(stage, seed))
    return [host(stage, p) for p in parameters]


@pytest.mark.parametrize("case", CASES)
def test_parameters_change_in_place_and_gradients_do_not(stage: Stage, case: str) -> None:
    parameters, gradients = arrays(stage, 0), arrays(stage, 1)
    same = list(parameters)
    make(stage, case).step(parameters, gradients)
    for parameter, object_before, start in zip(parameters, same, numbers(0), strict=True):
        assert parameter is object_before
        assert not np.array_equal(host(stage, parameter), start)
    for gradient, before in zip(gradients, numbers(1), strict=True):
        assert np.array_equal(host(stage, gradient), before)


@pytest.mark.parametrize("case", CASES)
def test_the_learning_rate_may_be_set_between_steps(stage: Stage, case: str) -> None:
    optimizer, parameters = make(stage, case), arrays(stage, 0)
    optimizer.learning_rate = 0.0
    for end, start in zip(steps(stage, optimizer, parameters, range(1, 3)), numbers(0), strict=True):
        assert np.array_equal(end, start)
    optimizer.learning_rate = 0.5
    optimizer.step(parameters, arrays(stage, 3))
    assert not np.array_equal(host(stage, parameters[0]), numbers(0)[0])


def test_the_first_adam_step_is_the_learning_rate_whatever_the_size_of_the_gradient(stage: Stage) -> None:
    for size in (1e-3, 1e3):
        parameters = [stage.arrays.asarray([1.0, 1.0], "float64")]
        stage.optimizers.Adam(0.01, epsilon=0.0).step(parameters, [stage.arrays.asarray([size, -size], "float64")])
        np.testing.assert_allclose(host(stage, parameters[0]), [0.99, 1.01], rtol=1e-12)


@pytest.mark.parametrize(("moment", "expected"), [(math.nan, math.nan), (0.0, math.nan), (1.0, -math.inf)])
def test_a_moment_divided_by_0_is_what_ieee_arithmetic_makes_of_it(
    stage: Stage, moment: float, expected: float
) -> None:
    optimizer = stage.optimizers.Adam(epsilon=0.0)
    parameters, gradients, moments, squares = (
        [stage.arrays.asarray([value], "float64")] for value in (1.0, 0.0, moment, 0.0)
    )
    optimizer.load_state({"steps": 1, "buffers": {"first_moment": moments, "second_moment": squares}})
    with np.errstate(divide="ignore", invalid="ignore"):
        optimizer.step(parameters, gradients)
    np.testing.assert_array_equal(host(stage, parameters[0]), [expected])


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][2]])
def test_an_optimizer_is_refused_another_networks_parameters(stage: Stage, case: str) -> None:
    optimizer = make(stage, case)
    optimizer.step(arrays(stage, 0), arrays(stage, 1))
    other = [stage.arrays.asarray(np.ones((4, 4)), "float64")]
    with pytest.raises(ValueError, match="1 parameters but 2 arrays in the optimizer's"):
        optimizer.step(other, other)


@pytest.mark.parametrize("case", CASES)
def test_state_counts_steps_and_names_one_buffer_for_each_parameter(stage: Stage, case: str) -> None:
    optimizer = make(stage, case)
    assert optimizer.state() == {"steps": 0, "buffers": {}}
    steps(stage, optimizer, arrays(stage, 0), range(1, 4))
    state = optimizer.state()
    assert state["steps"] == 3
    assert set(state["buffers"]) == CASES[case][2]
    for buffers in state["buffers"].values():
        assert [np.shape(host(stage, buffer)) for buffer in buffers] == [(3, 2), (2,)]


@pytest.mark.parametrize("case", CASES)
def test_a_saved_state_does_not_move_with_later_steps(stage: Stage, case: str) -> None:
    optimizer, parameters = make(stage, case), arrays(stage, 0)
    optimizer.step(parameters, arrays(stage, 1))
    state = optimizer.state()
    kept = {name: [host(stage, b) for b in buffers] for name, buffers in state["buffers"].items()}
    optimizer.step(parameters, arrays(stage, 2))
    for name, buffers in kept.items():
        for now, before in zip(state["buffers"][name], buffers, strict=True):
            assert np.array_equal(host(stage, now), before)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("writer_name", STAGE_PARAMS)
def test_a_state_continues_on_another_stage(stage: Stage, writer_name: str, case: str) -> None:
    writer = load_stage(writer_name)
    straight = steps(writer, make(writer, case), arrays(writer, 0), range(1, 7))

    first, parameters = make(writer, case), arrays(writer, 0)
    middle = steps(writer, first, parameters, range(1, 4))
    second = make(stage, case)
    second.load_state(first.state())
    ends = steps(stage, second, [stage.arrays.asarray(p, "float64") for p in middle], range(4, 7))
    rtol, atol = (0, 0) if writer_name == stage.name else (1e-12, 1e-14)
    for end, expected in zip(ends, straight, strict=True):
        np.testing.assert_allclose(end, expected, rtol=rtol, atol=atol)


def test_a_state_of_steps_without_buffers_is_not_for_an_optimizer_that_has_some(stage: Stage) -> None:
    plain = stage.optimizers.SGD(0.1)
    parameters, gradients = ([stage.arrays.asarray(values)] for values in ([[1.0, 2.0]], [[0.5, 0.5]]))
    plain.step(parameters, gradients)
    for other in (stage.optimizers.Adam(0.1), stage.optimizers.RMSProp(0.1), stage.optimizers.SGD(0.1, momentum=0.9)):
        with pytest.raises(ValueError, match=r"load_state: expected buffers .*, got \[\]: this state is another"):
            other.load_state(plain.state())
        other.load_state({"steps": 0, "buffers": {}})  # before the first step there are none
