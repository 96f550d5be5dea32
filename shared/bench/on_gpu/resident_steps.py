"""Training steps over a data set that lies on the device: many steps between two readings of the loss.

A stage takes part through `Network.resident`; PyTorch on the GPU, eager and captured in a CUDA graph. The images lie on
the device as bytes, and every step picks its own batch. The time is the host's, with the device waited for at the end
of a call: it is what training takes. Before anything is timed, the mean of the first losses is compared with stage 2's
in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from shared.bench.kinds.steps import (
    CHECKED_STEPS,
    LEARNING_RATE,
    Case,
    expected_losses,
    first_fault,
    start_parameters,
    step_row,
)
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import Effort, take_turns
from shared.bench.measuring.rows import BenchRow
from shared.bench.peers import pytorch_device
from shared.contract import Stage

SAMPLES, FEWEST, MOST = 65_536, 64, 1024
"""In one call: so many samples, in at least and at most so many steps. `Network.resident` takes as many between two
readings of the losses."""

EAGER = "eager"
RESIDENT = "resident"
Key = tuple[str, str]
Steps = Callable[[int], float]
"""Takes so many steps and returns their mean loss."""


def steps_in_a_call(batch: int) -> int:
    """The number of steps in one call, for batches of so many samples."""
    return max(FEWEST, min(MOST, SAMPLES // batch))


def resident_rows(
    stages: Sequence[Stage],
    *,
    cases: Sequence[Case],
    effort: Effort,
    steps: int | None = None,
    ways: Sequence[pytorch_device.Way] = pytorch_device.DENSE_WAYS,
) -> Iterator[BenchRow]:
    """Time one step of each case in float32 on every stage whose network has `resident`.

    steps: in a call; None: steps_in_a_call. PyTorch without a graph takes FEWEST at most: a step of its takes as long
        in a short call, and a long call a second.
    ways: of PyTorch, where there is a GPU
    Rows are of kind step, with variant "resident"; PyTorch's end with ", resident". A stage that takes its persistent
    kernel has a second row, "resident, graph", for the rung below. A contender whose first losses are wrong is not
    timed.
    """
    able = [stage for stage in stages if hasattr(stage.network.Network, "resident")]
    for case in cases if able else ():
        many = steps or steps_in_a_call(case.batch)
        random = np.random.default_rng(case.batch)
        count = many * case.batch
        images = random.integers(0, 256, (count, case.layer_sizes[0]), dtype=np.uint8)
        labels = random.integers(0, case.layer_sizes[-1], count)
        contenders = _contenders(able, case, images, labels, ways)
        x = images.astype(np.float32) / np.float32(255)
        first = [slice(i * case.batch, (i + 1) * case.batch) for i in range(CHECKED_STEPS)]
        expected = [fmean(expected_losses(case.layer_sizes, [(x[part], labels[part]) for part in first]))]
        wrong: dict[Key, str] = {}
        for key, take in contenders.items():
            if reason := first_fault(partial(_first_loss, take), expected):
                wrong[key] = reason
        taken = {key: min(many, FEWEST) if key[1].startswith(EAGER) else many for key in contenders}
        calls = {key: partial(take, taken[key]) for key, take in contenders.items() if key not in wrong}
        threads = dict.fromkeys(contenders, 1)
        turns = take_turns(calls, able, effort, threads=threads, also_on_device=list(contenders))
        for key in contenders:
            columns = turns.columns(key, reference=None, label="")
            if columns["measurement"] is not None:
                columns["measurement"] = columns["measurement"].of_one(taken[key])
            yield step_row(case, key, wrong.get(key), columns)


def _first_loss(take: Steps) -> list[float]:
    return [take(CHECKED_STEPS)]


def _contenders(
    stages: Sequence[Stage],
    case: Case,
    images: np.ndarray,
    labels: np.ndarray,
    ways: Sequence[pytorch_device.Way],
) -> dict[Key, Steps]:
    found: dict[Key, Steps] = {}
    for stage in stages:
        found[stage.name, RESIDENT], rung = _of_stage(stage, case, images, labels)
        if rung == "persistent":
            found[stage.name, f"{RESIDENT}, graph"], _ = _of_stage(stage, case, images, labels, "graph")
    torch = gpu.cuda_torch() if any(gpu.on_gpu(stage) for stage in stages) else None
    if torch is not None:
        start = start_parameters(case.layer_sizes, case.dtype)
        for way in ways:
            make = partial(pytorch_device.resident_steps, torch, start, images, labels, case.batch, LEARNING_RATE, way)
            found["pytorch", f"{way.name} on the GPU, {RESIDENT}"] = pytorch_device.made_or_raising(make)
    return found


def _of_stage(
    stage: Stage, case: Case, images: np.ndarray, labels: np.ndarray, rung: str | None = None
) -> tuple[Steps, str]:
    """A stage's steps, and the rung of the step ladder that takes them. rung: the one to take, in place of the last"""
    network: Any = stage.network.Network(list(case.layer_sizes), dtype=case.dtype)
    run: Any
    optimizer = stage.optimizers.SGD(LEARNING_RATE)
    x = images.astype(np.float32) / np.float32(255)
    run = network.resident(x, labels, optimizer, case.batch, 0)
    if rung is not None:
        run.rung = rung
    run.begin_epoch(np.arange(len(x)))
    # The emulator's interval is one step; `take` itself takes as many as a GPU's interval has.
    return lambda steps: fmean(run.take(0, [LEARNING_RATE] * steps, 0)), getattr(run, "rung", "")
