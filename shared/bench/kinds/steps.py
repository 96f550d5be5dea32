"""One training step, forward to update: every stage, every rung of its step ladder, and PyTorch.

All contenders start from the same weights and take plain SGD steps on the same batch. Before anything is timed, each of
them takes three steps. A contender whose losses differ from those of stage 2 in float64 computes something else and is
not timed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shared.architectures import Architecture, named
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import Effort, take_turns
from shared.bench.measuring.rows import NOT_TIMED, BenchRow, product_bytes, raised
from shared.bench.measuring.timing import aligned, stage_dtypes
from shared.bench.peers import pytorch
from shared.bench.peers.pytorch_device import Way
from shared.contract import NetworkLike, Stage, load_stage
from shared.initialize import initialize_parameters
from shared.layers import multiply_adds_of

EFFORT = Effort(repeats=15, group_limit=20.0)
LEARNING_RATE = 0.01
MODEL_LEARNING_RATE = 0.001
"""Of the known networks: at LEARNING_RATE their loss on random images grows, and with it what was rounded before."""

LOSS_TOLERANCE = 1e-4
"""Relative: float32 rounds at 6e-8, and a sum over 784 inputs in another order by some hundred times that."""

TF32_LOSS_TOLERANCE = 1e-2
"""Relative, where factors are rounded to 11 bits: at 5e-4, some twenty times in a row on the way through a network."""

CHECKED_STEPS = 3
MODEL_RUNGS_ON_GPU = ("fused", "graph")
REFERENCE, NUMPY_STAGE, PYTORCH = ("", "reference"), ("stage2_numpy", ""), ("pytorch", "")

Key = tuple[str, str]
"""Who takes the step, and by which rung."""


class Case(NamedTuple):
    """A network and its batch.

    layer_sizes: of a stack of dense layers, or of a known network the numbers of one input and the classes
    model: the name of a known network in shared/architectures.py; "" for a stack of dense layers
    """

    layer_sizes: Sequence[int]
    batch: int
    dtype: str
    model: str = ""

    @property
    def network(self) -> list[int] | Architecture:
        """The network as `Network` takes it: layer sizes, or an architecture."""
        return named(self.model) if self.model else list(self.layer_sizes)

    @property
    def name(self) -> str:
        """'784-128-10, batch 64', or 'lenet5, batch 64'."""
        return f"{self.model or '-'.join(map(str, self.layer_sizes))}, batch {self.batch}"

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
        """Operations of the products and convolutions of one step, two per multiply-add; all others are left out.

        Backward has as many again for the weights, and for the inputs of all layers but the first.
        """
        if self.model:
            network = named(self.model)
            first = next(work for each in network.placed() if (work := multiply_adds_of(each)))
            return 2 * self.batch * (3 * network.multiply_adds - first)
        return 2 * sum(m * k * n for m, k, n in self.products)

    @property
    def bytes(self) -> int:
        """Bytes that those products must move at least: each operand read once and each result written once; 0 for a
        known network."""
        return 0 if self.model else sum(product_bytes(m, k, n, self.dtype) for m, k, n in self.products)


CASES = (
    Case((784, 32, 10), 64, "float64"),
    Case((784, 128, 10), 64, "float64"),
    Case((784, 128, 10), 64, "float32"),
    Case((784, 512, 10), 256, "float32"),
)


MODEL_BATCHES = (32, 64, 128)


def model_cases(model: str, batches: Sequence[int] = MODEL_BATCHES) -> tuple[Case, ...]:
    """The steps of a known network, in float32."""
    network = named(model)
    sizes = (math.prod(network.input_shape), *network.output_shape)
    return tuple(Case(sizes, batch, "float32", model) for batch in batches)


def step_rows(
    stages: Sequence[Stage],
    *,
    cases: Sequence[Case] = CASES,
    effort: Effort = EFFORT,
    torch: Any | None = None,
    ways: Sequence[Way] | None = None,
) -> Iterator[BenchRow]:
    """Time one training step of each case: softmax cross-entropy, ReLU, plain SGD.

    The reference is what no step can do without: its matrix products alone, by NumPy's `a @ b` in the same dtype; of a
    known network it is stage 2's step. Stages without convolution do not take part in the latter. Rows of an emulated
    stage are compared with nothing. Where a stage runs on a GPU, PyTorch takes the step there, too.
    torch: the module, to be measured on the CPU; None leaves it out
    ways: PyTorch's on the GPU, where they are not the usual ones
    """
    for case in cases:
        able = [stage for stage in stages if case.dtype in stage_dtypes(stage)]
        x, y = batch_of(case)
        steps = _contenders(able, case, torch, x, y, ways)
        if not steps:
            continue
        expected = expected_losses(case.network, [(x, y)] * CHECKED_STEPS)
        wrong = {key: reason for key, step in steps.items() if (reason := _wrong(key, step, expected))}
        calls: dict[Key, Callable[[], object]] = {} if case.model else {REFERENCE: _bare_products(case)}
        calls |= {key: step for key, step in steps.items() if key not in wrong}
        devices = {stage.name for stage in able if gpu.on_gpu(stage)}
        on_device = {key for key in steps if key[0] in devices or (key[0] == PYTORCH[0] and key != PYTORCH)}
        one_thread = on_device | {key for key in steps if key[0] == "stage1_pure_python"}
        threads = {key: 1 if key in one_thread else effort.most_threads for key in [REFERENCE, *steps]}
        turns = take_turns(calls, able, effort, threads=threads, peak_in=case.dtype, also_on_device=on_device)
        for key in steps:
            reference = "stage 2" if case.model else "its matrix products alone, NumPy a @ b"
            compared = turns.columns(
                key,
                reference=NUMPY_STAGE if case.model else REFERENCE,
                label=f"{reference}, {case.dtype}",
                opponents={"stage2_numpy": NUMPY_STAGE, "pytorch": PYTORCH},
            )
            yield step_row(case, key, wrong.get(key), compared)


def step_row(case: Case, key: Key, skipped: str | None, columns: Mapping[str, Any]) -> BenchRow:
    """The row of one contender's step. columns: as `Turns.columns` gives them"""
    return BenchRow(
        "step",
        key[0],
        case.name,
        gpu.precision_of(key[1], case.dtype),
        tuple(case.layer_sizes),
        case.flops,
        skipped=skipped,
        variant=key[1],
        bytes=case.bytes,
        samples=case.batch,
        **columns,
    )


