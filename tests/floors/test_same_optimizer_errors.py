"""The same mistake in using an optimizer is answered by the same error in the same words on every floor."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shared.contract import Stage, load_stage
from tests.floors.refusals import assert_refused
from tests.stages import USABLE_STAGES

X = [[1.0, 2.0], [3.0, 4.0]]
WEIGHTS, BIAS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0]
FIRST, SECOND = "first_moment", "second_moment"


def arrays(stage: Stage, *values: Any) -> list[Any]:
    return [stage.arrays.asarray(each, "float64") for each in values]


# ---- an optimizer's state


def moments(first: Any, second: Any = ()) -> dict[str, Any]:
    return {"steps": 1, "buffers": {FIRST: first, SECOND: second}}


BAD_STATES: dict[str, tuple[Any, type[Exception], str]] = {
    "a number": (5, TypeError, "load_state: expected what state() returns, got int"),
    "None": (None, TypeError, "load_state: expected what state() returns, got NoneType"),
    "a list": ([1, 2], TypeError, "load_state: expected what state() returns, got list"),
    "no keys": ({}, ValueError, "load_state: expected the keys steps and buffers, got []"),
    "no buffers": ({"steps": 1}, ValueError, "load_state: expected the keys steps and buffers, got ['steps']"),
    "steps below 0": (
        {"steps": -1, "buffers": {}},
        ValueError,
        "load_state: steps: expected a whole number of at least 0, got -1",
    ),
    "steps as text": (
        {"steps": "3", "buffers": {}},
        ValueError,
        "load_state: steps: expected a whole number of at least 0, got '3'",
    ),
    "a float of steps": (
        {"steps": 3.0, "buffers": {}},
        ValueError,
        "load_state: steps: expected a whole number of at least 0, got 3.0",
    ),
    "NaN steps": (
        {"steps": math.nan, "buffers": {}},
        ValueError,
        "load_state: steps: expected a whole number of at least 0, got nan",
    ),
    "a list of buffers": (
        {"steps": 1, "buffers": []},
        ValueError,
        "load_state: buffers: expected lists of arrays by name, got list",
    ),
    "None for buffers": (
        {"steps": 1, "buffers": None},
        ValueError,
        "load_state: buffers: expected lists of arrays by name, got NoneType",
    ),
    "one name of two": (
        {"steps": 1, "buffers": {FIRST: []}},
        ValueError,
        "load_state: expected buffers ['first_moment', 'second_moment'], got ['first_moment']: "
        "this state is another optimizer's",
    ),
    "an unknown name": (
        {"steps": 1, "buffers": {"velocity": []}},
        ValueError,
        "load_state: expected buffers ['first_moment', 'second_moment'], got ['velocity']: "
        "this state is another optimizer's",
    ),
    "names of two types": (
        {"steps": 1, "buffers": {1: [], FIRST: []}},
        ValueError,
        "load_state: expected buffers ['first_moment', 'second_moment'], got ['1', 'first_moment']: "
        "this state is another optimizer's",
    ),
    "a number for arrays": (moments(5), TypeError, "load_state: first_moment: expected a list of arrays, got int"),
    "None for arrays": (moments(None), TypeError, "load_state: first_moment: expected a list of arrays, got NoneType"),
    "text for arrays": (moments("ab"), TypeError, "load_state: first_moment: expected a list of arrays, got str"),
    "None in an array's place": (
        moments([None]),
        TypeError,
        "load_state: number 0 of first_moment: asarray: expected real numbers",
    ),
    "text in an array": (
        moments([["a"]]),
        TypeError,
        "load_state: number 0 of first_moment: asarray: expected real numbers",
    ),
    "complex numbers": (
        moments([BIAS, np.array([1j])]),
        TypeError,
        "load_state: number 1 of first_moment: asarray: expected real numbers",
    ),
    "ragged rows": (
        moments([], [[[1.0], [1.0, 2.0]]]),
        ValueError,
        "load_state: number 0 of second_moment: asarray: expected rows of equal length",
    ),
    "three dimensions": (
        moments([[[[1.0]]]]),
        ValueError,
        "load_state: number 0 of first_moment: asarray: expected 1, 2 or 4 dimensions",
    ),
    "an empty array": (
        moments([[]]),
        ValueError,
        "load_state: number 0 of first_moment: asarray: expected at least one value",
    ),
}


@pytest.mark.parametrize(("state", "kind", "sentence"), BAD_STATES.values(), ids=BAD_STATES)
def test_what_is_no_state_is_refused_and_the_old_state_stays(
    stage: Stage, state: Any, kind: type[Exception], sentence: str
) -> None:
    optimizer = stage.optimizers.Adam()
    optimizer.step(arrays(stage, WEIGHTS), arrays(stage, WEIGHTS))
    before = optimizer.state()
    assert_refused(stage, lambda _: optimizer.load_state(state), kind, sentence)
    after = optimizer.state()
    assert after["steps"] == 1
    for name in (FIRST, SECOND):
        np.testing.assert_array_equal(after["buffers"][name], before["buffers"][name])


@pytest.mark.parametrize(
    ("buffers", "sentence"),
    [
        ([[[1.0, 2.0]], BIAS], "step: parameter 0 is (3, 2) but number 0 of the optimizer's first_moment is (1, 2)"),
        ([WEIGHTS], "step: there are 2 parameters but 1 arrays in the optimizer's first_moment"),
        ([], "step: there are 2 parameters but 0 arrays in the optimizer's first_moment"),
    ],
)
def test_a_state_of_other_shapes_is_refused_by_the_first_step(stage: Stage, buffers: Any, sentence: str) -> None:
    optimizer = stage.optimizers.Adam()
    optimizer.load_state(moments(buffers, buffers))
    parameters = arrays(stage, WEIGHTS, BIAS)
    assert_refused(stage, lambda _: optimizer.step(parameters, arrays(stage, WEIGHTS, BIAS)), ValueError, sentence)
    np.testing.assert_array_equal(stage.arrays.to_host(parameters[0]), WEIGHTS)
    assert optimizer.state()["steps"] == 1


@pytest.mark.parametrize("steps", [3, True, np.int64(3), np.array(3)])
def test_any_whole_number_of_steps_is_taken(stage: Stage, steps: Any) -> None:
    optimizer = stage.optimizers.SGD(0.1)
    optimizer.load_state({"steps": steps, "buffers": {}})
    assert optimizer.state() == {"steps": int(steps), "buffers": {}}


def test_what_an_optimizer_remembers_has_one_name(stage: Stage) -> None:
    for optimizer in (stage.optimizers.SGD(0.1), stage.optimizers.RMSProp(), stage.optimizers.Adam()):
        assert type(optimizer._state) is stage.optimizers.OptimizerState


# ---- hyperparameters set after the optimizer was made

AT_LEAST_ZERO = "expected a finite number of at least 0"
FRACTION = "expected a number of at least 0 and below 1"
NO_MOMENTUM = "momentum: was 0 when this SGD was made and is 0.9 now; make a new SGD"

MADE: dict[str, Callable[[Stage], Any]] = {
    "SGD": lambda stage: stage.optimizers.SGD(0.1),
    "momentum": lambda stage: stage.optimizers.SGD(0.1, momentum=0.5),
    "RMSProp": lambda stage: stage.optimizers.RMSProp(),
    "Adam": lambda stage: stage.optimizers.Adam(),
}
BAD_SETTINGS: list[tuple[str, str, Any, type[Exception], str]] = [
    ("SGD", "momentum", 0.9, ValueError, NO_MOMENTUM),
    ("SGD", "momentum", None, TypeError, "momentum: expected a number, got None"),
    ("SGD", "nesterov", True, ValueError, "nesterov: needs a momentum above 0, got momentum 0"),
    ("SGD", "learning_rate", -0.1, ValueError, f"learning_rate: {AT_LEAST_ZERO}, got -0.1"),
    ("SGD", "learning_rate", math.nan, ValueError, f"learning_rate: {AT_LEAST_ZERO}, got nan"),
    ("SGD", "learning_rate", True, TypeError, "learning_rate: expected a number, got True"),
    ("SGD", "learning_rate", [1.0], TypeError, "learning_rate: expected a number, got [1.0]"),
    ("SGD", "weight_decay", "0.1", TypeError, "weight_decay: expected a number, got '0.1'"),
    ("momentum", "momentum", 1.5, ValueError, f"momentum: {FRACTION}, got 1.5"),
    ("momentum", "momentum", "0.9", TypeError, "momentum: expected a number, got '0.9'"),
    ("RMSProp", "alpha", 2.0, ValueError, f"alpha: {FRACTION}, got 2.0"),
    ("RMSProp", "alpha", None, TypeError, "alpha: expected a number, got None"),
    ("RMSProp", "epsilon", -1.0, ValueError, f"epsilon: {AT_LEAST_ZERO}, got -1.0"),
    ("Adam", "beta1", 1.0, ValueError, f"beta1: {FRACTION}, got 1.0"),
    ("Adam", "beta2", "0.9", TypeError, "beta2: expected a number, got '0.9'"),
    ("Adam", "epsilon", math.inf, ValueError, f"epsilon: {AT_LEAST_ZERO}, got inf"),
]


@pytest.mark.parametrize(("made", "name", "value", "kind", "sentence"), BAD_SETTINGS)
def test_a_hyperparameter_is_checked_when_it_is_set(
    stage: Stage, made: str, name: str, value: Any, kind: type[Exception], sentence: str
) -> None:
    optimizer, model = MADE[made](stage), stage.network.Network([2, 3, 2], seed=1, dtype="float64")
    before = getattr(optimizer, name)
    for _ in range(2):
        assert_refused(stage, lambda _: setattr(optimizer, name, value), kind, sentence)
        assert getattr(optimizer, name) == before
        model.train_step(X, [0, 1], optimizer)  # the optimizer is still as it was


@pytest.mark.parametrize(
    ("made", "settings"),
    [
        ("momentum", {"momentum": np.float32(0.25), "nesterov": True}),
        ("SGD", {"learning_rate": np.float32(0.5), "weight_decay": 1}),
        ("RMSProp", {"alpha": np.float64(0.5), "epsilon": 1e-3}),
        ("Adam", {"beta1": 0, "beta2": np.float32(0.5)}),
    ],
)
def test_a_hyperparameter_set_between_steps_counts_from_the_next_step_on(
    stage: Stage, made: str, settings: dict[str, Any]
) -> None:
    optimizer = MADE[made](stage)
    parameters, gradients = arrays(stage, WEIGHTS, BIAS), arrays(stage, [[0.1, 0.2]] * 3, [0.5, -0.5])
    optimizer.step(parameters, gradients)
    same = MADE[made](stage)  # given the values before its first step, and the state
    same.load_state(optimizer.state())
    copies = arrays(stage, *(stage.arrays.to_host(p) for p in parameters))
    for name, value in settings.items():
        setattr(optimizer, name, value)
        setattr(same, name, type(getattr(same, name))(value))
    optimizer.step(parameters, gradients)
    same.step(copies, gradients)
    for p, q in zip(parameters, copies, strict=True):
        np.testing.assert_array_equal(stage.arrays.to_host(p), stage.arrays.to_host(q))


def test_velocity_rests_while_momentum_is_zero(stage: Stage) -> None:
    optimizer = stage.optimizers.SGD(1.0, momentum=0.5)
    parameters, gradients = arrays(stage, [8.0]), arrays(stage, [1.0])
    ends = []
    for momentum in (0.5, 0.0, 0.5):
        optimizer.momentum = momentum
        optimizer.step(parameters, gradients)
        ends.append(float(stage.arrays.to_host(parameters[0])[0]))
    assert ends == [7.0, 6.0, 4.5]  # the third velocity is 0.5 * 1 + 1


# ---- a step

BAD_STEPS: dict[str, tuple[Callable[[Stage], tuple[Any, Any]], type[Exception], str]] = {
    "no parameters": (lambda _: (None, []), TypeError, "step: parameters is a NoneType, expected a list of arrays"),
    "no gradients": (lambda _: ([], 5), TypeError, "step: gradients is a int, expected a list of arrays"),
    "an iterator": (
        lambda stage: (arrays(stage, BIAS), iter(arrays(stage, BIAS))),
        TypeError,
        "step: gradients is a list_iterator, expected a list of arrays",
    ),
    "too few": (
        lambda stage: (arrays(stage, WEIGHTS, BIAS), arrays(stage, WEIGHTS)),
        ValueError,
        "step: there are 2 parameters but 1 arrays in gradients",
    ),
    "another shape": (
        lambda stage: (arrays(stage, WEIGHTS, BIAS), arrays(stage, WEIGHTS, [1.0])),
        ValueError,
        "step: parameter 1 is (2,) but number 1 of gradients is (1,)",
    ),
    "None for a gradient": (
        lambda stage: (arrays(stage, BIAS), [None]),
        TypeError,
        "step: number 0 of gradients is a NoneType, expected an array; see asarray",
    ),
    "text for a gradient": (
        lambda stage: (arrays(stage, BIAS), ["ab"]),
        TypeError,
        "step: number 0 of gradients is a str, expected an array; see asarray",
    ),
    "a number for a parameter": (
        lambda stage: ([1.0], arrays(stage, BIAS)),
        TypeError,
        "step: parameter 0 is a float, expected an array; see asarray",
    ),
}


@pytest.mark.parametrize(("given", "kind", "sentence"), BAD_STEPS.values(), ids=BAD_STEPS)
def test_a_step_names_what_it_cannot_take(
    stage: Stage, given: Callable[[Stage], tuple[Any, Any]], kind: type[Exception], sentence: str
) -> None:
    for make in MADE.values():
        optimizer = make(stage)
        assert_refused(stage, lambda stage, optimizer=optimizer: optimizer.step(*given(stage)), kind, sentence)  # type: ignore[misc]
        assert optimizer.state()["steps"] == 0


def test_a_gradient_of_another_dtype_is_refused_and_nothing_moves(stage: Stage) -> None:
    parameter, gradient = stage.arrays.asarray(BIAS, "float32"), stage.arrays.asarray(BIAS, "float64")
    if not hasattr(parameter, "dtype"):
        pytest.skip(f"{stage.title} computes in Python floats, whatever dtype is asked for")
    sentence = "step: parameter 0 is float32 but number 0 of gradients is float64; convert one of them"
    for make in MADE.values():
        optimizer = make(stage)
        assert_refused(stage, lambda _, o=optimizer: o.step([parameter], [gradient]), TypeError, sentence)  # type: ignore[misc]
    np.testing.assert_array_equal(stage.arrays.to_host(parameter), BIAS)


@pytest.mark.parametrize("shape", [(), (2, 2, 2)])
@pytest.mark.parametrize("stage_name", [name for name in ("stage2_numpy", "stage3_c") if name in USABLE_STAGES])
def test_a_parameter_that_asarray_would_not_make_is_refused(stage_name: str, shape: tuple[int, ...]) -> None:
    stage, parameter = load_stage(stage_name), np.ones(shape)
    with pytest.raises(ValueError, match=f"step: parameter 0 has {len(shape)} dimensions, expected 1, 2 or 4"):
        stage.optimizers.SGD(0.1).step([parameter], [np.ones(shape)])
    assert np.all(parameter == 1)
