"""Stage 4's activations: every kernel against stage 2 in float64, every rung of softmax, odd numbers, odd grids."""

import math
from typing import Any

import numpy as np
import pytest

from shared.checks.tolerance import compare
from shared.contract import ACTIVATIONS, load_stage
from stage4_numba_cuda import activations
from stage4_numba_cuda.arrays import Array, asarray, to_host
from stage4_numba_cuda.backend import Backend, cuda
from stage4_numba_cuda.kernels import activations as kernels
from stage4_numba_cuda.kernels import softmax as softmax_kernels

SHAPES = [(1, 1), (1, 7), (31, 10), (33, 65), (5, 1030)]
ELEMENTWISE = ACTIVATIONS[:-1]
RUNGS = tuple(activations.SOFTMAX_LADDER)
DTYPES = ["float32", "float64"]  # a dtype is another compilation of each kernel

ODD = np.array([[math.nan, 1.0, -1.0], [math.inf, 1.0, -1.0], [-math.inf, 1.0, -1.0], [1e4, -1e4, 0.0]])
ALL_OUT = np.array([[-math.inf] * 3, [math.nan] * 3, [1.0, math.nan, 2.0], [1e4, 1e4, -1e4]])

reference = load_stage("stage2_numpy").activations


def numbers(shape: tuple[int, int], seed: int, dtype: str) -> np.ndarray:
    """Random numbers that both dtypes can hold, as float64."""
    return np.random.default_rng(seed).normal(0, 3, shape).astype(dtype).astype(np.float64)


def poisoned(shape: tuple[int, int], dtype: str) -> Array:
    return asarray(np.full(shape, np.nan), dtype)


def check(op: str, got: Array, expected: np.ndarray, dtype: str, k: int = 4, scale: float | None = None) -> None:
    assert got.dtype == dtype
    comparison = compare(op, to_host(got), expected, dtype, k, scale=scale)
    assert comparison.ok, str(comparison)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rung", RUNGS)
def test_every_softmax_rung_equals_stage_2(rung: str, dtype: str) -> None:
    for seed, shape in enumerate(SHAPES):
        z, grad_output = numbers(shape, seed, dtype), numbers(shape, seed + 100, dtype)
        output = reference.softmax(z)
        got = activations.SOFTMAX_LADDER[rung](asarray(z, dtype), poisoned(shape, dtype))
        check(f"softmax {rung} {shape}", got, output, dtype, k=shape[1])
        output = output.astype(dtype).astype(np.float64)
        inputs = [asarray(values, dtype) for values in (grad_output, z, output)]
        got = activations.SOFTMAX_BACKWARD_LADDER[rung](*inputs, poisoned(shape, dtype))
        expected = reference.softmax_backward(grad_output, z, output)
        check(f"softmax_backward {rung} {shape}", got, expected, dtype, k=shape[1], scale=float(np.abs(expected).max()))


