"""Checkpoint 7, first part: LeNet-5 by the learner's NumPy functions reads digits."""

from __future__ import annotations

from groundup.course.checks.check import Check, Tally
from groundup.course.grading.checkpoints.learners_training import TOGETHER, trained
from shared.architectures import lenet5
from shared.contract import load_stage
from shared.data.datasets import load_dataset
from shared.training.metrics import evaluate

ENOUGH, MOST_EPOCHS = 0.97, 6

FIRST_RATE, SLOWER = 0.01, 0.45
"""The learning rate of the first epoch, and by what it is multiplied after each."""


def lenet_by_numpy() -> list[Check]:
    """97 % of the bundled test images are right, read by LeNet-5, whose training calls the functions of week 20."""
    return [Check("LeNet-5 by NumPy reads 97 %", _reads_digits)]


def _reads_digits(tally: Tally) -> None:
    floor, data = load_stage("numpy"), load_dataset("mnist-subset")
    network = floor.network.Network(lenet5(), seed=1)
    optimizer = floor.optimizers.SGD(FIRST_RATE, momentum=0.9)
    accuracy = 0.0
    known = []
    for epoch in range(1, MOST_EPOCHS + 1):
        tally.trying(f"epoch {epoch} of LeNet-5 on the bundled 6,000 images of MNIST")
        trained(floor, network, optimizer, data.train, epochs=1, batch_size=16, seed=epoch)
        _, accuracy, _ = evaluate(floor, network, data.test)
        known.append(f"{accuracy:.1%}")
        if accuracy >= ENOUGH:
            break
        optimizer.learning_rate *= SLOWER
    tally.holds(
        accuracy >= ENOUGH,
        f"LeNet-5 does not reach 97 % of the 1,000 test images within {MOST_EPOCHS} epochs",
        expected="at least 97 %",
        got=f"after each epoch {', '.join(known)}",
        cause=TOGETHER,
    )
    tally.note(f"LeNet-5 by your NumPy functions: {accuracy:.1%} of 1,000 test images after epoch {epoch}")
