"""Is the file right? onnx checks its form, and ONNX Runtime, which is other people's, answers beside stage 2.

    check_form        every operator exists, has the inputs and settings that it needs, and the shapes fit together
    runtime_answers   the logits that ONNX Runtime computes by the file
    compare_answers   these beside stage 2's in float64, in units of what rounding explains
    compare_in_eight_bits   these beside stage 2's in eight bits, with and without the runtime's optimisations

How far rounding may move the logits is measured by adding noise to every operation, as `groundup check` measures it
for the floors (shared/checks/walk.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx

from shared.architectures import Architecture
from shared.checks.pair import Pair
from shared.checks.problems import Problem, Sides
from shared.checks.tolerance import C, Comparison, compare, eps
from shared.checks.walk import noise_of
from shared.contract import load_stage
from shared.export.onnx_graph import INPUT, OUTPUT
from shared.numbers import three_digits

RUNTIME = "onnxruntime"

MOST_IMAGES, MOST_WORK = 100, 10**10
"""Images that are compared, and multiply-adds of all of them together."""

MOST_STEPS, LEAST_SAME = 2.0, 0.999
"""How far eight bits may be apart: in steps of the logits, and the share of images that get the same class."""

EIGHT_BIT_IMAGES = 1000
"""Images that are compared in eight bits, where a share of 0.999 is asked for."""

MEASURED = 4
"""Images on which the noise is measured, seven times, and which count for the others: all are of one data set."""


@dataclass(frozen=True)
class Answers:
    """What ONNX Runtime answered beside stage 2.

    runtime: its name and version; images, same_class: how many were compared, and how many got the same class
    largest, allowed: the largest difference of two logits, and what rounding explains
    worst: the place with the largest difference in units of what rounding explains
    """

    runtime: str
    images: int
    same_class: int
    largest: float
    allowed: float
    worst: Comparison

    @property
    def ok(self) -> bool:
        return self.worst.ok

    def __str__(self) -> str:
        return str(self.worst)


@dataclass(frozen=True)
class EightBitAnswers:
    """What ONNX Runtime answered beside stage 2, both in eight bits.

    same_class, steps: with ONNX Runtime's optimisations and without, whichever is worse
    steps: the largest difference of two logits, in steps that eight bits would have for them
    """

    runtime: str
    images: int
    same_class: int
    steps: float

    @property
    def ok(self) -> bool:
        """Both round the same numbers, but one may be on the edge between two, and go to either side."""
        return self.steps <= MOST_STEPS and self.same_class >= LEAST_SAME * self.images

    def __str__(self) -> str:
        return (
            f"{self.runtime} gives {self.same_class} of {self.images} images the class that stage 2 gives them, and "
            f"its logits are up to {three_digits(self.steps)} steps of eight bits away; {MOST_STEPS:g} are allowed"
        )


def runtime_is_installed() -> bool:
    return find_spec(RUNTIME) is not None


def check_form(content: bytes) -> None:
    """Raise onnx.checker.ValidationError, or an error of its inference of shapes, for a file that is no valid model."""
    onnx.checker.check_model(content, full_check=True)


def runtime_answers(content: bytes, x: np.ndarray, optimised: bool = True) -> np.ndarray:
    """The logits of ONNX Runtime on the CPU for x (batch, *input_shape), float32.

    optimised: with its graph optimisations
    """
    import onnxruntime  # the extra brings it, but a file can be written without

    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Without it, processors of the time before VNNI add two products of eight bits in sixteen, where they have no room.
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3  # errors: it warns of what it optimises
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    (logits,) = session.run([OUTPUT], {INPUT: x})
    return np.asarray(logits)


def how_many(architecture: Architecture, in_eight_bits: bool = False) -> int:
    """How many images are compared: fewer, if the network is large."""
    most = EIGHT_BIT_IMAGES if in_eight_bits else MOST_IMAGES
    return int(np.clip(MOST_WORK * most // MOST_IMAGES // max(1, architecture.multiply_adds), 1, most))


def compare_answers(
    content: bytes,
    architecture: Architecture,
    parameters: Sequence[np.ndarray],
    running_statistics: Sequence[np.ndarray],
    pixels: np.ndarray,
    learned: np.ndarray,
) -> Answers:
    """The file's answers beside those of stage 2 with these parameters, computed in float64.

    pixels: (batch, features), what the file gets; learned: the same as the network learned from them, normalised or not
    """
    import onnxruntime

    stage, shape = load_stage("numpy"), (len(pixels), *architecture.input_shape)
    pair = Pair(stage, stage, "float32")
    own = [[np.asarray(array, np.float64) for array in arrays] for arrays in (parameters, running_statistics)]
    x, labels = learned.astype(np.float64).reshape(shape), np.zeros(MEASURED, np.int64)
    measured = x[:MEASURED], labels[: len(x)]  # of the loss nothing is used, but a step has one
    problem = Problem("export", architecture, "softmax_cross_entropy", own[0], own[1], [measured], [])
    expected = pair.from_reference(Sides(pair, problem).theirs.forward(pair.to_reference(x)))
    got = runtime_answers(content, pixels.astype(np.float32).reshape(shape))
    noise = noise_of(pair, problem, masks=False, training=False)[f"outputs {len(architecture.layers)}"]
    worst = compare("logits of ONNX Runtime", got, expected, "float32", 1, scale=noise / C)
    return Answers(
        runtime=f"ONNX Runtime {onnxruntime.__version__}",
        images=len(pixels),
        same_class=int(np.sum(got.argmax(axis=1) == expected.argmax(axis=1))),
        largest=float(np.abs(got - expected).max()),
        allowed=noise * eps("float32"),
        worst=replace(worst, case=f"of {len(pixels)} images"),
    )


def compare_in_eight_bits(content: bytes, network: Any, pixels: np.ndarray, learned: np.ndarray) -> EightBitAnswers:
    """The file's answers beside those of the network in eight bits (stage2_numpy.eight_bit_network) that it is made of.

    pixels: (batch, features), what the file gets; learned: the same as the network learned from them, normalised or not
    """
    import onnxruntime

    x = pixels.astype(np.float32).reshape(len(pixels), *network.architecture.input_shape)
    expected = network.forward(learned)
    found = [runtime_answers(content, x, optimised) for optimised in (True, False)]
    return EightBitAnswers(
        runtime=f"ONNX Runtime {onnxruntime.__version__}",
        images=len(pixels),
        same_class=min(int(np.sum(got.argmax(axis=1) == expected.argmax(axis=1))) for got in found),
        steps=max(float(np.abs(got - expected).max()) for got in found) / network.output_step,
    )
