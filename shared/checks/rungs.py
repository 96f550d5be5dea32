"""Every rung of a stage's ladders alone, beside the reference: also the rungs that no operation takes by itself.

    matmul            every rung of LADDER, and the three products in use
    softmax           every rung, forward and backward
    column_sums       every rung of the sums over the rows
    total             every rung of the sum of a vector
    tensor cores      the products that round their factors first: on a GPU every rung, else the one in use
    step              every rung of STEP_LADDER: parameters and running statistics after a few steps
    outputs           the outputs from the third call on, which a GPU replays from a graph, also after a step
    resident          runs with the data on the device, many steps at once: resident.py

image_rungs.py has the rungs of convolutions, pooling and batch normalisation.

`check_stage` compares each operation at small sizes, by the rung that it takes there. These checks are for a device:
they also have sizes of several blocks. Every result is written into an array full of NaN, so that a number which a
kernel does not write is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shared.checks.ops import FAR, FEW
from shared.checks.pair import Pair
from shared.checks.problems import SMALL, Problem, Sides, dense_problem, random_problem
from shared.checks.resident import LARGE, RUNS, resident_run
from shared.checks.scales import activation_scale, slope_scale
from shared.checks.tolerance import C, Comparison, compare, eps, failed, in_tolerances
from shared.checks.trajectory import trajectory
from shared.contract import Stage, load_part, stage_facts

SIZES = (
    *((1, 1, 1), (1, 7, 3), (13, 17, 11), (31, 2, 29), (33, 65, 17), (5, 97, 2)),
    *((127, 129, 131), (64, 784, 128), (10, 2048, 10), (2048, 3, 10), (257, 511, 1025)),
)
"""(M, K, N): ones, primes, one beside a power of two, K much larger than N and the reverse, and several blocks."""

SMALL_SIZES = (SIZES[2], SIZES[4])

ROUNDING = {"tf32": 2.0**-11, "bf16": 2.0**-8, "f16": 2.0**-11}
"""By how much, relatively, rounding to this format may move a factor: half of the gap after 1."""

LEAST_ROUNDING = {"f16": 2.0**-25}
"""By how much rounding may move a factor however small: half of the gap between a format's smallest numbers. In formats
with float32's exponent that gap does not matter."""

STEPS = 3
PROBLEMS = ("dense layers", *SMALL)
TINY_PROBLEMS = ("dense layers", "residual block", "strides, dropout")


@dataclass(frozen=True)
class RungCheck:
    """One rung of one ladder in one dtype. compare: makes the comparisons, one for each size or array."""

    what: str
    rung: str
    dtype: str
    compare: Callable[[], Iterable[Comparison]]

    def run(self) -> list[Comparison]:
        """The comparisons; a rung that raises is a failed comparison, which quotes the exception."""
        try:
            return list(self.compare())
        except Exception as error:  # a rung that cannot run is a finding about that rung
            return [failed(self.what, f"raised {type(error).__name__}: {error}")]


def rung_checks(
    stage: Stage, reference: Stage, dtype: str, sizes: Sequence[tuple[int, int, int]] = SIZES
) -> Iterator[RungCheck]:
    """A check for each rung of each ladder that the stage has; nothing is computed until a check runs.

    reference: computes in float64, and has no ladders of its own but for matmul
    dtype: what the stage computes in; the tensor cores are checked with float32
    sizes: (M, K, N); all but the products use M rows of N columns
    """
    pair = Pair(stage, reference, dtype)
    matmul, activations, reductions = stage.matmul, stage.activations, part_of(stage, "reductions")
    in_use = {"nn": stage.matmul.matmul, "tn": stage.matmul.matmul_tn, "nt": stage.matmul.matmul_nt}

    def checks(operation: str, ladder: Iterable[tuple[str, Any]], compare: Callable[[Any], Any]) -> Iterator[RungCheck]:
        return (RungCheck(operation, rung, dtype, partial(compare, run)) for rung, run in ladder)

    yield from checks("matmul", matmul.LADDER.items(), lambda run: products(pair, run, "nn", sizes))
    for form, multiply in in_use.items():
        yield RungCheck("matmul", f"in use, {form}", dtype, partial(products, pair, multiply, form, sizes))
    shapes = [(m, n) for m, _, n in sizes]
    yield from checks("softmax", _ladder(activations, "SOFTMAX_LADDER"), lambda run: softmaxes(pair, run, shapes))
    yield from checks(
        "softmax_backward",
        _ladder(activations, "SOFTMAX_BACKWARD_LADDER"),
        lambda run: softmax_slopes(pair, run, shapes),
    )
    yield from checks("column_sums", _ladder(reductions, "COLUMN_SUMS_LADDER"), lambda run: sums(pair, run, shapes))
    yield from checks("total", _ladder(reductions, "TOTAL_LADDER"), lambda run: totals(pair, run, shapes))
    if dtype == "float32":
        for rung, precision, multiply in tensor_rungs(stage):
            compare = partial(rounded_products, pair, multiply, precision, sizes)
            yield RungCheck("tensor cores", rung, dtype, compare)
    names = TINY_PROBLEMS if sizes == SMALL_SIZES else PROBLEMS
    yield from checks("step", _ladder(stage.network, "STEP_LADDER"), lambda run: steps(pair, run, names))
    yield RungCheck("outputs", "replayed", dtype, partial(replays, pair, names))
    if getattr(stage.network.Network, "resident", None) is not None:
        large = LARGE if dtype == "float32" and stage_facts(stage.name).get("backend") == "gpu" else {}
        for name, run in {**RUNS, **large}.items():
            yield RungCheck("resident", name, dtype, partial(resident_run, pair, run))


