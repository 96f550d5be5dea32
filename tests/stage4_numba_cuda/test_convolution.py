"""Stage 4's convolution: every rung and both gradients against stage 2, at sizes around the tiles' edges."""

from typing import Any

import numpy as np
import pytest

from shared.contract import load_stage
from stage4_numba_cuda import convolution as room
from stage4_numba_cuda.arrays import asarray, to_host
from stage4_numba_cuda.backend import BACKEND, cuda
from tests.wide import widely

pytestmark = pytest.mark.skipif(
    BACKEND.name == "simulator", reason="256 threads a block take Numba's simulator minutes"
)

NUMPY = load_stage("stage2_numpy").convolution

# (N, C, H, W, O, kh, kw, stride, padding)
CASES = [
    (2, 3, 19, 17, 5, 3, 3, 1, 1),
    (1, 1, 1, 1, 1, 1, 1, 1, 0),
    (3, 2, 37, 18, 6, 5, 4, (2, 3), (2, 0)),
    (33, 1, 5, 7, 1, 2, 2, 1, (0, 1)),
    (1, 1, 2, 2, 2, 5, 5, 1, 2),
    (1, 2, 50, 30, 2, 26, 3, 1, 0),  # too high for the tile with its halo
    (2, 37, 6, 5, 35, 3, 3, 1, 1),
]


def case_arrays(case: tuple[Any, ...], dtype: str) -> tuple[np.ndarray, ...]:
    n, c, h, w, o, kh, kw, stride, padding = case
    rng = np.random.default_rng(0)
    x, weights, bias = (
        rng.normal(size=shape).astype(dtype).astype(np.float64) for shape in ((n, c, h, w), (o, c, kh, kw), (o,))
    )
    output = NUMPY.conv2d(x, weights, bias, stride, padding)
    grad = rng.normal(size=output.shape).astype(dtype).astype(np.float64)
    return x, weights, bias, output, grad


def poisoned(shape: tuple[int, ...], dtype: str) -> Any:
    return cuda.to_device(np.full(shape, np.nan, dtype))


def assert_close(got: Any, expected: np.ndarray, dtype: str, name: str) -> None:
    bound = 1e-10 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(to_host(got), expected, rtol=bound, atol=bound * np.abs(expected).max(), err_msg=name)


@pytest.mark.parametrize("case", widely(map(pytest.param, CASES), first=3), ids=str)
@pytest.mark.parametrize("dtype", widely(["float64", "float32"]))
def test_every_rung_gives_stage_2s_numbers(dtype: str, case: tuple[Any, ...]) -> None:
    stride, padding = case[-2:]
    x, weights, bias, output, _ = case_arrays(case, dtype)
    given = [asarray(each, dtype) for each in (x, weights, bias)]
    for name, rung in room.CONVOLUTION_LADDER.items():
        out = poisoned(output.shape, dtype)
        assert rung(*given, stride, padding, out=out) is out
        assert_close(out, output, dtype, name)


@pytest.mark.parametrize("case", widely(map(pytest.param, CASES), first=3), ids=str)
@pytest.mark.parametrize("dtype", widely(["float64", "float32"]))
def test_the_gradients_are_stage_2s_and_the_same_bits_each_time(dtype: str, case: tuple[Any, ...]) -> None:
    stride, padding = case[-2:]
    x, weights, _, _, grad = case_arrays(case, dtype)
    expected = NUMPY.conv2d_backward(grad, x, weights, stride, padding)
    given = [asarray(each, dtype) for each in (grad, x, weights)]
    got = room.conv2d_backward(*given, stride, padding, out=poisoned(x.shape, dtype))
    for name, array, wanted in zip(("grad_input", "grad_weights", "grad_bias"), got, expected, strict=True):
        assert_close(array, wanted, dtype, name)
    again = room.conv2d_backward(*given, stride, padding)
    for array, other in zip(got, again, strict=True):
        np.testing.assert_array_equal(to_host(array), to_host(other))


def test_a_layer_whose_memory_was_replaced_says_so_and_writes_nothing() -> None:
    layer = room.Conv2d(np.ones((2, 1, 3, 3)), np.zeros(2))
    x = asarray(np.ones((1, 1, 4, 4)), "float64")
    output = layer.forward(x)
    layer.grad_bias = np.zeros(2)
    with pytest.raises(ValueError, match=r"^Conv2d\.backward: the layer's grad_bias was replaced by ndarray, expected"):
        layer.backward(output)
    assert not to_host(layer.grad_weights).any()


def test_out_must_overlap_nothing_that_is_read() -> None:
    memory = asarray(np.ones((2, 1, 3, 3)), "float64")
    weights, bias = asarray(np.ones((1, 1, 1, 1)), "float64"), asarray(np.zeros(1), "float64")
    with pytest.raises(ValueError, match=r"^conv2d: out overlaps x, which is still being read"):
        room.conv2d(memory, weights, bias, out=memory)
    with pytest.raises(ValueError, match=r"^conv2d_backward: out overlaps x, which is still being read"):
        room.conv2d_backward(asarray(np.ones((2, 1, 3, 3)), "float64"), memory, weights, out=memory)
    assert (to_host(memory) == 1).all()
