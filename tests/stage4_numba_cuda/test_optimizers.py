"""Optimizers of stage 4: every option against stage 2 over many steps, what they keep on the device, what they refuse.

What all stages share is tested in test_optimizers.
"""

import copy
import re
from typing import Any

import numpy as np
import pytest

from shared.training.checkpoints import hyperparameters
from stage2_numpy import optimizers as reference
from stage4_numba_cuda import optimizers
from stage4_numba_cuda.arrays import address, asarray, on_device, to_host
from stage4_numba_cuda.kernels import optimizers as kernels
from stage4_numba_cuda.plans.resident_host import schedule_of
from tests.wide import widely

CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "plain": ("SGD", {"learning_rate": 0.1}, kernels.SGD),
    "plain, decay": ("SGD", {"learning_rate": 0.1, "weight_decay": 0.05}, kernels.SGD),
    "momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}, kernels.MOMENTUM),
    "momentum, decay": ("SGD", {"learning_rate": 0.1, "momentum": 0.5, "weight_decay": 0.05}, kernels.MOMENTUM),
    "nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}, kernels.NESTEROV),
    "nesterov, decay": (
        "SGD",
        {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
        kernels.NESTEROV,
    ),
    "RMSProp": ("RMSProp", {}, kernels.RMSPROP),
    "RMSProp, all": (
        "RMSProp",
        {"learning_rate": 0.02, "alpha": 0.8, "epsilon": 1e-3, "weight_decay": 0.05},
        kernels.RMSPROP,
    ),
    "Adam": ("Adam", {}, kernels.ADAM),
    "Adam, all": (
        "Adam",
        {"learning_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.05},
        kernels.ADAM,
    ),
}
WITH_BUFFERS = [case for case in CASES if not case.startswith("plain")]
SHAPES = [(37, 11), (11,), (1, 1), (257, 3)]
ROUNDING = {"float64": (1e-12, 1e-14), "float32": (1e-5, 1e-6)}


def make(case: str, room: Any = optimizers) -> Any:
    name, arguments, _ = CASES[case]
    return getattr(room, name)(**arguments)


def numbers(seed: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in SHAPES]


def device(seed: int, dtype: str) -> list[Any]:
    return [asarray(values, dtype) for values in numbers(seed, dtype)]


def assert_close(got: list[Any], expected: list[Any], dtype: str) -> None:
    rtol, atol = ROUNDING[dtype]
    for one, other in zip(got, expected, strict=True):
        assert to_host(one).dtype == dtype
        np.testing.assert_allclose(to_host(one), other, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("case", CASES)
def test_eight_steps_are_stage_2s(case: str, dtype: str) -> None:
    ours, theirs = make(case), make(case, reference)
    parameters, expected = device(0, dtype), numbers(0, dtype)
    for seed in range(1, 9):
        ours.learning_rate = theirs.learning_rate = 0.1 / seed
        ours.step(parameters, device(seed, dtype))
        theirs.step(expected, numbers(seed, dtype))
    assert_close(parameters, expected, dtype)
    state = theirs.state()
    assert ours.state()["steps"] == state["steps"] == 8
    for name, buffers in state["buffers"].items():
        assert_close(ours.state()["buffers"][name], buffers, dtype)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("case", ["plain", "nesterov", "RMSProp", "Adam"])
def test_a_state_goes_over_to_stage_2_and_back(case: str, ours_first: bool, dtype: str) -> None:
    straight, expected = make(case, reference), numbers(0, dtype)
    for seed in range(1, 7):
        straight.step(expected, numbers(seed, dtype))

    def walk(ours: bool, start: list[Any], state: Any, seeds: range) -> tuple[list[np.ndarray], Any]:
        optimizer = make(case, optimizers if ours else reference)
        if state is not None:
            optimizer.load_state(state)
        parameters = [asarray(p, dtype) if ours else np.array(p) for p in start]
        for seed in seeds:
            optimizer.step(parameters, (device if ours else numbers)(seed, dtype))
        return [to_host(p) for p in parameters], optimizer.state()

    middle, state = walk(ours_first, numbers(0, dtype), None, range(1, 4))
    end, _ = walk(not ours_first, middle, state, range(4, 7))
    assert_close(end, expected, dtype)


@pytest.mark.parametrize("case", widely(WITH_BUFFERS))
def test_buffers_lie_on_the_device_and_stay_where_they_are(case: str) -> None:
    optimizer, parameters = make(case), device(0, "float64")
    memory = optimizer._state.make_buffers(parameters)
    assert list(memory) == list(optimizer._state.names)
    places = []
    for buffers in memory.values():
        for buffer, p in zip(buffers, parameters, strict=True):
            assert on_device(buffer)
            assert buffer.shape == p.shape
            assert buffer.dtype == p.dtype
            assert not to_host(buffer).any()
            places.append(address(buffer))
    optimizer.step(parameters, device(1, "float64"))
    after = optimizer._state.make_buffers(parameters)
    assert [address(buffer) for buffers in after.values() for buffer in buffers] == places


def test_a_copied_optimizer_goes_on_in_memory_of_its_own() -> None:
    ended = []
    for copied in (False, True):
        optimizer = optimizers.Adam(0.1)
        state = optimizer._state
        parameters = [asarray(np.ones(shape)) for shape in ((2, 3), (3,))]
        for flat in state.packed(parameters):  # a step of a network whose parameters lie side by side
            flat.copy_to_device(np.full(flat.shape, 2, flat.dtype))
        sent = state.device_numbers(optimizer.numbers(), "float32")
        if copied:
            other = copy.deepcopy(optimizer)
            state = other._state
            assert state.device_numbers(other.numbers(), "float32") is not sent
        for flat in state.packed(parameters):
            flat.copy_to_device(flat.copy_to_host() + 1)
        ended.append([to_host(array).tolist() for arrays in state.buffers.values() for array in arrays])
        assert all((to_host(array) == 2 + (not copied)).all() for array in optimizer._state.buffers["first_moment"])
    assert ended[0] == ended[1]


def test_a_state_of_another_dtype_becomes_the_parameters_own() -> None:
    optimizer, parameters = make("Adam"), device(0, "float32")
    buffers = {name: numbers(seed, "float64") for seed, name in enumerate(("first_moment", "second_moment"))}
    optimizer.load_state({"steps": 3, "buffers": buffers})
    assert optimizer.state()["buffers"]["first_moment"][0].dtype == "float64"
    for name, arrays in optimizer._state.make_buffers(parameters).items():
        for array, values in zip(arrays, buffers[name], strict=True):
            assert np.array_equal(to_host(array), values.astype(np.float32))


def test_device_arrays_may_stand_in_a_state() -> None:
    optimizer = make("momentum")
    optimizer.load_state({"steps": 1, "buffers": {"velocity": device(5, "float32")}})
    for array, values in zip(optimizer.state()["buffers"]["velocity"], numbers(5, "float32"), strict=True):
        assert np.array_equal(array, values)


@pytest.mark.parametrize("case", CASES)
def test_kinds_and_hyperparameters_say_what_the_optimizer_is(case: str) -> None:
    name, arguments, kind = CASES[case]
    optimizer = make(case)
    assert optimizer.kind == kind
    assert hyperparameters(optimizer) == hyperparameters(getattr(reference, name)(**arguments))


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("case", CASES)
def test_a_schedule_has_the_numbers_of_the_steps_to_come(case: str, dtype: str) -> None:
    optimizer, parameters = make(case), device(0, dtype)
    optimizer.step(parameters, device(1, dtype))
    rates = [0.25, 0.0, 1.5]
    table = schedule_of(optimizer, rates, dtype, 5)
    assert table.shape == (5, kernels.COUNT)
    assert table.dtype == dtype
    assert optimizer.learning_rate == rates[-1]
    for row, rate in zip(table[:3], rates, strict=True):
        optimizer.learning_rate = rate
        assert np.array_equal(to_host(optimizer._state.device_numbers(optimizer.numbers(), dtype)), row)
        optimizer.step(parameters, device(1, dtype))


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), float("inf")])
def test_a_schedule_with_a_rate_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="learning_rate: expected a finite number of at least 0, got"):
        schedule_of(make("plain"), [0.1, wrong, 0.1], "float32", 8)


