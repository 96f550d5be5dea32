"""Is every rung right on this device? Each against float64 on the host, at the sizes that catch wrong indexing.

    matmul            every rung of LADDER in float32 and float64, and the three forms
    tensor cores      within what rounding both operands may do: 11 bits for tf32, 8 for bf16
    softmax, sums     every rung of every ladder
    steps             every rung of STEP_LADDER, five steps, beside stage 2
    equivalence       `groundup check` with this device, on a GPU

Outputs are full of NaN beforehand, so that what a kernel does not write is seen. Random data, never zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from shared.checks.equivalence import check_stage, compare_parameters
from shared.checks.scales import activation_scale, slope_scale
from shared.checks.tolerance import C, Comparison, compare, describe_tolerances, eps, failed, in_tolerances
from shared.contract import load_stage

from .. import activations, matmul, network, optimizers, reductions
from ..arrays import asarray, to_host
from .part import Part

SIZES = (
    *((1, 1, 1), (1, 7, 3), (13, 17, 11), (31, 2, 29), (33, 65, 17), (5, 97, 2)),
    *((127, 129, 131), (64, 784, 128), (10, 2048, 10), (2048, 3, 10), (257, 511, 1025)),
)
"""(M, K, N): ones, primes, one beside a power of two, K much larger than N and the reverse."""

SMALL_SIZES = (SIZES[2], SIZES[4])

UNITS = {"tf32": 2.0**-11, "bf16": 2.0**-9}
"""By how much, relatively, an operand may move when it is rounded for the tensor cores."""

STEPS = 5
LAYERS = (17, 13, 7)
FEW = 8
"""Roundings of one exponential, sum and quotient, as shared.checks.ops counts them."""

Check = Callable[[], Iterable[Comparison]]


def run(part: Part) -> None:
    """A row for each rung and dtype: how many comparisons, and the worst in units of the tolerance."""
    tiny = part.plan.tiny
    sizes = SMALL_SIZES if tiny else SIZES
    for dtype in ("float32",) if tiny or part.plan.quick else ("float32", "float64"):
        for rung, multiply in matmul.LADDER.items():
            _row(part, "matmul", rung, dtype, partial(products, multiply, "nn", dtype, sizes))
        for form in () if tiny else ("nn", "tn", "nt"):
            way = {"nn": matmul.matmul, "tn": matmul.matmul_tn, "nt": matmul.matmul_nt}[form]
            _row(part, "matmul", f"in use, {form}", dtype, partial(products, way, form, dtype, sizes))
        for rung, softmax in activations.SOFTMAX_LADDER.items():
            _row(part, "softmax", rung, dtype, partial(softmaxes, softmax, dtype, sizes))
        for rung, backward in activations.SOFTMAX_BACKWARD_LADDER.items():
            _row(part, "softmax_backward", rung, dtype, partial(softmax_slopes, backward, dtype, sizes))
        for rung, column_sums in reductions.COLUMN_SUMS_LADDER.items():
            _row(part, "column_sums", rung, dtype, partial(sums, column_sums, dtype, sizes))
        for rung, total in reductions.TOTAL_LADDER.items():
            _row(part, "total", rung, dtype, partial(totals, total, dtype, sizes))
    for precision, multiply in getattr(matmul, "TENSOR_CORES", {}).items():
        _row(part, "tensor cores", precision, "float32", partial(rounded_products, multiply, precision, sizes))
    for dtype in ("float32", "float64"):
        for rung in network.STEP_LADDER:
            _row(part, "step", rung, dtype, partial(steps, rung, dtype))
    if tiny:
        part.skip("equivalence", "`groundup check 4` makes these comparisons, on the emulator, too")
    elif not part.plan.quick:
        stage, reference = load_stage("4"), load_stage("2")
        for dtype in ("float64", "float32"):
            _row(part, "equivalence", "all", dtype, lambda: check_stage(stage, reference, dtype, steps=10).comparisons)  # noqa: B023
    wrong = [row for row in part.rows if not row["ok"]]
    part.finish("failed" if wrong else "ok", "; ".join(f"{row['what']} {row['rung']}: {row['worst']}" for row in wrong))


def _row(part: Part, what: str, rung: str, dtype: str, check: Check) -> None:
    try:
        found = list(check())
    except Exception as error:  # a rung that cannot run is a finding about that rung
        found = [failed(what, f"raised {type(error).__name__}: {error}")]
    worst = max(found, key=lambda comparison: comparison.tolerances)
    part.add(
        f"{what}, {rung}, {dtype}: {'ok' if worst.ok else 'WRONG'}, {len(found)} comparisons, "
        + (describe_tolerances(worst.tolerances) if worst.ok else str(worst)),
        what=what, rung=rung, dtype=dtype, ok=worst.ok, comparisons=len(found), tolerances=worst.tolerances,
        worst=str(worst),
    )  # fmt: skip


def products(multiply: Any, form: str, dtype: str, sizes: Iterable[tuple[int, int, int]]) -> Iterator[Comparison]:
    """One rung at every size."""
    for m, k, n in sizes:
        a, b = random((m, k), dtype), random((k, n), dtype)
        out = poisoned((m, n), dtype)
        left, right = (a.T if form == "tn" else a), (b.T if form == "nt" else b)
        multiply(give(left, dtype), give(right, dtype), out=out)
        scale = np.abs(a) @ np.abs(b)
        yield compare("matmul", to_host(out), a @ b, dtype, k, scale=scale, case=f"{m} x {k} x {n}")


def rounded_products(multiply: Any, precision: str, sizes: Iterable[tuple[int, int, int]]) -> Iterator[Comparison]:
    """The same where the operands are rounded first: each product of two numbers may be off by twice the unit."""
    unit = UNITS[precision]
    for m, k, n in sizes:
        a, b = random((m, k), "float32"), random((k, n), "float32")
        out = poisoned((m, n), "float32")
        multiply(give(a, "float32"), give(b, "float32"), out=out)
        allowed = (2 * unit + unit**2 + C * eps("float32") * k**0.5) * (np.abs(a) @ np.abs(b))
        got, expected = to_host(out).astype(np.float64), a @ b
        apart = in_tolerances(got, expected, allowed)
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))
        case = f"{m} x {k} x {n}, {precision}"
        yield Comparison("matmul", None, at, got[at], expected[at], float(apart[at]), case=case)


def softmaxes(softmax: Any, dtype: str, sizes: Iterable[tuple[int, int, int]]) -> Iterator[Comparison]:
    """One rung of softmax on rows of every width."""
    for shape in shapes(sizes):
        z = 4 * random(shape, dtype)  # by a power of two, so that the dtype still holds it
        out = poisoned(shape, dtype)
        softmax(give(z, dtype), out=out)
        expected = host_softmax(z)
        scale = activation_scale("softmax", z, expected)
        yield compare("softmax", to_host(out), expected, dtype, FEW + shape[1], scale=scale, case=str(shape))


def softmax_slopes(backward: Any, dtype: str, sizes: Iterable[tuple[int, int, int]]) -> Iterator[Comparison]:
    """One rung of its derivative: s (g - sum of g s)."""
    for shape in shapes(sizes):
        z, grad = random(shape, dtype), random(shape, dtype)
        output = host_softmax(z).astype(dtype).astype(np.float64)
        out = poisoned(shape, dtype)
        backward(give(grad, dtype), give(z, dtype), give(output, dtype), out=out)
        expected = output * (grad - np.sum(grad * output, axis=1, keepdims=True))
        scale = slope_scale("softmax", grad, output)
        yield compare("softmax_backward", to_host(out), expected, dtype, FEW + shape[1], scale=scale, case=str(shape))


def sums(column_sums: Any, dtype: str, sizes: Iterable[tuple[int, int, int]]) -> Iterator[Comparison]:
    """One rung of the sums over the rows."""
    for shape in shapes(sizes):
        matrix, out = random(shape, dtype), poisoned((shape[1],), dtype)
        column_sums(give(matrix, dtype), out)
        scale = np.abs(matrix).sum(axis=0)
        yield compare("column_sums", to_host(out), matrix.sum(axis=0), dtype, shape[0], scale=scale, case=str(shape))


def totals(total: Any, dtype: str, sizes: Iterable[tuple[int, int, int]]) -> Iterator[Comparison]:
    """One rung of the sum of a vector."""
    for rows, columns in shapes(sizes):
        vector, out = random((rows * columns,), dtype), poisoned((1,), dtype)
        total(give(vector, dtype), out)
        scale = np.abs(vector).sum()
        yield compare("total", to_host(out), [vector.sum()], dtype, vector.size, scale=scale, case=str(vector.size))


def steps(rung: str, dtype: str) -> Iterator[Comparison]:
    """The parameters after five steps with momentum, beside stage 2's, which takes the same in float64."""
    stage2 = load_stage("2")
    mine = network.Network(list(LAYERS), seed=1, dtype=dtype)
    theirs = stage2.network.Network(list(LAYERS), seed=1, dtype="float64")
    if dtype == "float32":
        theirs = stage2.network.Network.from_parameters([to_host(p) for p in mine.parameters], dtype="float64")
    own, other = optimizers.SGD(0.1, momentum=0.9), stage2.optimizers.SGD(0.1, momentum=0.9)
    random_numbers = np.random.default_rng(2)
    for _ in range(STEPS):
        x, y = random_numbers.random((9, LAYERS[0])).astype("float32"), random_numbers.integers(0, LAYERS[-1], 9)
        network.STEP_LADDER[rung](mine, asarray(x, dtype), y, own, None)
        theirs.train_step(x.astype(np.float64), y, other)
    got = [to_host(p) for p in mine.parameters]
    yield from compare_parameters(got, theirs.parameters, dtype, steps=STEPS, longest_sum=max(LAYERS))


def random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Normal random numbers, the same for a shape, that the dtype holds exactly, in float64."""
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype).astype(np.float64)


def give(values: np.ndarray, dtype: str) -> Any:
    """The values on the device, row after row."""
    return asarray(np.ascontiguousarray(values), dtype)


def poisoned(shape: tuple[int, ...], dtype: str) -> Any:
    """A device array of NaN."""
    return asarray(np.full(shape, np.nan), dtype)


def shapes(sizes: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Matrices of those sizes' rows and columns."""
    return [(m, n) for m, _, n in sizes]


def host_softmax(z: np.ndarray) -> np.ndarray:
    """In float64."""
    exponentials = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))