@pytest.mark.parametrize("values", [ODD, ALL_OUT], ids=["odd", "all out"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_nan_and_infinities_go_through_as_in_stage_2(name: str, values: np.ndarray) -> None:
    ones = np.ones_like(values)
    output = getattr(reference, name)(values)
    check(name, getattr(activations, name)(asarray(values, "float64")), output, "float64")
    expected = getattr(reference, f"{name}_backward")(ones, values, output)
    inputs = [asarray(array, "float64") for array in (ones, values, output)]
    check(f"{name}_backward", getattr(activations, f"{name}_backward")(*inputs), expected, "float64")


@pytest.mark.parametrize("rung", RUNGS)
def test_every_softmax_rung_keeps_extreme_logits_finite_and_lets_nan_and_infinities_through(rung: str) -> None:
    for values in (ODD, ALL_OUT):
        with np.errstate(invalid="ignore"):
            expected = reference.softmax(values)
        check(rung, activations.SOFTMAX_LADDER[rung](asarray(values, "float64")), expected, "float64")


@pytest.mark.parametrize("name", ["relu", "leaky_relu"])
def test_an_infinite_gradient_is_stopped_and_not_multiplied(name: str) -> None:
    z = asarray([[-1.0, 0.0, 2.0]], "float64")
    infinite = asarray([[math.inf] * 3], "float64")
    got = to_host(getattr(activations, f"{name}_backward")(infinite, z, getattr(activations, name)(z)))
    stopped = 0.0 if name == "relu" else math.inf
    assert got.tolist() == [[stopped, stopped, math.inf]]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_out_may_be_z_and_for_the_backward_the_gradient(name: str) -> None:
    z, grad_output = numbers((33, 65), 1, "float64"), numbers((33, 65), 2, "float64")
    output = getattr(reference, name)(z)
    place = asarray(z, "float64")
    assert getattr(activations, name)(place, out=place) is place
    check(name, place, output, "float64", k=65)
    expected = getattr(reference, f"{name}_backward")(grad_output, z, output)
    place = asarray(grad_output, "float64")
    got = getattr(activations, f"{name}_backward")(place, asarray(z, "float64"), asarray(output, "float64"), out=place)
    assert got is place
    check(f"{name}_backward", place, expected, "float64", k=65, scale=float(np.abs(grad_output).max()))


@cuda.jit
def every_activation(z, outputs, slopes, infinite_grads):  # type: ignore[no-untyped-def]
    """Row a of the results: activation a of the vector z, by its number."""
    i = cuda.grid(1)
    if i < z.size:
        activation = 0
        while activation < outputs.shape[0]:
            output = kernels.activate(activation, z[i])
            outputs[activation, i] = output
            slopes[activation, i] = kernels.slope(activation, output)
            infinite_grads[activation, i] = kernels.back(activation, infinite_grads[activation, i], output)
            activation += 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_activation_is_found_by_its_number_and_its_slope_by_the_output(dtype: str) -> None:
    z = np.array([[-1e4, -50.0, -2.0, -0.0, 0.0, 0.5, 2.0, 1e4]])
    rows = [poisoned((len(ELEMENTWISE), z.size), dtype) for _ in range(2)]
    infinite = asarray(np.full((len(ELEMENTWISE), z.size), np.inf), dtype)
    every_activation[1, 32](asarray(z[0], dtype), *rows, infinite)
    outputs, slopes = (to_host(array) for array in rows)
    for number, name in enumerate(ELEMENTWISE):
        assert getattr(kernels, name.upper()) == number == ACTIVATIONS.index(name)
        output = getattr(reference, name)(z)
        slope = getattr(reference, f"{name}_backward")(np.ones_like(z), z, output)
        assert compare(name, outputs[number], output[0], dtype, 4).ok, name
        assert compare(name, slopes[number], slope[0], dtype, 4, scale=1.0).ok, name
    assert ACTIVATIONS[kernels.SOFTMAX] == "softmax"
    assert to_host(infinite)[kernels.RELU].tolist() == [0, 0, 0, 0, 0, math.inf, math.inf, math.inf]


@pytest.mark.parametrize(
    ("kernel", "grid"),
    [
        (softmax_kernels.softmax_thread, (1, 3)),
        (softmax_kernels.softmax_warp, (2, (32, 2))),
        (softmax_kernels.softmax_block, (2, softmax_kernels.BLOCK)),
    ],
    ids=RUNGS,
)
def test_a_softmax_grid_smaller_than_the_matrix_covers_it(kernel: Any, grid: tuple[Any, ...]) -> None:
    z, out = numbers((31, 10), 5, "float64"), poisoned((31, 10), "float64")
    kernel[grid](asarray(z, "float64"), out)
    check("softmax", out, reference.softmax(z), "float64", k=10)


def test_an_elementwise_grid_smaller_than_the_vector_covers_it() -> None:
    z, out = numbers((1, 331), 6, "float64"), poisoned((1, 331), "float64")
    kernels.FORWARD["tanh"][2, 32](asarray(z[0], "float64"), out.reshape(331))
    check("tanh", out, np.tanh(z), "float64")


def test_softmax_takes_the_warp_up_to_1024_columns_and_the_block_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [activations.softmax_rung(columns) for columns in (1, 1024, 1025)] == ["warp", "warp", "block"]
    monkeypatch.setattr(activations, "BACKEND", Backend("simulator", cuda, "a test"))
    assert activations.softmax_rung(10) == "block"
