"""Normalisation of a data set: all its numbers shifted and scaled to mean 0 and deviation 1.

The mean and the deviation are those of the training samples, over all pixels together. The same two numbers then serve
the validation and the test samples, and every image that the trained network is asked about later: a network that
learned from normalised images understands no others. So a run keeps them in its checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from shared.data.accepted_data import Dataset, Split

NOTE = "normalisation"
"""The name under which the notes of a checkpoint hold the two numbers."""


@dataclass(frozen=True)
class Normalisation:
    """(x - mean) / deviation, element by element, as torchvision.transforms.Normalize for one channel.

    mean, deviation: finite numbers, deviation above 0. Raises ValueError for others.
    """

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.deviation) and self.deviation > 0.0):
            raise ValueError(
                "normalisation: expected a finite mean and a finite deviation above 0, "
                f"got {self.mean} and {self.deviation}"
            )

    @classmethod
    def of(cls, x: np.ndarray) -> Normalisation:
        """The mean and the deviation of all numbers of x, added up in float64. ValueError if all are equal."""
        mean = float(np.mean(x, dtype=np.float64))
        # Squares of differences: mean(x^2) - mean(x)^2 would lose the digits of a large mean. Row by row, so that no
        # second copy of the data set is made.
        squares = sum(float(np.sum(np.square(row.astype(np.float64) - mean))) for row in x)
        return cls(mean, math.sqrt(squares / x.size))

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> Normalisation | None:
        """The normalisation that the notes of a checkpoint hold; None if its network learned from the plain data.

        Raises ValueError if the notes hold something else in its place.
        """
        saved = notes.get(NOTE)
        if saved is None:
            return None
        if not isinstance(saved, Mapping) or set(saved) != {"mean", "deviation"}:
            raise ValueError(f"normalisation: expected a mean and a deviation, got {saved!r:.200}")
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in saved.values()):
            raise ValueError(f"normalisation: expected numbers, got {saved!r:.200}")
        return cls(float(saved["mean"]), float(saved["deviation"]))

    def as_note(self) -> dict[str, Any]:
        """The entry for the notes of a checkpoint, which `from_notes` reads."""
        return {NOTE: asdict(self)}

    def normalised(self, x: np.ndarray) -> np.ndarray:
        """(x - mean) / deviation in x's own dtype; a new array shaped like x."""
        result: np.ndarray = x - x.dtype.type(self.mean)
        result /= x.dtype.type(self.deviation)
        return result

    def dataset(self, data: Dataset) -> Dataset:
        """The data set with its training and test samples normalised."""
        train, test = (Split(self.normalised(part.x), part.y, part.shape) for part in (data.train, data.test))
        return replace(data, train=train, test=test)
