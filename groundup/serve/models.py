"""A run behind the service: its network on the fastest stage of this machine, proven equal before it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from groundup.inside_layers import convolves
from groundup.predict import NO_ANSWER, OpenRun
from groundup.trained import in_words
from shared.checks.pair import Pair
from shared.checks.problems import Problem, Sides
from shared.checks.tolerance import C, Comparison, compare
from shared.checks.walk import noise_of
from shared.contract import Stage, StageUnavailable, load_stage
from shared.machine.regular import real
from shared.training.checkpoints import build_network

FASTEST = ("stage3_c", "stage2_numpy")
"""The stages that answer, the faster one first. Stage 3 needs a C compiler."""

IMAGES = 4
"""Random images on which the stage is compared with stage 2 in float64."""


class StagesDisagree(ValueError):
    """The stage that should answer computes other logits than stage 2."""


@dataclass(frozen=True)
class Model:
    """A network that answers. compute: pixels from 0 to 1 (batch, *input_shape) -> logits (batch, classes), float32;
    one thread at a time may call it. by: what computes, in words; worst: the largest difference to stage 2."""

    name: str
    opened: OpenRun
    compute: Callable[[np.ndarray], np.ndarray]
    by: str
    worst: Comparison

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.opened.checkpoint.architecture.input_shape

    @property
    def explains(self) -> bool:
        return convolves(self.opened.checkpoint.architecture)

    @property
    def words(self) -> str:
        return in_words(self.opened.checkpoint)


def load_models(runs: Sequence[Path]) -> dict[str, Model]:
    """Name -> model, of each run's folder or checkpoint; the name is the folder's.

    Raises ValueError or OSError for what is no run and for two of one name, StagesDisagree for one that answers wrong.
    """
    named: dict[str, Path] = {}
    for run in runs:
        opened = OpenRun.of(run)
        name = real(opened.checkpoint.path).parent.name
        if not name.isprintable():  # neither an address nor the metrics can hold it
            raise ValueError(f"serve: {name!a}: expected a folder whose name can be printed; rename it")
        if name in named:
            raise ValueError(f"serve: {named[name]} and {run} are both called {name}; rename one of the folders")
        named[name] = run
    return {name: load_model(name, OpenRun.of(run)) for name, run in named.items()}


def load_model(name: str, opened: OpenRun) -> Model:
    """Raises StagesDisagree for a stage that computes other logits than stage 2."""
    stage = fastest_stage()
    compute = computing(opened, stage)
    worst = proven(opened, stage, compute)
    if not worst.ok:
        raise StagesDisagree(f"{name} is not served, because {stage.title} disagrees with stage 2: {worst}")
    return Model(name, opened, compute, stage.title, worst)


def fastest_stage() -> Stage:
    """Stage 3 where its C compiles, else stage 2."""
    for each in FASTEST[:-1]:
        try:
            return load_stage(each)
        except (StageUnavailable, ValueError):  # no compiler, or one that refuses the C
            continue
    return load_stage(FASTEST[-1])


def computing(opened: OpenRun, stage: Stage) -> Callable[[np.ndarray], np.ndarray]:
    """The function from pixels to logits. It works in the network's own memory."""
    checkpoint = opened.checkpoint
    network, dtype = build_network(stage, checkpoint), checkpoint.dtype

    def logits(pixels: np.ndarray) -> np.ndarray:
        x = opened.as_learned(pixels.astype(dtype))
        with np.errstate(over="ignore", invalid="ignore"):  # who gets the logits looks for infinity
            return np.array(stage.arrays.to_host(network.forward(stage.arrays.asarray(x, dtype))), np.float32)

    return logits


def proven(opened: OpenRun, stage: Stage, compute: Callable[[np.ndarray], np.ndarray]) -> Comparison:
    """The largest difference to stage 2 in float64, beside what rounding explains (docs/numerics.md).

    Raises ValueError for a network that makes infinity or NaN.
    """
    checkpoint, architecture = opened.checkpoint, opened.checkpoint.architecture
    pixels = np.random.default_rng(0).random((IMAGES, *architecture.input_shape), np.float32)
    logits = compute(pixels)
    if not np.isfinite(logits).all():
        raise ValueError(f"{checkpoint.path}: {NO_ANSWER} for random pixels")
    reference = load_stage("numpy")
    pair = Pair(stage, reference, "float32")
    parameters, running = (
        [np.asarray(array, np.float64) for array in arrays]
        for arrays in (checkpoint.parameters, checkpoint.running_statistics)
    )
    x = opened.as_learned(pixels.astype(np.float64))
    batch = x, np.zeros(IMAGES, np.int64)  # nothing is made of the loss
    problem = Problem("serve", architecture, "softmax_cross_entropy", parameters, running, [batch], [])
    expected = pair.from_reference(Sides(pair, problem).theirs.forward(pair.to_reference(x)))
    noise = noise_of(pair, problem, masks=False, training=False)[f"outputs {len(architecture.layers)}"]
    return compare(f"logits of {stage.title}", logits, expected, "float32", 1, scale=noise / C)
