"""Loss and accuracy of a network on a data set, and the record of each epoch.

The records of a run are also written to `metrics.jsonl`, one JSON object a line for each epoch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from operator import index
from pathlib import Path

import numpy as np

from shared.contract import NetworkLike, Stage
from shared.data.accepted_data import Split
from shared.data.batches import BatchFeeder, check_fit
from shared.layers import shortened
from shared.machine import regular, strict_json
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

    @classmethod
    def from_json(cls, saved: object) -> EpochRecord:
        """The record that `dataclasses.asdict` was called on.

        Raises TypeError or ValueError for anything else: the file may come from a stranger.
        """
        if not isinstance(saved, Mapping) or set(saved) != {each.name for each in fields(cls)}:
            raise TypeError(
                f"a record of an epoch has other fields than {', '.join(each.name for each in fields(cls))}"
            )
        if not strict_json.is_count(saved["epoch"]) or saved["epoch"] == 0:
            raise ValueError(f"epoch is {shortened(saved['epoch'])}, expected a whole number of at least 1")
        for name, value in saved.items():
            missing = value is None and name.startswith(("train_acc", "validation", "test"))
            if not missing and not strict_json.is_number(value):
                raise TypeError(f"{name} is {shortened(value)}, expected a finite number")
            if not missing and name.endswith("accuracy") and not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} is {shortened(value)}, expected 0 to 1")
        return cls(**saved)


def whole(name: str, value: object, least: int = 1) -> int:
    """The value as an int. Raises ValueError unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    if index(value) < least:
        raise ValueError(f"{name}: expected at least {least}, got {value}")
    return index(value)


def evaluate(
    stage: Stage, network: NetworkLike, data: Split, batch_size: int | None = None
) -> tuple[float, float, np.ndarray]:
    """(mean loss, accuracy, predictions int64 (n,)) of the network on data, without dropout.

    batch_size: samples in one forward pass; it limits the memory and changes the result only by rounding. None: 1,000,
        or 100 for an architecture of layers, whose images grow to many channels on their way
    """
    check_fit("data", network, data)
    if batch_size is None:
        batch_size = 100 if network.architecture.as_mlp() is None else 1000
    batch_size = whole("batch_size", batch_size)
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
    """The records of a metrics.jsonl. Raises ValueError or TypeError for what `write_metrics` did not write."""
    text = regular.read(path, strict_json.MOST_BYTES).decode()
    return [EpochRecord.from_json(strict_json.loads(line)) for line in text.splitlines()]
