"""Stage 3's own of convolution: Winograd's matrices and rounding, and batches on both sides of a register's lanes."""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from shared.checks import winograd
from tests.stages import REASONS, USABLE_STAGES
from tests.wide import widely

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")
if "stage3_c" in USABLE_STAGES:
    from stage3_c import convolution

ROOT = Path(__file__).resolve().parents[2]
CASES = [  # batch, channels, height, width, filters, (kernel), stride, padding
    (1, 1, 3, 3, 1, (3, 3), 1, 0),
    (17, 2, 7, 5, 3, (3, 3), 1, 1),
    (33, 1, 9, 9, 6, (5, 5), 1, 2),
    (2, 17, 13, 6, 19, (3, 3), 1, (0, 2)),
    (16, 3, 10, 11, 5, (5, 4), (3, 1), 2),
    (5, 33, 6, 6, 70, (3, 3), 1, 3),
    (9, 4, 8, 8, 9, (1, 1), 2, 0),
]


@pytest.mark.parametrize("outputs", [2, 4])
def test_winograds_transforms_are_a_correlation_exactly(outputs: int) -> None:
    assert winograd.is_exact(outputs)
    at, g, bt = winograd.matrices(outputs)
    d, weights = [Fraction(n * n - 7) for n in range(len(bt))], [Fraction(2), Fraction(-3), Fraction(5, 7)]
    products = [
        sum(a * b for a, b in zip(g_row, weights, strict=True)) * sum(a * b for a, b in zip(bt_row, d, strict=True))
        for g_row, bt_row in zip(g, bt, strict=True)
    ]
    got = [sum(a * b for a, b in zip(row, products, strict=True)) for row in at]
    assert got == [sum(d[i + k] * weights[k] for k in range(3)) for i in range(outputs)]
    if outputs == 2:
        assert winograd.two_outputs(d, weights) == got


def test_the_header_is_what_the_script_writes(tmp_path: Path) -> None:
    written = tmp_path / "winograd.h"
    script = str(ROOT / "scripts" / "derive_winograd.py")
    subprocess.run([sys.executable, script, str(written)], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert written.read_text() == (ROOT / "stage3_c" / "csrc" / "winograd.h").read_text()


def reference(x: np.ndarray, weights: np.ndarray, stride: tuple[int, int], padding: tuple[int, int]) -> np.ndarray:
    """The sums without the bias, in float64."""
    (top, left), (kh, kw) = padding, weights.shape[2:]
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, top), (left, left)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kh, kw), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[:, :, :: stride[0], :: stride[1]], weights.astype(np.float64))


def both(value: int | tuple[int, int]) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_every_rung_stays_within_the_rounding_of_its_sums(case: tuple, dtype: str) -> None:
    batch, channels, height, width, filters, kernel, stride, padding = case
    rng = np.random.default_rng(height)
    x = rng.normal(size=(batch, channels, height, width)).astype(dtype)
    weights = rng.normal(size=(filters, channels, *kernel)).astype(dtype)
    bias = rng.normal(size=filters).astype(dtype)
    shift = bias.astype(np.float64)[:, np.newaxis, np.newaxis]
    expected = reference(x, weights, both(stride), both(padding)) + shift
    terms = channels * kernel[0] * kernel[1]
    plain = (
        2 * np.sqrt(terms + 1) * np.finfo(dtype).eps * (np.abs(x).max() * np.abs(weights).max() * np.sqrt(terms) + 1)
    )
    for name, rung in convolution.CONVOLUTION_LADDER.items():
        out = np.full(expected.shape, np.nan, dtype)
        assert rung(x, weights, bias, stride, padding, out=out) is out
        bound = plain * {"winograd2": winograd.growth(2)}.get(name, 1)
        if name in ("winograd4", "threads"):
            bound = plain * winograd.growth(4)
        assert np.abs(out - expected).max() <= bound, name


@pytest.mark.parametrize(("batch", "channels"), widely([(1, 16), (16, 17), (70, 2), (33, 40)], first=3))
def test_the_gradients_are_the_slopes_of_the_forward_pass(batch: int, channels: int) -> None:
    """The forward pass is linear in x and in the weights, so <grad, conv(x')> must be <dx, x'> for any x'."""
    rng = np.random.default_rng(batch)
    for kernel, stride, padding in [((3, 3), 1, 1), ((3, 3), 1, 0), ((5, 2), (2, 1), (2, 0)), ((2, 3), 3, 1)]:
        x, other = rng.normal(size=(2, batch, channels, 9, 8))
        weights, other_weights = rng.normal(size=(2, 18, channels, *kernel))
        nothing = np.zeros(18)
        y = convolution.conv2d(x, weights, nothing, stride, padding)
        grad = rng.normal(size=y.shape)
        dx, dw, db = convolution.conv2d_backward(grad, x, weights, stride, padding)
        assert dx is not None
        by_x = (grad * convolution.direct(other, weights, nothing, stride, padding)).sum()
        by_weights = (grad * convolution.direct(x, other_weights, nothing, stride, padding)).sum()
        np.testing.assert_allclose((dx * other).sum(), by_x, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose((dw * other_weights).sum(), by_weights, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(db, grad.sum(axis=(0, 2, 3)), rtol=1e-12, atol=1e-11)
        assert convolution.conv2d_backward(grad, x, weights, stride, padding, needs_grad_input=False)[0] is None


def test_a_struct_of_sizes_is_the_one_of_the_header() -> None:
    header = (ROOT / "stage3_c" / "csrc" / "groundup.h").read_text()
    body = header[: header.index("} convolution;")].rpartition("typedef struct {")[2]
    names = [name.strip() for line in body.split(";") for name in line.replace("size_t", "").split(",") if name.strip()]
    assert names == [name for name, _ in convolution.CConvolution._fields_]
