"""Every rung of every stage convolves, the gradients are the slopes, and a layer keeps what is its own."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.contract import Stage, load_stage
from tests.floors.ladders import rungs
from tests.wide import widely

RUNGS = rungs("convolution", "CONVOLUTION_LADDER")
few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # the stage is the same for all examples
)

# (N, C, H, W, O, kh, kw, stride, padding)
CASES = [
    (1, 1, 1, 1, 1, 1, 1, 1, 0),
    (2, 3, 7, 5, 2, 3, 3, 1, 1),
    (1, 2, 11, 13, 3, 5, 3, (2, 3), (2, 0)),
    (3, 1, 6, 6, 5, 2, 2, 1, 0),
    (1, 1, 2, 2, 2, 5, 5, 1, 2),  # the window is larger than the image without its border
    (5, 2, 3, 4, 1, 3, 4, 1, 0),
    (2, 2, 9, 8, 3, 3, 3, 1, (0, 2)),
    (1, 17, 4, 3, 19, 3, 3, 1, 1),  # more channels than a block of any stage's products has
    (1, 2, 8, 5, 2, 3, 3, 4, 1),
    (7, 1, 5, 5, 1, 3, 1, (1, 2), (1, 0)),
    (1, 2, 17, 19, 3, 3, 3, 1, 1),
    (2, 3, 6, 7, 33, 1, 1, 1, 0),
]


def host(stage: Stage, array: Any) -> np.ndarray:
    return np.asarray(stage.arrays.to_host(array))


def put(stage: Stage, *arrays: np.ndarray, dtype: str = "float64") -> list[Any]:
    return [stage.arrays.asarray(np.ascontiguousarray(array), dtype) for array in arrays]


def random_case(case: tuple[Any, ...], dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, ...]:
    """x, weights and bias, rounded to the dtype so that rounding the inputs is no part of what is tested."""
    n, c, h, w, o, kh, kw, *_ = case
    rng = np.random.default_rng(seed)
    shapes = ((n, c, h, w), (o, c, kh, kw), (o,))
    x, weights, bias = (rng.normal(size=shape).astype(dtype).astype(np.float64) for shape in shapes)
    return x, weights, bias


def as_pair(value: Any) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def reference(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: Any, padding: Any) -> np.ndarray:
    """The definition, place by place."""
    (down, right), (top, left) = as_pair(stride), as_pair(padding)
    padded = np.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))
    kh, kw = weights.shape[2:]
    rows, columns = (padded.shape[2] - kh) // down + 1, (padded.shape[3] - kw) // right + 1
    out = np.empty((len(x), len(weights), rows, columns))
    for r, s in product(range(rows), range(columns)):
        window = padded[:, :, r * down : r * down + kh, s * right : s * right + kw]
        out[:, :, r, s] = np.tensordot(window, weights, ([1, 2, 3], [1, 2, 3])) + bias
    return out


def tolerance_of(rung: str, dtype: str, terms: int) -> float:
    """As a share of the sum of all terms' sizes: eps for each term. Transforms add up numbers that are larger than the
    result, and lose so many times more."""
    transforms = 60 if "winograd" in rung else 10 if rung == "fourier" else 1
    return 2 * transforms * (terms + 1) * float(np.finfo(dtype).eps)


@pytest.mark.parametrize("case", widely(map(pytest.param, CASES), first=8), ids=str)
@pytest.mark.parametrize(("name", "rung"), RUNGS)
def test_every_rung_convolves_at_awkward_sizes(name: str, rung: str, dtype: str, case: tuple[Any, ...]) -> None:
    stage, (stride, padding) = load_stage(name), case[-2:]
    x, weights, bias = random_case(case, dtype)
    function = stage.convolution.CONVOLUTION_LADDER[rung]
    got = host(stage, function(*put(stage, x, weights, bias, dtype=dtype), stride, padding))
    sizes = reference(np.abs(x), np.abs(weights), np.abs(bias), stride, padding)
    bound = tolerance_of(rung, dtype, weights[0].size) * sizes.max(axis=(1, 2, 3), keepdims=True)
    expected = reference(x, weights, bias, stride, padding)
    assert got.shape == expected.shape
    assert (np.abs(got - expected) <= bound).all()


def test_values_by_hand(stage: Stage) -> None:
    x = [[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]]
    weights, bias = [[[[1.0, 0.0], [0.0, -1.0]]], [[[0.0, 2.0], [0.0, 0.0]]]], [0.5, 0.0]
    for rung in stage.convolution.CONVOLUTION_LADDER.values():
        got = host(stage, rung(*put(stage, *map(np.array, (x, weights, bias)))))
        # 1 - 5, 2 - 6, …: not flipped, or it would be 5 - 1; the second kernel doubles the number at its upper right.
        expected = [[[[-3.5, -3.5], [-3.5, -3.5]], [[4.0, 6.0], [10.0, 12.0]]]]
        np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_gradients_by_hand(stage: Stage) -> None:
    x = np.array([[[[1.0, 2.0, 3.0]]]])
    weights, grad_output = np.array([[[[10.0, 100.0]]]]), np.array([[[[1.0, 2.0]]]])
    grad_input, grad_weights, grad_bias = stage.convolution.conv2d_backward(*put(stage, grad_output, x, weights))
    assert host(stage, grad_input).tolist() == [[[[10.0, 120.0, 200.0]]]]
    assert host(stage, grad_weights).tolist() == [[[[5.0, 8.0]]]]
    assert host(stage, grad_bias).tolist() == [3.0]


def test_the_ladder_ends_in_what_conv2d_uses(stage: Stage) -> None:
    x, weights, bias = put(stage, *random_case(CASES[1]))
    *others, last = stage.convolution.CONVOLUTION_LADDER.values()
    assert len(others) >= 2
    assert np.array_equal(
        host(stage, last(x, weights, bias, 2, 1)), host(stage, stage.convolution.conv2d(x, weights, bias, 2, 1))
    )


@pytest.mark.parametrize("case", widely(map(pytest.param, CASES), first=4), ids=str)
def test_gradients_are_the_slopes(stage: Stage, case: tuple[Any, ...]) -> None:
    """The loss sum(output * g) is linear in x, in weights and in bias: its slope along a direction d is its difference
    between d and 0, to rounding."""
    stride, padding = case[-2:]
    x, weights, bias = random_case(case)
    g = np.random.default_rng(1).normal(size=reference(x, weights, bias, stride, padding).shape)
    gradients = stage.convolution.conv2d_backward(*put(stage, g, x, weights), stride, padding)
    for i, (gradient, start) in enumerate(zip(gradients, (x, weights, bias), strict=True)):
        gradient = host(stage, gradient)
        assert gradient.shape == start.shape
        for seed in range(2):
            direction = np.random.default_rng(seed).normal(size=start.shape)
            there, here = [x, weights, bias], [x, weights, bias]
            there[i], here[i] = direction, np.zeros_like(start)
            difference = reference(*there, stride, padding) - reference(*here, stride, padding)
            slope = float(np.sum(difference * g))
            assert float(np.sum(gradient * direction)) == pytest.approx(slope, rel=1e-11, abs=1e-11)


geometries = st.tuples(
    *(st.integers(1, 3), st.integers(1, 3), st.integers(3, 8), st.integers(3, 8), st.integers(1, 4)),
    *(st.integers(1, 3), st.integers(1, 3)),
    *(st.tuples(st.integers(1, 3), st.integers(1, 3)), st.tuples(st.integers(0, 2), st.integers(0, 2))),
)


@few
@given(case=geometries, seed=st.integers(0, 2**32 - 1))
def test_any_geometry_convolves_and_its_backward_pass_is_the_adjoint(
    stage: Stage, case: tuple[Any, ...], seed: int
) -> None:
    """<conv(x), g> = <x, backward(g)> in the image, and the same in the kernels: both passes are one linear map."""
    x, weights, bias = random_case(case, seed=seed)
    zero, how = np.zeros_like(bias), case[-2:]
    output = host(stage, stage.convolution.conv2d(*put(stage, x, weights, zero), *how))
    bound = 100 * tolerance_of("conv2d", "float64", weights[0].size) * reference(abs(x), abs(weights), zero, *how).max()
    assert np.abs(output - reference(x, weights, zero, *how)).max() <= bound
    g = np.random.default_rng(seed + 2).normal(size=output.shape)
    grad_x, grad_weights, _ = stage.convolution.conv2d_backward(*put(stage, g, x, weights), *how)
    expected, size = np.sum(output * g), np.sum(np.abs(output * g)) + 1
    assert abs(np.sum(host(stage, grad_x) * x) - expected) <= 1e-12 * size
    assert abs(np.sum(host(stage, grad_weights) * weights) - expected) <= 1e-12 * size


@pytest.mark.parametrize("padding", [0, (1, 2)])
def test_inputs_are_left_alone_and_may_be_views_with_gaps(stage: Stage, dtype: str, padding: Any) -> None:
    x, weights, bias = random_case((2, 3, 7, 6, 4, 3, 2), dtype)
    spread = np.full((4, 3, 6, 14), np.nan, dtype)
    spread[::2, :, :, ::2] = x.transpose(0, 1, 3, 2)
    strange_x = spread[::2, :, :, ::2].transpose(0, 1, 3, 2)  # the same numbers, columns first and with gaps
    flipped = np.ascontiguousarray(weights[::-1, :, ::-1].astype(dtype))[::-1, :, ::-1]
    if stage.name == "stage1_pure_python":
        strange_x, flipped = strange_x.tolist(), flipped.tolist()
    bias = stage.arrays.asarray(bias, dtype)
    expected = reference(x, weights, host(stage, bias), 1, padding)
    for rung, function in stage.convolution.CONVOLUTION_LADDER.items():
        got = host(stage, function(strange_x, flipped, bias, 1, padding))
        np.testing.assert_allclose(got, expected, atol=1e-12 if dtype == "float64" else 1e-4, err_msg=rung)
    g = np.asfortranarray(np.random.default_rng(1).normal(size=expected.shape).astype(dtype))
    g = g.tolist() if stage.name == "stage1_pure_python" else g
    gradients = stage.convolution.conv2d_backward(g, strange_x, flipped, 1, padding)
    straight = stage.convolution.conv2d_backward(*put(stage, np.array(g), x, weights, dtype=dtype), 1, padding)
    for got, wanted in zip(gradients, straight, strict=True):
        np.testing.assert_allclose(host(stage, got), host(stage, wanted), atol=1e-12 if dtype == "float64" else 1e-4)
    assert np.array_equal(np.array(strange_x), x)
    assert np.array_equal(np.array(flipped), weights)


def test_out_is_filled_whatever_it_held(stage: Stage, dtype: str) -> None:
    if stage.name == "stage1_pure_python":
        pytest.skip("stage 1 makes new lists and takes no out")
    for case in CASES[1:4]:
        stride, padding = case[-2:]
        x, weights, bias = put(stage, *random_case(case, dtype), dtype=dtype)
        expected = host(stage, stage.convolution.conv2d(x, weights, bias, stride, padding))
        for rung in stage.convolution.CONVOLUTION_LADDER.values():
            out = put(stage, np.full(expected.shape, np.nan), dtype=dtype)[0]
            assert rung(x, weights, bias, stride, padding, out=out) is out
            np.testing.assert_allclose(host(stage, out), expected, rtol=1e-3, atol=1e-4)
        g = put(stage, np.random.default_rng(1).normal(size=expected.shape), dtype=dtype)[0]
        straight = stage.convolution.conv2d_backward(g, x, weights, stride, padding)
        out = put(stage, np.full(np.shape(x), np.nan), dtype=dtype)[0]
        gradients = stage.convolution.conv2d_backward(g, x, weights, stride, padding, out=out)
        assert gradients[0] is out
        for got, wanted in zip(gradients, straight, strict=True):
            assert np.array_equal(host(stage, got), host(stage, wanted))


def test_nan_and_inf_stay_in_the_windows_that_hold_them(stage: Stage) -> None:
    x, weights, bias = random_case((1, 1, 6, 6, 1, 3, 3))
    x[0, 0, 0, 0], x[0, 0, 5, 5] = np.nan, np.inf
    got = host(stage, stage.convolution.conv2d(*put(stage, x, np.abs(weights), bias)))[0, 0]
    touched = ~np.isfinite(got)
    assert np.isnan(got[0, 0])
    assert got[3, 3] == np.inf
    assert touched.sum() == 2


# ---- the layer


def make_layer(stage: Stage, **how: Any) -> Any:
    _, weights, bias = random_case((1, 2, 5, 5, 3, 3, 3))
    return stage.convolution.Conv2d(*put(stage, weights, bias), **how)


def test_a_layers_passes_are_the_functions(stage: Stage) -> None:
    layer = make_layer(stage, stride=2, padding=(1, 0))
    assert (layer.stride, layer.padding) == ((2, 2), (1, 0))
    x = put(stage, random_case((2, 2, 5, 6, 3, 3, 3), seed=3)[0])[0]
    output = layer.forward(x)
    expected = stage.convolution.conv2d(x, layer.weights, layer.bias, 2, (1, 0))
    assert np.array_equal(host(stage, output), host(stage, expected))
    g = put(stage, np.random.default_rng(4).normal(size=np.shape(output)))[0]
    for _ in range(2):  # gradients are those of the last backward, not a running sum
        grad_input = layer.backward(g)
        wanted = stage.convolution.conv2d_backward(g, x, layer.weights, 2, (1, 0))
        for got, want in zip((grad_input, layer.grad_weights, layer.grad_bias), wanted, strict=True):
            assert np.array_equal(host(stage, got), host(stage, want))


def test_the_input_gradient_is_left_out_where_nobody_needs_it(stage: Stage) -> None:
    layer = make_layer(stage)
    output = layer.forward(put(stage, random_case((2, 2, 5, 5, 3, 3, 3))[0])[0])
    layer.backward(output)
    weights, bias = host(stage, layer.grad_weights).copy(), host(stage, layer.grad_bias).copy()
    assert layer.backward(output, needs_grad_input=False) is None
    assert np.array_equal(host(stage, layer.grad_weights), weights)
    assert np.array_equal(host(stage, layer.grad_bias), bias)


def test_a_layer_keeps_copies_and_has_zero_gradients_at_first(stage: Stage) -> None:
    weights, bias = put(stage, np.ones((1, 1, 1, 1)), np.zeros(1))
    layer = stage.convolution.Conv2d(weights, bias)
    weights[0][0][0][0], bias[0] = 100.0, 100.0
    assert host(stage, layer.forward(put(stage, np.ones((1, 1, 1, 1)))[0])).tolist() == [[[[1.0]]]]
    assert host(stage, layer.grad_weights).tolist() == [[[[0.0]]]]
    assert host(stage, layer.grad_bias).tolist() == [0.0]


def test_backward_before_forward_is_rejected(stage: Stage) -> None:
    with pytest.raises(ValueError, match=r"^Conv2d\.backward: there was no forward pass yet, so "):
        make_layer(stage).backward(put(stage, np.ones((1, 3, 3, 3)))[0])
