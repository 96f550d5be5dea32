"""One training step, forward to update, on every stage, on every rung of its step ladder, and on PyTorch.

All start from the same weights and see the same batch with the same plain SGD. Before anything is timed they take
three steps each: whoever's losses differ from the first one's computes something else, and is not timed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shared.bench import pytorch
from shared.bench.gpu import NO_REFERENCE, on_gpu, torch_steppers
from shared.bench.machine import flops_per_second, peak_call
from shared.bench.rows import BenchRow, product_bytes
from shared.bench.timing import measure, stage_dtypes, times_as_fast
from shared.contract import Stage, is_emulated
from shared.initialize import initialize_parameters
from shared.machine.environment import usable_cores

LEARNING_RATE = 0.01
LOSS_TOLERANCE = 1e-4
"""Relative: float32 rounds at 6e-8, and a sum over 784 inputs in another order by some hundred times that."""

CHECKED_STEPS = 3
REFERENCE, PEAK, NUMPY_STAGE, PYTORCH = ("", "reference"), ("", "peak"), ("stage2_numpy", ""), ("pytorch", "")


class Case(NamedTuple):
    """A network and its batch."""

    layer_sizes: Sequence[int]
    batch: int
    dtype: str

    @property
    def name(self) -> str:
        """'784-128-10, batch 64'."""
        return f"{'-'.join(map(str, self.layer_sizes))}, batch {self.batch}"

    @property
    def products(self) -> list[tuple[int, int, int]]:
        """(M, K, N) of every matrix product of one step: xW and xᵀg of each layer, gWᵀ of each but the first."""
        pairs = list(itertools.pairwise(self.layer_sizes))
        forward = [(self.batch, rows, columns) for rows, columns in pairs]
        weights = [(rows, self.batch, columns) for rows, columns in pairs]
        inputs = [(self.batch, columns, rows) for rows, columns in pairs[1:]]
        return forward + weights + inputs

    @property
    def flops(self) -> int:
        """Of the matrix products of one step, two per multiply-add; the rest is left out."""
        return 2 * sum(m * k * n for m, k, n in self.products)

    @property
    def bytes(self) -> int:
        """That those products must move at least: the operands of each read once and its result written once."""
        return sum(product_bytes(m, k, n, self.dtype) for m, k, n in self.products)


CASES = (
    Case((784, 32, 10), 64, "float64"),
    Case((784, 128, 10), 64, "float64"),
    Case((784, 128, 10), 64, "float32"),
    Case((784, 512, 10), 256, "float32"),
)


def step_rows(
    stages: Sequence[Stage],
    *,
    cases: Sequence[Case] = CASES,
    repeats: int = 15,
    group_limit: float = 20.0,
    threads: int | None = None,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time one training step of each case: softmax cross-entropy, ReLU, plain SGD.

    The reference is what no step can do without: its matrix products alone, by NumPy's `a @ b` in the same dtype.
    threads: as in `ladder_rows`. torch: the module, to be measured too; None leaves it out. What is emulated is set
    beside nothing.
    """
    threads = threads or usable_cores()
    for case in cases:
        able = [stage for stage in stages if case.dtype in stage_dtypes(stage)]
        steps = _contenders(able, case, torch)
        if not steps:
            continue
        wrong = _disagreements(steps)
        peak = peak_call(able, case.dtype)
        candidates: dict[tuple[str, str], Callable[[], object]] = {REFERENCE: _bare_products(case)}
        if peak:
            candidates[PEAK] = peak
        candidates |= {name: step for name, step in steps.items() if name not in wrong}
        on_device = {name for name in steps if name[0] in {stage.name for stage in able if on_gpu(stage)}}
        on_device |= {name for name in steps if name[0] == PYTORCH[0] and name != PYTORCH}
        one_thread = on_device | {name for name in steps if name[0] == "stage1_pure_python"}
        uses = {name: 1 if name in one_thread else threads for name in [REFERENCE, *steps]}
        threaded = {name for name, count in uses.items() if count > 1 and name in candidates}
        measured = measure(candidates, repeats=repeats, limit=group_limit, threaded=threaded)
        roof = flops_per_second(peak, measured[PEAK]) if peak else None
        emulated = {stage.name for stage in able if is_emulated(stage.name)}
        no_core = on_device | {name for name in steps if name[0] in emulated}  # the peak is one of the CPU's cores
        for name in steps:
            result = measured.get(name)
            compared = result if name[0] not in emulated else None
            yield BenchRow(
                "step",
                name[0],
                case.name,
                case.dtype,
                tuple(case.layer_sizes),
                case.flops,
                result,
                f"its matrix products alone, NumPy a @ b, {case.dtype}" if name[0] not in emulated else NO_REFERENCE,
                compared.median / measured[REFERENCE].median if compared else None,
                wrong.get(name),
                variant=name[1],
                bytes=case.bytes,
                samples=case.batch,
                threads=uses[name],
                peak=roof * uses[name] if roof and name not in no_core else None,
                against=times_as_fast(measured, name, {"stage2_numpy": NUMPY_STAGE, "pytorch": PYTORCH})
                if compared
                else {},
                emulated=name[0] in emulated,
            )


