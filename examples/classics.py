"""Two classics of neural networks, on any stage: what one layer can do, and what it cannot.

    1958, Rosenblatt   a single layer, the perceptron, finds a line between two clouds of points
    1969, Minsky and Papert   no line separates XOR; with a hidden layer of two neurons it is learned

Run it:  python examples/classics.py             all stages that can run here
         python examples/classics.py numpy       one of them
"""

import sys
from dataclasses import dataclass

import numpy as np

from groundup.stages import stages_for
from shared.contract import NetworkLike, Stage, StageUnavailable
from shared.data.datasets import Split
from shared.data.synthetic import two_clouds, xor
from shared.training.loop import train
from shared.training.metrics import evaluate
from shared.training.settings import QUIET, TrainingSettings


@dataclass(frozen=True)
class Classic:
    """accuracy: of the samples it was trained on; outputs (n,): the network's raw outputs; epochs it took."""

    accuracy: float
    loss: float
    epochs: int
    outputs: np.ndarray


def perceptron(stage: Stage) -> Classic:
    """2-1: one neuron separates two clouds. Its weights are the line: w1 x + w2 y + b = 0."""
    network = stage.network.Network([2, 1], loss="sigmoid_cross_entropy", seed=1, dtype="float64")
    return _learn(stage, network, two_clouds(), learning_rate=0.5, momentum=0.0, epochs=20, batch_size=10)


def learns_xor(stage: Stage) -> Classic:
    """2-2-1: each hidden neuron draws one line, and the output neuron combines the two.

    The seed matters: with no neuron to spare, about half of all first weights get stuck with two corners right.
    """
    network = stage.network.Network(
        [2, 2, 1], activation="tanh", loss="sigmoid_cross_entropy", initializer="xavier", seed=1, dtype="float64"
    )
    return _learn(stage, network, xor(), learning_rate=0.5, momentum=0.9, epochs=200, batch_size=4)


def fails_at_xor(stage: Stage) -> Classic:
    """2-1: one neuron is one line, and a line gets at most three of XOR's four corners right."""
    network = stage.network.Network([2, 1], loss="sigmoid_cross_entropy", seed=1, dtype="float64")
    return _learn(stage, network, xor(), learning_rate=0.5, momentum=0.9, epochs=200, batch_size=4)


def _learn(
    stage: Stage, network: NetworkLike, data: Split, learning_rate: float, momentum: float, epochs: int, batch_size: int
) -> Classic:
    optimizer = stage.optimizers.SGD(learning_rate, momentum=momentum)
    train(stage, network, optimizer, data, TrainingSettings(epochs, batch_size), hooks=QUIET)
    loss, accuracy, _ = evaluate(stage, network, data)
    outputs = np.asarray(stage.arrays.to_host(network.forward(stage.arrays.asarray(data.x, "float64"))))
    return Classic(accuracy, loss, epochs, outputs[:, 0])


def main(arguments: list[str]) -> None:
    """Print the classics of the stages named in arguments, or of all that can run here."""
    try:
        stages, _ = stages_for(",".join(arguments) or None)
    except (ValueError, StageUnavailable) as error:
        sys.exit(f"error: {error}")
    for stage in stages:
        print(stage.title)
        for title, classic in (
            ("perceptron, two clouds", perceptron(stage)),
            ("perceptron, XOR", fails_at_xor(stage)),
            ("2-2-1 network, XOR", learns_xor(stage)),
        ):
            print(
                f"  {title:<24}{classic.accuracy:>5.0%} right after {classic.epochs:3} epochs, loss {classic.loss:.6f}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
