"""Where the time of one training step goes: each of its operations alone, beside the step as a whole.

The parts are the operations that a step is written down as: every layer forward, its activation, the loss, all of it
backward, then plain SGD. Each is called through its room, on the arrays that it has within the step, and from the
second stage up it writes into the same memory every time, as a step does. The whole step is the stage's `train_step`,
the fastest way it has.

The parts need not add up to the whole. The rest of a step is checks, bookkeeping and waiting for memory: an operation
that is repeated alone finds its arrays in the nearest cache, while within a step other operations have pushed them out.
Where the parts add up to more than the whole, the stage does several operations at once and saves more than the rest
costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shared.bench.kinds.operation_table import LABEL_BYTES, LOSS_BYTES, OPTIMIZER_ARRAYS, dense_work
from shared.bench.kinds.steps import Case, batch_of
from shared.bench.measuring.compared_candidates import Effort, take_turns
from shared.bench.measuring.rows import NOT_TIMED, BenchRow
from shared.bench.measuring.timing import stage_dtypes
from shared.checks.tolerance import compare
from shared.contract import Stage, load_stage

CASES = (Case((784, 32, 10), 64, "float64"), Case((784, 128, 10), 64, "float32"))
"""The first one small enough for pure Python."""

EFFORT = Effort(repeats=9, group_limit=4.0, minimum_sample=0.003)
WHOLE = "whole step"
NUMPY_STAGE = "stage2_numpy"

STANDSTILL = 1e-12
"""A learning rate at which many thousand steps on one batch leave the weights where they are; they cost the same."""


class Part(NamedTuple):
    """One operation of a step. flops: of its matrix products; bytes: each operand read and each result written once."""

    call: Callable[[], object]
    flops: int
    bytes: int


def part_rows(stages: Sequence[Stage], *, cases: Sequence[Case] = CASES, effort: Effort = EFFORT) -> Iterator[BenchRow]:
    """Time every part of a step of each case, and the step: softmax cross-entropy, ReLU, plain SGD.

    effort: its group_limit is for a case
    The reference is the same part on stage 2, where that is among the stages. Rows of an emulated stage are compared
    with nothing. A stage whose parts, one after the other, give other gradients than stage 2's network in float64 is
    not timed.
    """
    for case in cases:
        able = [stage for stage in stages if case.dtype in stage_dtypes(stage)]
        parts = {(stage.name, name): part for stage in able for name, part in _parts_or_not(stage, case).items()}
        calls = {key: part.call for key, part in parts.items() if isinstance(part, Part)}
        one_thread = {stage.name for stage in able if stage.number == 1}
        threads = {key: 1 if key[0] in one_thread else effort.most_threads for key in parts}
        turns = take_turns(calls, able, effort, threads=threads, wake_once=True)
        for key, part in parts.items():
            stage_name, name = key
            reference = (NUMPY_STAGE, name)
            compared = turns.columns(
                key, reference=reference, label=f"stage 2, {case.dtype}", opponents={NUMPY_STAGE: reference}
            )
            yield BenchRow(
                "part",
                stage_name,
                case.name,
                case.dtype,
                tuple(case.layer_sizes),
                part.flops if isinstance(part, Part) else 0,
                skipped=None if isinstance(part, Part) else part,
                part=name,
                bytes=part.bytes if isinstance(part, Part) else 0,
                samples=case.batch,
                **compared,
            )


def part_names(layers: int) -> list[str]:
    """The parts of a step through so many layers, in their order; the whole step is the last.

    'dense 1 forward', 'relu forward' (numbered where there are several), …, 'softmax cross-entropy', its backward, and
    back to 'dense 1 backward', then 'SGD step'.
    """
    forward = [f"dense {layers} forward", "softmax cross-entropy"]
    backward = ["softmax cross-entropy backward", f"dense {layers} backward"]
    for i in reversed(range(1, layers)):
        relu = "relu" if layers == 2 else f"relu {i}"
        forward = [f"dense {i} forward", f"{relu} forward", *forward]
        backward = [*backward, f"{relu} backward", f"dense {i} backward"]
    return [*forward, *backward, "SGD step", WHOLE]


def _parts_or_not(stage: Stage, case: Case) -> dict[str, Part] | dict[str, str]:
    """The stage's parts, or for each of their names why they are not timed."""
    x, y = batch_of(case)
    parts, gradients = parts_of(stage, case, x, y)
    right = load_stage(NUMPY_STAGE).network.Network(list(case.layer_sizes), dtype="float64").gradients(x, y)
    terms = case.batch + sum(case.layer_sizes)  # as many as are added up on the longest way to a gradient
    for number, (got, expected) in enumerate(zip(gradients, right, strict=True), start=1):
        same = compare(f"gradient {number} of the parts", stage.arrays.to_host(got), expected, case.dtype, terms)
        if not same.ok:
            return dict.fromkeys(parts, f"{same}{NOT_TIMED}")
    return parts