def batch_of(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Images of random numbers in [0, 1), (batch, features), and labels (batch,)."""
    random = np.random.default_rng(0)
    x = aligned((case.batch, case.layer_sizes[0]), case.dtype)
    x[...] = random.random(x.shape)
    return x, random.integers(0, case.layer_sizes[-1], case.batch)


def start_parameters(network: Sequence[int] | Architecture, dtype: str, seed: int = 0) -> list[np.ndarray]:
    """The parameters, [W1, b1, …], that every stage's network of these sizes or this architecture starts from."""
    return [np.array(each, dtype) for each in initialize_parameters(network, "he", seed)]


def learning_rate_for(network: Sequence[int] | Architecture) -> float:
    """The rate of the steps: one at which the loss falls."""
    return MODEL_LEARNING_RATE if isinstance(network, Architecture) else LEARNING_RATE


def expected_losses(
    network: Sequence[int] | Architecture, batches: Iterable[tuple[np.ndarray, np.ndarray]]
) -> list[float]:
    """The losses of stage 2 in float64, which takes a step on each batch in turn."""
    stage = load_stage("stage2_numpy")
    own, optimizer = stage.network.Network(network, dtype="float64"), stage.optimizers.SGD(learning_rate_for(network))
    return [float(own.train_step(x.astype(np.float64), y, optimizer)) for x, y in batches]


def _wrong(key: Key, step: Callable[[], float], expected: Sequence[float]) -> str | None:
    """The contender's first steps, and why it is not timed after them; None where all is well."""
    tolerance = TF32_LOSS_TOLERANCE if gpu.TF32 in key[1] else LOSS_TOLERANCE
    return first_fault(lambda: [float(step()) for _ in range(CHECKED_STEPS)], expected, tolerance)


def first_fault(
    losses: Callable[[], Sequence[float]], expected: Sequence[float], tolerance: float = LOSS_TOLERANCE
) -> str | None:
    """Why a contender that takes its first steps in this call is not timed: what it raised, or `wrong_losses`."""
    try:
        return wrong_losses(losses(), expected, tolerance)
    except Exception as error:  # a contender that cannot run costs only itself
        return raised(error)


def wrong_losses(got: Sequence[float], expected: Sequence[float], tolerance: float = LOSS_TOLERANCE) -> str | None:
    """Why a contender with these losses is not timed; None where they are the expected ones."""
    for number, (mine, right) in enumerate(zip(got, expected, strict=True), start=1):
        if not math.isclose(mine, right, rel_tol=tolerance):
            return f"its loss in step {number} is {mine:.7g} but stage 2 in float64 has {right:.7g}{NOT_TIMED}"
    return None


def _contenders(
    stages: Sequence[Stage],
    case: Case,
    torch: Any | None,
    x: np.ndarray,
    y: np.ndarray,
    ways: Sequence[Way] | None,
) -> dict[Key, Callable[[], float]]:
    """A call for each contender that takes one step and returns the loss before it; each has a network of its own."""
    contenders: dict[Key, Callable[[], float]] = {}
    rate = learning_rate_for(case.network)
    for stage in stages:
        own_x = stage.arrays.asarray(x, case.dtype)
        if gpu.on_gpu(stage) and case.dtype == "float32":
            theirs = gpu.torch_steppers(start_parameters(case.network, case.dtype), x, y, rate, case.model, ways)
            contenders |= {(PYTORCH[0], f"{way} {gpu.ON_GPU}"): step for way, step in theirs.items()}
        for rung, step in _rungs(stage, case).items():
            network = gpu.in_precision(stage.network.Network(case.network, dtype=case.dtype), rung)
            contenders[stage.name, rung] = partial(step, network, own_x, y, stage.optimizers.SGD(rate), None)
    if torch is not None:
        model = pytorch.network(torch, start_parameters(case.network, case.dtype), case.model)
        step = pytorch.stepper(torch, model, rate)
        contenders[PYTORCH] = partial(step, torch.from_numpy(x), torch.from_numpy(y))
    return contenders


def _rungs(stage: Stage, case: Case) -> dict[str, Callable[..., float]]:
    """The stage's ways to take the step; of a known network on a GPU the two that launch what was planned once, and the
    last of them with TF32 on, which rounds float32."""
    if not case.model:
        return getattr(stage.network, "STEP_LADDER", None) or {"": _train_step}
    if not gpu.on_gpu(stage):
        return {"": _train_step}
    ladder = stage.network.STEP_LADDER
    rungs = {rung: ladder[rung] for rung in MODEL_RUNGS_ON_GPU}
    last, rounds = MODEL_RUNGS_ON_GPU[-1], case.dtype == "float32" and gpu.has_tf32(stage)
    return rungs | ({f"{last} {gpu.TF32}": ladder[last]} if rounds else {})


def _train_step(network: NetworkLike, *arguments: Any) -> float:
    return float(network.train_step(*arguments))


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
