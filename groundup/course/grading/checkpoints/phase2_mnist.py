"""Checkpoint 2: MNIST over 90 %."""

from __future__ import annotations

from groundup.course.checks.check import Check, Tally
from groundup.course.grading.checkpoints.learners_training import TOGETHER, trained
from shared.contract import load_stage
from shared.data.datasets import load_dataset
from shared.training.metrics import evaluate

ENOUGH, MOST_EPOCHS = 0.9, 6


def checkpoint() -> list[Check]:
    """More than 90 % of MNIST's test images are right, which the network has not been trained on."""
    return [Check("MNIST over 90 %", _learns_mnist)]


def _learns_mnist(tally: Tally) -> None:
    floor, data = load_stage("numpy"), load_dataset("mnist-subset")
    network = floor.network.Network([784, 64, 10], seed=1)
    optimizer = floor.optimizers.SGD(0.1)
    accuracy = 0.0
    losses = []
    for epoch in range(1, MOST_EPOCHS + 1):
        tally.trying(f"epoch {epoch} of a 784-64-10 network on the bundled 6,000 images of MNIST")
        trained(floor, network, optimizer, data.train, epochs=1, batch_size=16, seed=epoch)
        loss, accuracy, _ = evaluate(floor, network, data.test)
        losses.append(f"{loss:.3f}")
        if accuracy > ENOUGH:
            break
    tally.holds(
        accuracy > ENOUGH,
        f"784-64-10 does not reach 90 % of the 1,000 test images within {MOST_EPOCHS} epochs",
        expected="over 90 %",
        got=f"{accuracy:.1%}; the test loss went {', '.join(losses)}",
        cause=TOGETHER,
    )
    tally.note(f"784-64-10 on the bundled subset: {accuracy:.1%} of 1,000 test images after epoch {epoch}")
