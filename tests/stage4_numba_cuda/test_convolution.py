"""Stage 4's convolution: every rung and both gradients against stage 2, at sizes around the tiles' edges."""

from typing import Any

import numpy as np
import pytest

from cuda_emulator import options
from shared.contract import ACTIVATIONS, load_stage
from stage4_numba_cuda import convolution as room
from stage4_numba_cuda import convolution_passes as passes
from stage4_numba_cuda.arrays import asarray, to_host
from stage4_numba_cuda.backend import BACKEND, cuda
from stage4_numba_cuda.kernels.matmul_5_tensor import EPSILON
from tests.stages import needs_precision
from tests.wide import wide, widely

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


@pytest.mark.parametrize("case", widely(map(pytest.param, CASES)), ids=str)
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


# (N, C, H, W, O, kh, kw, stride, padding): more channels than a tile of either side, and fewer; more places, and fewer
BLOCKED_CASES = [
    (2, 33, 9, 11, 70, 3, 3, 1, 1),
    (1, 2, 3, 3, 3, 2, 2, 1, 0),
    (3, 5, 13, 12, 34, 4, 3, (2, 3), (1, 2)),
]
SIDES = widely([32, 64], first=0)


@pytest.fixture
def side(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """All passes by the kernels that a GPU takes, with tiles of that side."""
    monkeypatch.setattr(passes, "forward_into", passes.implicit_blocked)
    monkeypatch.setattr(passes, "_weights_side", lambda g: request.param)
    for name in ("_side", "_input_side"):
        monkeypatch.setattr(passes, name, lambda rows, out: request.param)
    return request.param


@pytest.mark.parametrize("side", SIDES, indirect=True)
@pytest.mark.parametrize("dtype", widely(["float64", "float32"]))
def test_register_tiles_give_stage_2s_numbers_in_every_pass(dtype: str, side: int) -> None:
    for case in BLOCKED_CASES[: 3 if side == 64 or dtype == "float32" else 2]:
        stride, padding = case[-2:]
        x, weights, bias, output, grad = case_arrays(case, dtype)
        given = [asarray(each, dtype) for each in (x, weights, bias)]
        assert_close(room.conv2d(*given, stride, padding, out=poisoned(output.shape, dtype)), output, dtype, "forward")
        expected = NUMPY.conv2d_backward(grad, x, weights, stride, padding)
        got = room.conv2d_backward(asarray(grad, dtype), *given[:2], stride, padding, out=poisoned(x.shape, dtype))
        for name, array, wanted in zip(("grad_input", "grad_weights", "grad_bias"), got, expected, strict=True):
            assert_close(array, wanted, dtype, name)


@wide
@pytest.mark.parametrize("side", [32, 64], indirect=True)
@pytest.mark.parametrize("batch", [1, 2, 7, 40])
def test_every_number_of_parts_gives_the_gradients(side: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = (batch, 3, 8, 7, 5, 3, 3, 1, 1)
    x, weights, _, _, grad = case_arrays(case, "float64")
    expected = NUMPY.conv2d_backward(grad, x, weights, 1, 1)
    for blocks in (1, 3, 264):
        monkeypatch.setattr(passes, "BLOCKS", blocks)
        monkeypatch.setattr(passes, "LEAST_PLACES", 16)
        got = room.conv2d_backward(*(asarray(each, "float64") for each in (grad, x, weights)), 1, 1)
        for array, wanted in zip(got, expected, strict=True):
            assert_close(array, wanted, "float64", f"{blocks} blocks")


@pytest.mark.parametrize("rung", widely(list(passes.FORWARD), first=2))
def test_every_rung_applies_the_activation(rung: str) -> None:
    x, weights, bias, output, _ = case_arrays(CASES[0], "float64")
    given = [asarray(each, "float64") for each in (x, weights, bias)]
    out = poisoned(output.shape, "float64")
    g = room.geometry("test", given[0], given[1], 1, 1)
    passes.FORWARD[rung](*given, g, out, ACTIVATIONS.index("leaky_relu"))
    assert_close(out, np.where(output > 0, output, 0.01 * output), "float64", rung)


@pytest.mark.parametrize("plain", widely([False, True]))
def test_the_gradient_goes_back_through_the_activation_below(plain: bool) -> None:
    x, weights, _, _, grad = case_arrays(CASES[0], "float64")
    given = [asarray(each, "float64") for each in (grad, x, weights)]
    g = room.geometry("test", given[1], given[2], 1, 1)
    written = [poisoned(shape, "float64") for shape in (x.shape, weights.shape, (len(weights),))]
    run = passes.plain_backward_into if plain else passes.backward_into
    run(*given, g, *written, poisoned(passes.parts_shape(g, len(x)), "float64"), ACTIVATIONS.index("relu"))
    expected = NUMPY.conv2d_backward(grad, x, weights, 1, 1)[0]
    assert_close(written[0], np.where(x > 0, expected, 0), "float64", "dL/dz of the layer below")


@pytest.mark.parametrize("rung", widely(["implicit_tile", "implicit_blocked"]))
def test_what_fills_up_the_last_tile_is_no_part_of_a_sum(rung: str) -> None:
    """The sums of 9 products are filled up to 32 with zeros, also where the weight that is read there is infinite."""
    weights = np.ones((2, 1, 3, 3))
    weights[0, 0, 0, 0] = np.inf
    got = to_host(room.CONVOLUTION_LADDER[rung](np.ones((1, 1, 4, 4)), weights, np.zeros(2)))
    assert (got[0, 0] == np.inf).all()
    assert (got[0, 1] == 9).all()


def test_arrays_that_32_bits_cannot_count_take_rungs_that_count_in_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MOST_NUMBERS", 100)
    x, weights, bias, output, grad = case_arrays(CASES[0], "float64")
    given = [asarray(each, "float64") for each in (x, weights, bias)]
    taken: list[str] = []
    plain, halo = passes.plain_backward_into, passes.halo_tile
    monkeypatch.setattr(passes, "plain_backward_into", lambda *a: (taken.append("plain"), plain(*a)))
    monkeypatch.setattr(passes, "halo_tile", lambda *a: (taken.append("halo"), halo(*a))[1])
    for rung in ("im2col", "winograd2", "implicit_tile", "implicit_blocked"):
        assert_close(room.CONVOLUTION_LADDER[rung](*given, 1, 1), output, "float64", rung)
    room.conv2d_backward(asarray(grad, "float64"), *given[:2], 1, 1)
    assert taken == ["halo"] * 4 + ["plain"]


@pytest.mark.parametrize("precision", widely(["tf32", "bf16"], first=0))
def test_tensor_cores_are_off_by_the_rounding_of_the_factors_in_every_pass(precision: str) -> None:
    needs_precision(precision)
    for case in (CASES[0], *BLOCKED_CASES):
        stride, padding = case[-2:]
        x, weights, bias, output, grad = case_arrays(case, "float32")
        given = [asarray(each, "float32") for each in (x, weights, bias)]
        share = 2.1 * EPSILON[precision]  # of each product: two factors are rounded
        sizes = [np.abs(each) for each in (x, weights, np.zeros_like(bias), grad)]
        g = room.geometry("test", given[0], given[1], stride, padding)
        out = poisoned(output.shape, "float32")
        assert room.TENSOR_CORES[precision](*given, stride, padding, out=out) is out
        bound = share * NUMPY.conv2d(*sizes[:3], stride, padding) + 1e-5
        assert (np.abs(to_host(out) - output) <= bound).all()
        shapes = (x.shape, weights.shape, bias.shape)
        written = [poisoned(shape, "float32") for shape in shapes]
        passes.backward_into(asarray(grad, "float32"), *given[:2], g, *written, precision=precision)
        expected = NUMPY.conv2d_backward(grad, x, weights, stride, padding)
        bounds = NUMPY.conv2d_backward(sizes[3], *sizes[:2], stride, padding)
        for got, wanted, size in zip(written, expected, bounds, strict=True):
            assert (np.abs(to_host(got) - wanted) <= share * size + 1e-4).all()


def test_tensor_cores_refuse_float64() -> None:
    with pytest.raises(TypeError, match=r"^tf32: x is float64; tensor cores round float32, so convert it first"):
        room.tf32(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), np.zeros(1))


@wide
@pytest.mark.skipif(BACKEND.name != "emulator", reason="only the emulator has a check mode")
@pytest.mark.parametrize("side", [32, 64], indirect=True)
def test_nothing_races_in_check_mode(side: int) -> None:
    x, weights, bias, output, grad = case_arrays((2, 3, 7, 6, 5, 3, 3, 1, 1), "float64")
    given = [asarray(each, "float64") for each in (x, weights, bias)]
    with options(check=True):
        for name, rung in room.CONVOLUTION_LADDER.items():
            assert_close(rung(*given, 1, 1), output, "float64", name)
        room.conv2d_backward(asarray(grad, "float64"), *given[:2], 1, 1)