def _contenders(stages: Sequence[Stage], case: Case, torch: Any | None) -> dict[tuple[str, str], Callable[[], float]]:
    """(who, rung) -> a call that takes one step and returns the loss before it; each has a network of its own."""
    random = np.random.default_rng(0)
    x = random.random((case.batch, case.layer_sizes[0])).astype(case.dtype)
    y = random.integers(0, case.layer_sizes[-1], case.batch)
    found: dict[tuple[str, str], Callable[[], float]] = {}
    for stage in stages:
        own_x = stage.arrays.asarray(x, case.dtype)
        if on_gpu(stage) and case.dtype == "float32":
            ways = torch_steppers(_parameters(case), x, y, LEARNING_RATE)
            found |= {(PYTORCH[0], f"{way} on the GPU"): step for way, step in ways.items()}
        ladder = getattr(stage.network, "STEP_LADDER", {"": stage.network.Network.train_step})
        for rung, step in ladder.items():
            network = stage.network.Network(list(case.layer_sizes), dtype=case.dtype)
            found[stage.name, rung] = partial(step, network, own_x, y, stage.optimizers.SGD(LEARNING_RATE), None)
    if torch is not None:
        step = pytorch.stepper(torch, pytorch.network(torch, _parameters(case)), LEARNING_RATE)
        found[PYTORCH] = partial(step, torch.from_numpy(x), torch.from_numpy(y))
    return found


def _parameters(case: Case) -> list[np.ndarray]:
    return [np.array(each, case.dtype) for each in initialize_parameters(case.layer_sizes, "he", 0)]


def _disagreements(steps: dict[tuple[str, str], Callable[[], float]]) -> dict[tuple[str, str], str]:
    """Who computes another loss than the first, with the two losses; each takes its first steps here."""
    losses = {name: [float(step()) for _ in range(CHECKED_STEPS)] for name, step in steps.items()}
    first, *_ = losses
    wrong = {}
    for name, mine in losses.items():
        for number, (got, expected) in enumerate(zip(mine, losses[first], strict=True), start=1):
            if name not in wrong and not math.isclose(got, expected, rel_tol=LOSS_TOLERANCE):
                other = " ".join(part for part in first if part)
                wrong[name] = f"its loss in step {number} is {got:.7g} but {other} has {expected:.7g}; not timed"
    return wrong


def _bare_products(case: Case) -> Callable[[], object]:
    random = np.random.default_rng(0)
    operands = [
        (
            random.standard_normal((m, k)).astype(case.dtype),
            random.standard_normal((k, n)).astype(case.dtype),
            np.empty((m, n), case.dtype),
        )
        for m, k, n in case.products
    ]
    return lambda: [np.matmul(a, b, out=out) for a, b, out in operands]
