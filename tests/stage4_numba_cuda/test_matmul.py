"""Stage 4's products: every kernel in every form, fused epilogues, tensor cores, and what is refused.

tests/floors/test_matmul.py holds all stages' ladders to one standard; here is what only kernels have.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shared.checks.tolerance import compare, eps
from shared.contract import ACTIVATIONS, load_stage
from stage4_numba_cuda import matmul as products
from stage4_numba_cuda.arrays import asarray, empty, to_host
from stage4_numba_cuda.backend import BACKEND, cuda
from stage4_numba_cuda.kernels import matmul_3_warp, matmul_5_tensor
from stage4_numba_cuda.kernels import matmul_4_fitted as fitted
from stage4_numba_cuda.launch import tiles
from tests.wide import wide, widely

pytestmark = pytest.mark.skipif(
    BACKEND.name == "simulator", reason="thousands of threads take Numba's simulator minutes"
)

reference = load_stage("stage2_numpy").activations

SIZES = [(1, 1, 1), (5, 97, 3), (31, 2, 29), (129, 33, 37), (130, 16, 131)]
"""(M, K, N): one number, K much larger than N, two past a tile of 128, K of whole tiles and one more."""

WIDE_SIZES = [(4, 4, 4), (8, 36, 136), (132, 20, 132)]
"""Rows of a multiple of four, which 128-bit loads need."""

FORMS = products.FORMS
FLOATS = ("float32", "float64")


def poisoned(shape: tuple[int, ...], dtype: str) -> Any:
    return cuda.to_device(np.full(shape, np.nan, dtype))


def operands(m: int, k: int, n: int, form: str, dtype: str) -> tuple[np.ndarray, np.ndarray, Any, Any]:
    """a (m, k) and b (k, n) as float64, and both as the form wants them, on the device."""
    rng = np.random.default_rng(m * 10_007 + k * 101 + n)
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    given_a = np.ascontiguousarray(a.T) if form == "tn" else a
    given_b = np.ascontiguousarray(b.T) if form == "nt" else b
    return a.astype(np.float64), b.astype(np.float64), asarray(given_a, dtype), asarray(given_b, dtype)


def assert_close(name: str, got: Any, expected: np.ndarray, dtype: str, k: int, scale: np.ndarray) -> None:
    comparison = compare(name, to_host(got), expected, dtype, k, scale=scale)
    assert comparison.ok, str(comparison)


def assert_rung_multiplies(name: str, form: str, dtype: str, vector: bool, sizes: list[tuple[int, int, int]]) -> None:
    for m, k, n in sizes:
        a, b, given_a, given_b = operands(m, k, n, form, dtype)
        out = poisoned((m, n), dtype)
        products.run_rung(name, form, given_a, given_b, out, vector)
        assert_close(f"{name} {form} {m, k, n}", out, a @ b, dtype, k, np.abs(a) @ np.abs(b))


SOME = {("tiled_32", "tn", "float64", False)}
"""The others take long to compile, and are wide; tests/floors/test_matmul.py has every rung as ab."""


def cases() -> list[Any]:
    """Every kernel that knows three forms, with scalar loads and with wide ones where it has both."""
    made = []
    for rung in products.RUNGS:
        if rung in products.TENSOR_LADDER:
            continue
        flavours = (False, True) if rung in ("vectorised", "conflict_free", "warp_tiled", *fitted.TILES) else (False,)
        made += [
            pytest.param(rung, form, dtype, vector, marks=() if (rung, form, dtype, vector) in SOME else wide)
            for form in FORMS
            for dtype in FLOATS
            for vector in flavours
            if (rung, dtype) != ("wide_tile", "float64")  # which is the kernel of `pipelined`
        ]
    return made


@pytest.mark.parametrize(("rung", "form", "dtype", "vector"), cases())
def test_every_rung_multiplies_in_every_form_with_either_kind_of_loads(
    rung: str, form: str, dtype: str, vector: bool
) -> None:
    assert_rung_multiplies(rung, form, dtype, vector, WIDE_SIZES if vector else SIZES)


@pytest.mark.parametrize("tile", fitted.TILES.values())
@pytest.mark.parametrize("dtype", FLOATS)
def test_tiles_of_every_rung_fit_into_a_blocks_shared_memory(tile: fitted.Tile, dtype: str) -> None:
    if tile.columns == 256 and dtype == "float64":
        pytest.skip("there is no wide tile in float64")
    own = fitted.in_dtype(tile, dtype)
    numbers = 2 * own.depth * (own.rows + own.columns + 2 * fitted.PAD)
    assert numbers * np.dtype(dtype).itemsize <= 48 * 1024
    assert own.threads * own.groups * 4 * fitted.ROWS == own.rows * own.columns


@pytest.mark.parametrize("function", ["matmul", "matmul_tn", "matmul_nt"])
def test_products_refuse_two_dtypes_naming_both(function: str) -> None:
    a, b = asarray(np.ones((2, 2)), "float32"), asarray(np.ones((2, 2)), "float64")
    with pytest.raises(TypeError, match=rf"{function}: a is float32 but b is float64; convert one of them"):
        getattr(products, function)(a, b)


def activated(activation: int, z: np.ndarray) -> np.ndarray:
    return getattr(reference, ACTIVATIONS[activation])(z)


def slope(activation: int, output: np.ndarray) -> np.ndarray:
    return getattr(reference, f"{ACTIVATIONS[activation]}_backward")(np.ones_like(output), output, output)


FUSED_SIZES = [(37, 19, 45), (64, 128, 10)]
"""(batch, in, out): one for tiles of 32 x 32, one narrow enough for 16 x 16."""


@pytest.mark.parametrize("activation", range(5), ids=ACTIVATIONS[:5])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=wide)])
def test_forward_fused_is_the_activation_of_the_layer(dtype: str, activation: int) -> None:
    for m, k, n in FUSED_SIZES:
        x, w, given_x, given_w = operands(m, k, n, "nn", dtype)
        bias = np.random.default_rng(n).normal(size=n).astype(dtype)
        out = poisoned((m, n), dtype)
        products.forward_fused(given_x, given_w, asarray(bias, dtype), activation, out)
        assert_forward(out, x, w, bias, activation, dtype)


def assert_forward(out: Any, x: np.ndarray, w: np.ndarray, bias: np.ndarray, activation: int, dtype: str) -> None:
    """No activation is steeper than 1: what rounding may do to z it may do to the output, once rounded itself."""
    expected = activated(activation, x @ w + bias)
    scale = np.abs(x) @ np.abs(w) + np.abs(bias) + np.abs(expected)
    assert_close(f"forward_fused {ACTIVATIONS[activation]}", out, expected, dtype, x.shape[1] + 2, scale)


@pytest.mark.parametrize("activation", range(5), ids=ACTIVATIONS[:5])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=wide)])
def test_backward_fused_goes_back_through_mask_and_activation(dtype: str, activation: int) -> None:
    for m, k, n in FUSED_SIZES:
        for masked in (False, True):
            grad, w, output, mask, given, out = backward_case(m, k, n, dtype, masked)
            products.backward_fused(given[0], given[1], given[2], activation, given[3] if masked else None, out)
            assert_backward(out, grad, w, output, mask, activation, dtype)


def backward_case(m: int, k: int, n: int, dtype: str, masked: bool) -> tuple[Any, ...]:
    """grad (m, n), weights (k, n), output and mask (m, k) as float64, the same on the device, and where to write."""
    grad, w_t, given_grad, given_w = operands(m, n, k, "nt", dtype)
    rng = np.random.default_rng(k)
    output = rng.uniform(-1, 1, size=(m, k)).astype(dtype)
    mask = np.where(rng.random((m, k)) < 0.5, 0, 2).astype(dtype)
    given = (given_grad, given_w, asarray(output, dtype), asarray(mask, dtype))
    kept = mask.astype(np.float64) if masked else np.ones((m, k))
    return grad, w_t, output.astype(np.float64), kept, given, poisoned((m, k), dtype)


def assert_backward(
    out: Any, grad: np.ndarray, w_t: np.ndarray, output: np.ndarray, mask: np.ndarray, activation: int, dtype: str
) -> None:
    factor = mask * slope(activation, output)
    scale = (np.abs(grad) @ np.abs(w_t)) * mask  # the slope itself is rounded, by as much as 1 is
    expected = (grad @ w_t) * factor
    assert_close(f"backward_fused {ACTIVATIONS[activation]}", out, expected, dtype, grad.shape[1] + 3, scale)


@pytest.mark.parametrize(
    ("dtype", "vector"),
    widely([("float64", True), ("float64", False), ("float32", True), ("float32", False)], first=0),
)
def test_warp_tile_fuses_the_same_epilogues(dtype: str, vector: bool) -> None:
    m, k, n = (132, 20, 136) if vector else (131, 21, 37)
    for activation in (1, 4):
        x, w, given_x, given_w = operands(m, k, n, "nn", dtype)
        bias = np.random.default_rng(n).normal(size=n).astype(dtype)
        out = poisoned((m, n), dtype)
        kernel = matmul_3_warp.forward(vector, dtype, activation)
        kernel[tiles(m, n, 128, 128), 256](given_x, given_w, asarray(bias, dtype), out)
        assert_forward(out, x, w, bias, activation, dtype)
    for masked in (False, True):
        grad, w_t, output, mask, given, out = backward_case(m, k, n, dtype, masked)
        kernel = matmul_3_warp.backward(vector, dtype, 4, masked)
        kernel[tiles(m, k, 128, 128), 256](*given, out)
        assert_backward(out, grad, w_t, output, mask, 4, dtype)


def assert_on_tensor_cores(precision: str, got: Any, a: np.ndarray, b: np.ndarray) -> None:
    """Either factor of each product is rounded by its own eps; the products are then summed in float32."""
    k, scale = a.shape[1], np.abs(a) @ np.abs(b)
    unit = matmul_5_tensor.EPSILON[precision]
    bound = (2 * unit + unit**2) * scale + 4 * eps("float32") * np.sqrt(k) * scale
    error = np.abs(to_host(got) - a @ b)
    assert (error <= bound).all(), f"{precision}: off by up to {(error / bound).max()} times what rounding explains"
    assert error.max() > 16 * eps("float32"), f"{precision}: closer than rounded factors can be"


@pytest.mark.parametrize("precision", widely(["tf32", "bf16"], first=0))
def test_tensor_cores_are_exact_for_small_whole_numbers(precision: str) -> None:
    """Such factors need no rounding, so a result in the wrong place or a k left out shows undiluted."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(-8, 9, (70, 45)), rng.integers(-8, 9, (45, 139))
    got = products.TENSOR_CORES[precision](asarray(a), asarray(b))
    assert np.array_equal(to_host(got), (a @ b).astype(np.float32))


