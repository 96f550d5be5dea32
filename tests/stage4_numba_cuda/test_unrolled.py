"""The unrolled text that only a device compiles, run on the emulator: it must compute what the loops there compute."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from stage4_numba_cuda.arrays import asarray, to_host
from stage4_numba_cuda.backend import BACKEND, cuda
from stage4_numba_cuda.kernels import blocked, blocked_tiles
from stage4_numba_cuda.kernels import matmul_4_fitted as fitted
from stage4_numba_cuda.launch import tiles
from tests.wide import wide

pytestmark = [wide, pytest.mark.skipif(BACKEND.name != "emulator", reason="a device runs this text anyway")]

MADE: tuple[Callable[..., Any], ...] = (
    *(fitted.multiply, fitted.blocked_product, fitted.pipeline),
    *(blocked_tiles.multiplier, blocked_tiles.blocked),
)


@pytest.fixture(autouse=True)
def unrolled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within a test, what these functions make is what they make for a device."""

    def forget() -> None:
        for function in MADE:
            function.cache_clear()  # type: ignore[attr-defined]

    forget()
    for module in (fitted, blocked_tiles):
        monkeypatch.setattr(module, "REAL", True)
    monkeypatch.setattr(fitted, "bounds", lambda *arguments: {})  # the emulator has no registers to share out
    yield
    forget()


def operands(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray, Any]:
    rng = np.random.default_rng(k)
    return rng.normal(size=(m, k)), rng.normal(size=(k, n)), cuda.to_device(np.full((m, n), np.nan))


@pytest.mark.parametrize("name", ["pipelined", "small_tile", "narrow_tile"])
def test_a_tile_of_the_ladder_unrolled_is_the_product(name: str) -> None:
    tile = fitted.TILES[name]
    for m, k, n in ((5, 1, 3), (70, 43, 131)):
        a, b, out = operands(m, k, n)
        kernel = fitted.multiply(name, "nn", False, "float64")
        kernel[tiles(m, n, tile.rows, tile.columns), tile.threads](asarray(a, "float64"), asarray(b, "float64"), out)
        np.testing.assert_allclose(to_host(out), a @ b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["wide_tile", "small_tile"])
def test_a_deep_or_wide_tile_unrolled_is_the_product_in_float32(name: str) -> None:
    tile = fitted.TILES[name]
    m, k, n = 70, 43, 261
    a, b, _ = operands(m, k, n)
    out = cuda.to_device(np.full((m, n), np.nan, np.float32))
    kernel = fitted.multiply(name, "nn", False, "float32")
    kernel[tiles(m, n, tile.rows, tile.columns), tile.threads](asarray(a, "float32"), asarray(b, "float32"), out)
    np.testing.assert_allclose(to_host(out), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("side", [32, 64])
def test_a_steps_tile_unrolled_is_the_product(side: int) -> None:
    kernel = blocked.make_partial(side, blocked_tiles.STRAIGHT)
    for m, k, n in ((5, 1, 3), (70, 75, 41)):
        a, b, _ = operands(m, k, n)
        parts = cuda.to_device(np.full((1, m, n), np.nan))
        kernel[(*tiles(m, n, side, side), 1), blocked.THREADS](asarray(a, "float64"), asarray(b, "float64"), parts)
        np.testing.assert_allclose(to_host(parts)[0], a @ b, rtol=1e-11, atol=1e-12)
