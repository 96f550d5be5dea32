"""Loss and accuracy of a network on a data set, and the record of each epoch.

The records of a run are also written to `metrics.jsonl`, one JSON object a line for each epoch.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from shared.contract import NetworkLike, Stage, layered_architecture
from shared.data.batches import BatchFeeder
from shared.data.datasets import Split
from shared.machine.atomic import write_atomically


@dataclass(frozen=True)
class EpochRecord:
    """The measurements of one epoch. Accuracies are fractions from 0 to 1; None without validation or test data.

    epoch: counted from 1
    learning_rate: that of the epoch's last step
    train_loss: mean over the epoch's samples, each measured before the step that uses it, with dropout if there is any
    train_accuracy: at the end of the epoch, on the first 1,000 training samples
    seconds: time of the steps, without the evaluations; samples_per_second: training samples divided by it
    """

    epoch: int
    learning_rate: float
    train_loss: float
    train_accuracy: float | None
    validation_loss: float | None
    validation_accuracy: float | None
    test_loss: float | None
    test_accuracy: float | None
    seconds: float
    samples_per_second: float


def evaluate(
    stage: Stage, network: NetworkLike, data: Split, batch_size: int | None = None
) -> tuple[float, float, np.ndarray]:
    """(mean loss, accuracy, predictions int64 (n,)) of the network on data, without dropout.

    batch_size: samples in one forward pass; it limits the memory and changes the result only by rounding. None: 1,000,
        or 100 for an architecture of layers, whose images grow to many channels on their way
    """
    if batch_size is None:
        batch_size = 1000 if layered_architecture(network) is None else 100
    feeder = BatchFeeder(stage, network, data, batch_size)
    loss_function = getattr(stage.losses, network.loss_name)
    loss_sum = 0.0
    predictions = np.empty(len(data), np.int64)
    for start in range(0, len(data), batch_size):
        indices = np.arange(start, min(start + batch_size, len(data)))
        x, y = feeder.batch(indices)
        outputs = network.forward(x)
        loss_sum += float(loss_function(outputs, y)) * len(indices)
        predictions[indices] = predicted_classes(np.asarray(stage.arrays.to_host(outputs)), network.loss_name)
    return loss_sum / len(data), float(np.mean(predictions == data.y)), predictions


def predicted_classes(outputs: np.ndarray, loss_name: str) -> np.ndarray:
    """The classes that `Network.predict` gives for these outputs, without a second forward pass."""
    if outputs.shape[1] > 1:
        return np.argmax(outputs, axis=1)
    return (outputs[:, 0] > (0.5 if loss_name == "mean_squared_error" else 0.0)).astype(np.int64)


def write_metrics(path: Path, records: Iterable[EpochRecord]) -> None:
    """Write all records as JSON lines. The file is replaced as a whole, so no line is doubled, cut or lost."""
    lines = [json.dumps(asdict(record), allow_nan=False) + "\n" for record in records]
    write_atomically(path, "".join(lines).encode())


def read_metrics(path: Path) -> list[EpochRecord]:
    """The records of a metrics.jsonl."""
    return [EpochRecord(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