def part_of(stage: Stage, name: str) -> Any:
    """A module that only some stages have; None where this stage has none."""
    try:
        return load_part(stage.name, name)
    except ModuleNotFoundError:
        return None


def _ladder(room: Any, name: str) -> Iterable[tuple[str, Any]]:
    return getattr(room, name, {}).items()


def tensor_rungs(stage: Stage) -> Iterator[tuple[str, str, Any]]:
    """(name, precision, product) of every rung on tensor cores where the stage runs on a GPU; else of those in use,
    since an emulator takes seconds to compile each."""
    room: Any = stage.matmul
    if stage_facts(stage.name).get("backend") == "gpu":
        for precision in room.tensor_precisions():
            for rung, multiply in room.TENSOR_LADDER[precision].items():
                yield f"{precision} {rung}", precision, multiply
    else:
        for precision, multiply in _ladder(room, "TENSOR_CORES"):
            yield precision, precision, multiply


def products(pair: Pair, multiply: Any, form: str, sizes: Iterable[tuple[int, int, int]]) -> Iterator[Comparison]:
    """One product at every size. form: nn is ab, tn is aᵀb with aᵀ given as a, nt is abᵀ with bᵀ given as b."""
    for m, k, n in sizes:
        a, b = normal(pair, (m, k)), normal(pair, (k, n))
        left, right = pair.to_stage(a.T if form == "tn" else a), pair.to_stage(b.T if form == "nt" else b)
        run = partial(written, pair, (m, n), partial(multiply, left, right))
        yield pair.check("matmul", run, a @ b, k, np.abs(a) @ np.abs(b), case=f"{m} x {k} x {n}")


def rounded_products(
    pair: Pair, multiply: Any, precision: str, sizes: Iterable[tuple[int, int, int]]
) -> Iterator[Comparison]:
    """The product of a tensor core at every size."""
    for m, k, n in sizes:
        a, b = normal(pair, (m, k)), normal(pair, (k, n))
        left, right = pair.to_stage(a), pair.to_stage(b)
        got = pair.from_stage(written(pair, (m, n), partial(multiply, left, right)))
        yield compare_rounded("matmul", got, a, b, precision, case=f"{m} x {k} x {n}, {precision}")


def compare_rounded(
    op: str, got: np.ndarray, a: np.ndarray, b: np.ndarray, precision: str, case: str = ""
) -> Comparison:
    """Compare a float32 product with a @ b in float64, where both factors were rounded to tf32, bf16 or f16 first.

    Rounding moves each factor by at most the share u of it, and so each of their products by at most 2u + u²; a small
    f16 by LEAST_ROUNDING, whatever its share. The sum of the products is rounded as in any other float32 product.
    """
    moved_a, moved_b = (rounding_error(np.abs(each), precision) for each in (a, b))
    size = np.abs(a) @ np.abs(b)
    allowed = moved_a @ np.abs(b) + np.abs(a) @ moved_b + moved_a @ moved_b
    allowed += C * eps("float32") * a.shape[1] ** 0.5 * size
    expected = a @ b
    if got.shape != expected.shape:
        return failed(op, f"got shape {got.shape}, expected {expected.shape}", case=case)
    apart = in_tolerances(np.asarray(got, np.float64), expected, allowed)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))
    return Comparison(op, None, at, float(got[at]), float(expected[at]), float(apart[at]), case=case)


def rounding_error(size: np.ndarray, precision: str) -> np.ndarray:
    """By how much rounding to this format may move numbers of this size."""
    return np.maximum(ROUNDING[precision] * size, LEAST_ROUNDING.get(precision, 0.0))