def test_the_eight_numbers_stand_in_their_documented_places() -> None:
    optimizer = optimizers.Adam(0.5, beta1=0.75, beta2=0.9375, epsilon=0.125, weight_decay=0.25)
    expected = [0.5 / (1 - 0.75), 0.25, 0.75, 0.25, 0.9375, 0.0625, 0.125, np.sqrt(1 - 0.9375)]
    assert to_host(optimizer._state.device_numbers(optimizer.numbers(), "float64")).tolist() == expected


def test_the_device_numbers_keep_their_place_and_are_written_only_when_one_changed() -> None:
    optimizer = make("momentum")
    vector = optimizer._state.device_numbers(optimizer.numbers(), "float32")
    vector.copy_to_device(np.full(kernels.COUNT, 7, np.float32))  # to see whether it is written
    assert optimizer._state.device_numbers(optimizer.numbers(), "float32") is vector
    assert (to_host(vector) == 7).all()
    optimizer.learning_rate = 0.5
    assert optimizer._state.device_numbers(optimizer.numbers(), "float32") is vector
    assert to_host(vector)[kernels.RATE] == 0.5
    assert optimizer._state.device_numbers(optimizer.numbers(), "float64") is not vector


def test_numbers_whose_copy_was_interrupted_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = make("momentum")
    optimizer.learning_rate = 0.25
    vector = optimizer._state.device_numbers(optimizer.numbers(), "float64")
    copy = type(vector).copy_to_device
    for arrives in (True, False):
        for rate in (0.5, 0.25):  # the other number, and the one from before it

            def interrupted(*arguments: Any, arrives: bool = arrives, **named: Any) -> None:
                if arrives:
                    copy(*arguments, **named)
                raise KeyboardInterrupt

            optimizer.learning_rate = 0.5
            with monkeypatch.context() as patch:
                patch.setattr(type(vector), "copy_to_device", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    optimizer._state.device_numbers(optimizer.numbers(), "float64")
            optimizer.learning_rate = rate
            assert to_host(optimizer._state.device_numbers(optimizer.numbers(), "float64"))[kernels.RATE] == rate
            optimizer.learning_rate = 0.25
            optimizer._state.device_numbers(optimizer.numbers(), "float64")


def test_no_decay_leaves_an_infinite_parameter_infinite() -> None:
    parameters = [asarray([np.inf, 1.0], "float64")]
    make("plain").step(parameters, [asarray([1.0, 1.0], "float64")])
    assert np.array_equal(to_host(parameters[0]), [np.inf, 0.9])


def test_a_gradient_that_is_not_contiguous_is_read_right() -> None:
    wide = np.arange(12.0).reshape(3, 4)
    parameters = [asarray(np.ones((3, 2)), "float64")]
    optimizers.SGD(1.0).step(parameters, [asarray(wide, "float64")[:, ::2]])
    assert np.array_equal(to_host(parameters[0]), 1 - wide[:, ::2])


def refused(error: type[Exception], message: str, parameters: Any, gradients: Any) -> None:
    optimizer = optimizers.Adam()
    with pytest.raises(error, match=re.escape(message)):
        optimizer.step(parameters, gradients)
    assert optimizer.state() == {"steps": 0, "buffers": {}}


def test_arrays_on_the_host_are_refused() -> None:
    here, there = np.ones(3, np.float32), asarray(np.ones(3))
    refused(TypeError, "step: parameter 0 is a ndarray on the host, expected a device array", [here], [there])
    refused(TypeError, "step: number 0 of gradients is a ndarray on the host, expected a device array", [there], [here])
    refused(TypeError, "step: number 0 of gradients is a list, expected a device array; see asarray", [there], [[1.0]])
    assert (here == 1).all()


def test_memory_that_a_kernel_must_not_write_is_refused() -> None:
    wide = asarray(np.ones((3, 4)))
    refused(ValueError, "step: parameter 0 is not C-contiguous", [wide[:, ::2]], [asarray(np.ones((3, 2)))])
    flat = asarray(np.ones(8))
    refused(ValueError, "step: parameter 0 overlaps number 0 of gradients; give each memory of its own", [flat], [flat])
    refused(ValueError, "step: parameter 0 overlaps number 0 of gradients", [flat[:5]], [flat[3:]])