@wide
@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_tensor_cores_know_every_form(precision: str, form: str, vector: bool) -> None:
    for m, k, n in WIDE_SIZES[1:] if vector else SIZES[1:]:
        a, b, given_a, given_b = operands(m, k, n, form, "float32")
        out = poisoned((m, n), "float32")
        products.run_rung(precision, form, given_a, given_b, out, vector)
        assert_on_tensor_cores(precision, out, a, b)


@pytest.mark.parametrize(
    ("shape", "backend", "place", "wide"),
    [
        ((4, 8), "gpu", 4096, True),
        ((4, 6), "gpu", 4096, False),
        ((4, 8), "gpu", 4100, False),
        ((4, 8), "emulator", 4096, False),
    ],
)
def test_wide_loads_want_a_gpu_and_rows_that_begin_at_a_multiple_of_sixteen(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], backend: str, place: int, wide: bool
) -> None:
    monkeypatch.setattr(products, "BACKEND", SimpleNamespace(name=backend))
    monkeypatch.setattr(products, "address", lambda matrix: place)
    assert products.may_load_wide(empty(shape, "float32")) is wide


@pytest.mark.parametrize(
    ("backend", "shape", "expected"),
    [
        ("gpu", (4096, 4096), "wide_tile"),
        ("gpu", (1024, 1024), "small_tile"),
        ("gpu", (512, 512), "narrow_tile"),
        ("gpu", (4096, 10), "tiled_16"),
        ("gpu", (64, 10), "tiled_16"),
        ("emulator", (512, 512), "tiled_32"),
        ("emulator", (10, 64), "tiled_16"),
    ],
)
def test_multiply_takes_the_kernel_that_suits_backend_and_size(
    monkeypatch: pytest.MonkeyPatch, backend: str, shape: tuple[int, int], expected: str
) -> None:
    class Chosen:
        name = backend

    taken = []
    monkeypatch.setattr(products, "BACKEND", Chosen)
    monkeypatch.setattr(products, "run_rung", lambda name, *rest, **named: taken.append(name))
    products.multiply("nn", *[SimpleNamespace(shape=shape, dtype=np.dtype("float32"))] * 3)
    assert taken == [expected]
