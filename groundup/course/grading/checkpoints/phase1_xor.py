"""Checkpoint 1: XOR is learned with a hidden layer, and not without one."""

from __future__ import annotations

from typing import Any

from groundup.course.checks.check import Check, Tally
from groundup.course.grading.checkpoints.learners_training import TOGETHER, trained
from shared.contract import load_stage
from shared.data.synthetic import xor
from shared.training.metrics import evaluate

XOR_EPOCHS = 200


def checkpoint() -> list[Check]:
    """XOR is learned with a hidden layer of two, and cannot be learned without one."""
    return [Check("XOR with a hidden layer", _learns_xor), Check("XOR without one", _fails_at_xor)]


def _learns_xor(tally: Tally) -> None:
    tally.trying("a 2-2-1 network on XOR")
    before, after, right = _xor([2, 2, 1], activation="tanh", initializer="xavier")
    tally.holds(
        after < before,
        "the 2-2-1 network does not learn XOR: its loss does not fall",
        expected=f"below {before:.4g}",
        got=f"{after:.4g}",
        cause=TOGETHER,
    )
    tally.holds(
        right == 4,
        f"the 2-2-1 network does not learn XOR within {XOR_EPOCHS} epochs",
        expected="4 of 4 right",
        got=f"{right} of 4, the loss went from {before:.4g} to {after:.4g}",
        cause=TOGETHER,
    )
    tally.note(
        f"a 2-2-1 network: 4 of 4 right after {XOR_EPOCHS} epochs, the loss went from {before:.3f} to {after:.5f}"
    )


def _fails_at_xor(tally: Tally) -> None:
    tally.trying("a 2-1 network on XOR")
    before, after, right = _xor([2, 1])
    tally.holds(
        right <= 3,
        "a network without a hidden layer gets all of XOR right, which no straight line can",
        expected="at most 3 of 4",
        got=f"{right} of 4",
        cause="something bends the single layer's output, such as an activation after the last layer",
    )
    tally.note(
        f"a single layer: {right} of 4 right after as many epochs, the loss went from {before:.3f} to {after:.3f}; "
        "no straight line separates XOR"
    )


def _xor(sizes: list[int], **settings: Any) -> tuple[float, float, int]:
    """Train a network on XOR: (loss before, loss after, how many of the four are right)."""
    floor, data = load_stage("pure_python"), xor()
    network = floor.network.Network(sizes, loss="sigmoid_cross_entropy", seed=1, dtype="float64", **settings)
    optimizer = floor.optimizers.SGD(0.5, momentum=0.9)
    before, _, _ = evaluate(floor, network, data)
    trained(floor, network, optimizer, data, epochs=XOR_EPOCHS, batch_size=4)
    after, accuracy, _ = evaluate(floor, network, data)
    return before, after, round(4 * accuracy)
