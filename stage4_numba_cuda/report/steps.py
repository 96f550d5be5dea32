"""The training step beside PyTorch: 784-128-10 and 784-512-512-10 at batch 64, 256 and 1,024, plain SGD, float32.

Two comparisons, in each of which all have their data in the same place and read the loss equally often:

    a batch that is there    every rung of STEP_LADDER; PyTorch eager; PyTorch's CUDA graph. The loss is read each step
    resident                 the data set lies on the device as bytes and each step picks its batch; the losses are
                             read once in 64 steps: Network.resident, and PyTorch both ways

The time is the host's, over many steps with the device waited for at the end: it is what training takes. Before
anything is timed, everyone's first losses must be those of stage 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from shared.bench.gpu import cuda_torch
from shared.bench.timing import Measurement, measure
from shared.contract import load_stage
from shared.initialize import initialize_parameters

from .. import network, optimizers
from ..arrays import asarray
from ..backend import BACKEND, cuda
from .beside_torch import Batches, Steps, contenders
from .part import NO_GPU, Part

NETWORKS = ((784, 128, 10), (784, 512, 512, 10))
BATCHES = (64, 256, 1024)
TINY = ((12, 8, 4),), (8,)
QUICK = NETWORKS[:1], BATCHES[:1]

STEPS = 64
"""In one call: what Network.resident takes between two readings of the losses."""

RATE = 0.01
CHECKED = 3
TOLERANCE = 1e-4
"""Relative, of a loss: float32 rounds at 6e-8, a sum over 784 inputs in another order by some hundred times that."""


def run(part: Part) -> None:
    """A row for each network, batch and contender."""
    networks, sizes = TINY if part.plan.tiny else QUICK if part.plan.quick else (NETWORKS, BATCHES)
    torch = None if BACKEND.emulated else cuda_torch()
    if torch is None:
        part.skip("PyTorch", NO_GPU if BACKEND.emulated else "it is not installed, or sees no GPU")
    cases = [(layers, size) for layers in networks for size in sizes]
    wrong = []
    for i, (layers, size) in enumerate(cases):
        for resident in (False, True):
            limit = part.left / (2 * (len(cases) - i)) / 2
            wrong += list(_case(part, torch, layers, size, resident, limit))
    part.finish("failed" if wrong else "ok", "; ".join(wrong))


def _case(
    part: Part, torch: Any | None, layers: tuple[int, ...], size: int, resident: bool, limit: float
) -> Iterator[str]:
    """Time one comparison; yields who is left out of it because its losses are others."""
    count = 4 if part.plan.tiny else STEPS
    random = np.random.default_rng(size)
    images = random.integers(0, 256, (count * size, layers[0]), dtype=np.uint8)
    batches = Batches(images, random.integers(0, layers[-1], count * size), size)
    parameters = [np.array(each, np.float32) for each in initialize_parameters(layers, "he", 0)]
    mine = ours(layers, batches, resident)
    theirs = contenders(torch, parameters, batches, RATE) if torch is not None else {}
    all_of_them = mine | {
        f"PyTorch {name}": steps for name, steps in theirs.items() if ("resident" in name) is resident
    }
    name = f"{'-'.join(map(str, layers))}, batch {size}"
    expected = expected_losses(parameters, batches, resident)
    for who in list(all_of_them):
        said = off(all_of_them[who], expected, resident)
        if said:
            all_of_them.pop(who)
            yield f"{name}, {who}: {said}"
    if not all_of_them:
        return
    wait = dict.fromkeys(all_of_them, cuda.synchronize)
    calls = {who: partial(steps, count) for who, steps in all_of_them.items()}
    repeats = 3 if part.plan.tiny else 5 if part.plan.quick else 11
    minimum = 0.0 if part.plan.tiny else 0.02
    measured = measure(calls, repeats=repeats, minimum_sample=minimum, limit=limit, finish=wait)
    ending = ", resident" if resident else ""
    for who, result in measured.items():
        step = _of_one(result, count)
        against = {
            way: measured[f"PyTorch {way}{ending}"].median / result.median
            for way in ("eager", "graph")
            if f"PyTorch {way}{ending}" in measured and who != f"PyTorch {way}{ending}"
        }
        versus = "".join(f", {ratio:.3g} x PyTorch {way}" for way, ratio in against.items())
        part.add(
            f"{name}, {who}: {step.median * 1e6:.4g} µs{versus}",
            network=list(layers), batch=size, who=who, resident=resident, against=against, **asdict(step),
        )  # fmt: skip


def ours(layers: tuple[int, ...], batches: Batches, resident: bool) -> dict[str, Steps]:
    """Our ways to take steps, each with a network of its own from the same weights."""
    if resident:
        return {"resident": _resident(layers, batches)}
    x, y = batches.first()
    own_x = asarray(x)
    return {rung: _rung(step, layers, own_x, y) for rung, step in network.STEP_LADDER.items()}


def _rung(step: Any, layers: tuple[int, ...], x: Any, y: np.ndarray) -> Steps:
    model, optimizer = network.Network(list(layers)), optimizers.SGD(RATE)
    return lambda steps: [step(model, x, y, optimizer, None) for _ in range(steps)]


def _resident(layers: tuple[int, ...], batches: Batches) -> Steps:
    model, optimizer = network.Network(list(layers)), optimizers.SGD(RATE)
    x = batches.images.astype(np.float32) / np.float32(255)
    run = model.resident(x, batches.labels, optimizer, batches.size, 0.0, 0)
    run.begin_epoch(np.arange(len(x)))
    return lambda steps: [float(np.mean(run.take(0, [RATE] * steps, 0)))]


def expected_losses(parameters: list[np.ndarray], batches: Batches, resident: bool) -> list[float]:
    """Stage 2's first losses: on the first batch again and again, or on one batch after the other."""
    stage2 = load_stage("2")
    model = stage2.network.Network.from_parameters(parameters, dtype="float32")
    optimizer = stage2.optimizers.SGD(RATE)
    numbers = range(CHECKED) if resident else [0] * CHECKED
    y = [batches.labels[i * batches.size : (i + 1) * batches.size] for i in numbers]
    return [model.train_step(batches.x(i), labels, optimizer) for i, labels in zip(numbers, y, strict=True)]


def off(steps: Steps, expected: list[float], resident: bool) -> str:
    """How the first losses differ from the expected ones; empty where they do not."""
    wanted = [float(np.mean(expected))] if resident else expected
    got = steps(CHECKED)
    if np.allclose(got, wanted, rtol=TOLERANCE, atol=0.0):
        return ""
    return f"its losses are {got}, stage 2's {wanted}; not timed"


def _of_one(result: Measurement, steps: int) -> Measurement:
    """The same for one of the steps of a call."""
    seconds = {name: getattr(result, name) / steps for name in ("median", "lower", "upper", "fastest")}
    return replace(result, **seconds, calls=result.calls * steps)