def softmaxes(pair: Pair, softmax: Any, shapes: Iterable[tuple[int, int]]) -> Iterator[Comparison]:
    """Softmax of rows of every width: of small numbers, and of rows far below and far above 0."""
    for shape in shapes:
        small = 4 * normal(pair, shape)  # by a power of two, so that the dtype still holds it
        signs = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)[:, np.newaxis]
        for z, case in ((small, f"{shape}"), (pair.rounded(small + FAR * signs), f"{shape}, rows far apart")):
            expected = pair.from_reference(pair.reference.activations.softmax(pair.to_reference(z)))
            own_z, scale = pair.to_stage(z), activation_scale("softmax", z, expected)
            run = partial(written, pair, shape, partial(softmax, own_z))
            yield pair.check("softmax", run, expected, FEW + shape[1], scale, case=case)


def softmax_slopes(pair: Pair, backward: Any, shapes: Iterable[tuple[int, int]]) -> Iterator[Comparison]:
    """The derivative of softmax, s (g - sum of g s), for rows of every width."""
    for shape in shapes:
        z, grad = normal(pair, shape), normal(pair, shape)
        theirs = pair.reference.activations
        output = pair.rounded(pair.from_reference(theirs.softmax(pair.to_reference(z))))
        expected = pair.from_reference(
            theirs.softmax_backward(pair.to_reference(grad), pair.to_reference(z), pair.to_reference(output))
        )
        given = pair.to_stage(grad), pair.to_stage(z), pair.to_stage(output)
        scale = slope_scale("softmax", grad, output)
        run = partial(written, pair, shape, partial(backward, *given))
        yield pair.check("softmax_backward", run, expected, FEW + shape[1], scale, case=str(shape))


def sums(pair: Pair, column_sums: Any, shapes: Iterable[tuple[int, int]]) -> Iterator[Comparison]:
    """The sums over the rows of matrices of every shape."""
    for shape in shapes:
        matrix = normal(pair, shape)
        run = partial(written, pair, shape[1:], partial(column_sums, pair.to_stage(matrix)))
        scale = np.abs(matrix).sum(axis=0)
        yield pair.check("column_sums", run, matrix.sum(axis=0), shape[0], scale, case=str(shape))


def totals(pair: Pair, total: Any, shapes: Iterable[tuple[int, int]]) -> Iterator[Comparison]:
    """The sums of vectors with as many numbers as matrices of these shapes."""
    for rows, columns in shapes:
        vector = normal(pair, (rows * columns,))
        run = partial(written, pair, (1,), partial(total, pair.to_stage(vector)))
        yield pair.check("total", run, [vector.sum()], vector.size, np.abs(vector).sum(), case=str(vector.size))


def steps(pair: Pair, step: Any, names: Sequence[str]) -> Iterator[Comparison]:
    """Parameters and running statistics after a few steps by this rung, beside the reference's own steps."""
    for problem in problems(pair, names):
        yield from trajectory(pair, problem, "Adam" if problem.title in SMALL else "SGD", STEPS, take=step)


def replays(pair: Pair, names: Sequence[str]) -> Iterator[Comparison]:
    """`forward` again and again: the same bits, and after a step those of a new network with the same parameters.

    A graph repeats addresses: it would go on with old numbers if they had moved.
    """
    for problem in problems(pair, names):
        sides = Sides(pair, problem)
        network, (x, y) = sides.ours, sides.for_stage(*problem.batches[0])
        first, _, third = (pair.from_stage(network.forward(x)) for _ in range(3))
        case = problem.title
        yield compare("Network.forward, the third time", third, first, pair.dtype, 1, scale=0.0, case=case)
        network.train_step(x, y, pair.stage.optimizers.SGD(0.1), None)
        fresh = pair.stage.network.Network.from_parameters(
            network.parameters,
            loss=problem.loss,
            dtype=pair.dtype,
            architecture=problem.architecture,
            running_statistics=network.running_statistics,
        )
        got, expected = (pair.from_stage(candidate.forward(x)) for candidate in (network, fresh))
        yield compare("Network.forward after a step", got, expected, pair.dtype, 1, scale=0.0, case=case)


def problems(pair: Pair, names: Sequence[str]) -> Iterator[Problem]:
    """ "dense layers" are a stack of them; the other names are those of SMALL."""
    rng = np.random.default_rng(0)
    for name in names:
        if name in SMALL:
            yield random_problem(pair, rng, name, *SMALL[name])
        else:
            yield dense_problem(pair, rng, "relu", "softmax_cross_entropy", (17, 13, 7), batch=9)


def normal(pair: Pair, shape: tuple[int, ...]) -> np.ndarray:
    """Normal random numbers, the same for a shape, that the dtype holds exactly, in float64."""
    return pair.rounded(np.random.default_rng(shape).standard_normal(shape))


def written(pair: Pair, shape: tuple[int, ...], call: Callable[..., object]) -> Any:
    """An array of the stage, full of NaN before the call writes into it as its `out`."""
    out = pair.to_stage(np.full(shape, np.nan))
    call(out=out)
    return out
