"""Optimizers of stage 4: every option against stage 2 over many steps, what they keep on the device, what they refuse.

What all stages share is tested in test_optimizers.
"""

import copy
from typing import Any

import numpy as np
import pytest

from stage4_numba_cuda import optimizers
from stage4_numba_cuda.arrays import asarray, to_host
from stage4_numba_cuda.kernels import optimizers as kernels
from stage4_numba_cuda.plans.resident_host import schedule_of

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


def test_a_gradient_that_is_not_contiguous_is_read_right() -> None:
    wide = np.arange(12.0).reshape(3, 4)
    parameters = [asarray(np.ones((3, 2)), "float64")]
    optimizers.SGD(1.0).step(parameters, [asarray(wide, "float64")[:, ::2]])
    assert np.array_equal(to_host(parameters[0]), 1 - wide[:, ::2])


def test_arrays_on_the_host_are_refused() -> None:
    here, there = np.ones(3, np.float32), asarray(np.ones(3))
    with pytest.raises(TypeError, match="step: parameter 0 is a ndarray on the host, expected a device array"):
        optimizers.SGD(0.1).step([here], [there])
    with pytest.raises(TypeError, match="number 0 of gradients is a ndarray on the host, expected a device array"):
        optimizers.SGD(0.1).step([there], [here])
