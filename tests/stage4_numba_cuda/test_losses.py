"""Stage 4's losses: the three kernels of each against stage 2 in float64 and against finite differences."""

import math
from typing import Any

import numpy as np
import pytest

from shared.checks.tolerance import compare
from shared.contract import LABEL_LOSSES, LOSSES, load_stage
from stage4_numba_cuda import losses
from stage4_numba_cuda.arrays import Array, as_labels, asarray, to_host
from stage4_numba_cuda.kernels import losses as kernels
from tests.wide import WIDE, widely

SHAPES = [(1, 1), (1, 7), (31, 10), (33, 65), (5, 1030)]

reference = load_stage("stage2_numpy").losses


def problem(name: str, shape: tuple[int, int], dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and targets (or labels) that both dtypes can hold, as float64."""
    rng = np.random.default_rng(seed)
    outputs = rng.normal(0, 3, shape).astype(dtype).astype(np.float64)
    if name in LABEL_LOSSES:
        return outputs, rng.integers(0, shape[1], shape[0])
    return outputs, rng.random(shape).astype(dtype).astype(np.float64)


def on_device(name: str, targets: np.ndarray, shape: tuple[int, int], dtype: str) -> Array:
    """Targets as the kernels take them: int32 labels, or a matrix."""
    return as_labels("test", targets, *shape) if name in LABEL_LOSSES else asarray(targets, dtype)


def for_room(name: str, targets: np.ndarray, dtype: str) -> Any:
    return targets if name in LABEL_LOSSES else asarray(targets, dtype)


def poisoned(shape: tuple[int, ...], dtype: str) -> Array:
    return asarray(np.full(shape, np.nan), dtype)


def check(op: str, got: Any, expected: Any, dtype: str, k: int, scale: float | None = None) -> None:
    comparison = compare(op, got, expected, dtype, k, scale=scale)
    assert comparison.ok, str(comparison)


def _scale(gradient: np.ndarray, shape: tuple[int, int]) -> float:
    """At least that of one row's softmax before its label's 1 is subtracted, which may leave nearly nothing."""
    return max(float(np.abs(gradient).max()), 1 / shape[0])


ROWS = [
    *((name, 1, "float64") for name in LOSSES),
    ("softmax_cross_entropy", 32, "float64"),
    *widely([(name, 32, "float64") for name in LOSSES if name != "softmax_cross_entropy"], first=0),
    ("softmax_cross_entropy", 32, "float32"),
]
"""A warp a row only once in a short run: the emulator takes seconds to compile a kernel with shuffles."""


@pytest.mark.parametrize(("name", "lanes", "dtype"), ROWS)
def test_row_losses_add_up_to_the_loss_with_a_thread_or_a_warp_a_row(name: str, lanes: int, dtype: str) -> None:
    for shape in SHAPES:
        outputs, targets = problem(name, shape, dtype, seed=1)
        rows, grad = poisoned(shape[:1], dtype), poisoned(shape, dtype)
        y = on_device(name, targets, shape, dtype)
        losses.row_losses_and_gradient(name, asarray(outputs, dtype), y, rows, grad, lanes)
        loss = getattr(reference, name)(outputs, targets)
        check(f"{name} {shape}", to_host(rows).sum(dtype=np.float64), loss, dtype, k=outputs.size, scale=10.0)
        expected = getattr(reference, f"{name}_backward")(outputs, targets)
        check(f"{name}_backward {shape}", to_host(grad), expected, dtype, k=shape[1], scale=_scale(expected, shape))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("lanes", widely([1, 32]))
def test_the_three_kernels_of_a_loss_agree(name: str, lanes: int) -> None:
    shape = (33, 65)
    outputs, targets = problem(name, shape, "float64", seed=2)
    x, y = asarray(outputs, "float64"), on_device(name, targets, shape, "float64")
    alone, together, grad = (poisoned(shape[:1], "float64"), poisoned(shape[:1], "float64"), poisoned(shape, "float64"))
    losses.row_losses(name, x, y, alone, lanes)
    losses.row_losses_and_gradient(name, x, y, together, grad, lanes)
    per_row = [getattr(reference, name)(outputs[i : i + 1], targets[i : i + 1]) / shape[0] for i in range(shape[0])]
    check(name, to_host(alone), per_row, "float64", k=65)
    check(name, to_host(together), per_row, "float64", k=65)
    gradient = getattr(losses, f"{name}_backward")(x, for_room(name, targets, "float64"))
    check(name, to_host(grad), to_host(gradient), "float64", k=65)


def test_softmax_cross_entropy_fused_gives_the_loss_and_the_gradient() -> None:
    logits, labels = problem("softmax_cross_entropy", (31, 10), "float64", seed=3)
    out = poisoned((31, 10), "float64")
    loss, grad = losses.softmax_cross_entropy_fused(asarray(logits, "float64"), labels, out=out)
    assert type(loss) is float
    assert grad is out
    check("loss", loss, reference.softmax_cross_entropy(logits, labels), "float64", k=10)
    check("grad", to_host(grad), reference.softmax_cross_entropy_backward(logits, labels), "float64", k=10)
    assert losses.softmax_cross_entropy_fused(asarray(logits, "float64"), labels)[0] == loss


EXTREME = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [-1e4, -1e4, -1e4]])
TARGETS = np.array([[1.0, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
LABELS = np.array([1, 0, 2])


@pytest.mark.parametrize(("name", "lanes", "dtype"), ROWS)
def test_extreme_logits_give_the_finite_values_of_stage_2(name: str, lanes: int, dtype: str) -> None:
    targets = LABELS if name in LABEL_LOSSES else TARGETS
    x, y = asarray(EXTREME, dtype), on_device(name, targets, (3, 3), dtype)
    rows, grad = poisoned((3,), dtype), poisoned((3, 3), dtype)
    losses.row_losses_and_gradient(name, x, y, rows, grad, lanes)
    expected = getattr(reference, name)(EXTREME, targets)
    assert math.isfinite(expected)
    check(name, to_host(rows).sum(dtype=np.float64), expected, dtype, k=9)
    check(name, to_host(grad), getattr(reference, f"{name}_backward")(EXTREME, targets), dtype, k=3)


ODD = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_nan_and_infinities_go_through_as_in_stage_2(name: str, odd: float) -> None:
    for column in (0, 1):  # the label's column and another
        outputs = np.array([[0.5, -1.0, 2.0], [1.0, 2.0, 3.0]])
        outputs[0, column] = odd
        targets = np.array([0, 1]) if name in LABEL_LOSSES else np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0]])
        x, y = asarray(outputs, "float64"), on_device(name, targets, (2, 3), "float64")
        for lanes in (1, 32) if WIDE else (1,):
            rows, grad = poisoned((2,), "float64"), poisoned((2, 3), "float64")
            losses.row_losses_and_gradient(name, x, y, rows, grad, lanes)
            check(name, to_host(rows).sum(), getattr(reference, name)(outputs, targets), "float64", k=3)
            expected = getattr(reference, f"{name}_backward")(outputs, targets)
            check(f"{name}_backward", to_host(grad), expected, "float64", k=3)


@pytest.mark.parametrize("name", widely(LOSSES))
@pytest.mark.parametrize("grid", [(1, (1, 5)), (2, (32, 2))], ids=["threads", "warps"])
def test_a_grid_smaller_than_the_batch_covers_it(name: str, grid: tuple[int, tuple[int, int]]) -> None:
    lanes = grid[1][0]
    outputs, targets = problem(name, (31, 10), "float64", seed=5)
    rows, grad = poisoned((31,), "float64"), poisoned((31, 10), "float64")
    arguments = asarray(outputs, "float64"), on_device(name, targets, (31, 10), "float64")
    kernels.FUSED[lanes][name][grid](*arguments, rows, grad)
    check(name, to_host(rows).sum(), getattr(reference, name)(outputs, targets), "float64", k=31)
    check(name, to_host(grad), getattr(reference, f"{name}_backward")(outputs, targets), "float64", k=10)