def parts_of(stage: Stage, case: Case, x: np.ndarray, y: np.ndarray) -> tuple[dict[str, Part], list[Any]]:
    """(name -> part, in the order of `part_names`; the gradients that they leave in the layers, as Network.gradients).

    Each part is done once here, on the result of the part before it.
    """
    network = stage.network.Network(list(case.layer_sizes), dtype=case.dtype)
    layers = network.layers[::2]  # the dense ones; those between them are the activations
    last = len(layers) - 1
    relu, relu_backward = stage.activations.relu, stage.activations.relu_backward
    loss, loss_backward = stage.losses.softmax_cross_entropy, stage.losses.softmax_cross_entropy_backward
    itemsize = np.dtype(case.dtype).itemsize
    sizes = list(case.layer_sizes)
    work = [dense_work(case.batch, sizes[i], sizes[i + 1], itemsize, i > 0) for i in range(len(layers))]
    products = [2 * case.batch * sizes[i] * sizes[i + 1] for i in range(len(layers))]
    hidden_bytes = [case.batch * size * itemsize for size in sizes[1:]]
    names = iter(part_names(len(layers)))
    parts: dict[str, Part] = {}

    def add(function: Callable[..., Any], *arguments: Any, flops: int = 0, moves: int, fresh: bool = False) -> Any:
        """Add a part: do it once, and let it write into the same array from now on. fresh: it takes no `out`."""
        result = function(*arguments)
        into = {} if fresh or stage.number == 1 else {"out": result}
        parts[next(names)] = Part(partial(function, *arguments, **into), flops, moves)
        return result

    signal = stage.arrays.asarray(x, case.dtype)
    before: list[Any] = []  # what went into each activation
    after: list[Any] = []  # and what came out
    for i, layer in enumerate(layers):
        signal = add(layer.forward, signal, flops=products[i], moves=work[i]["forward"].bytes)
        if i < last:
            before.append(signal)
            signal = add(relu, signal, moves=2 * hidden_bytes[i])
            after.append(signal)
    labels = LABEL_BYTES * case.batch
    add(loss, signal, y, moves=hidden_bytes[last] + labels + LOSS_BYTES, fresh=True)
    grad = add(loss_backward, signal, y, moves=2 * hidden_bytes[last] + labels)
    for i in reversed(range(1, len(layers))):
        grad = add(layers[i].backward, grad, flops=2 * products[i], moves=work[i]["backward"].bytes)
        grad = add(relu_backward, grad, before[i - 1], after[i - 1], moves=3 * hidden_bytes[i - 1])
    add(layers[0].backward, grad, False, flops=products[0], moves=work[0]["backward"].bytes, fresh=True)
    gradients = [array for layer in layers for array in (layer.grad_weights, layer.grad_bias)]
    parameters = sum((rows + 1) * columns for rows, columns in pairwise(sizes))
    sgd = stage.optimizers.SGD(STANDSTILL)
    moves = OPTIMIZER_ARRAYS["SGD"] * parameters * itemsize
    add(sgd.step, network.parameters, gradients, moves=moves, fresh=True)
    own = stage.network.Network(sizes, dtype=case.dtype)  # the step alone changes what its layers remember
    own_x = stage.arrays.asarray(x, case.dtype)
    step = partial(own.train_step, own_x, y, stage.optimizers.SGD(STANDSTILL))
    parts[next(names)] = Part(step, case.flops, sum(part.bytes for part in parts.values()))
    return parts, gradients
