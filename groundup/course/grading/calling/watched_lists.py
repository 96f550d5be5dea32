"""Lists that count how they are read: by index, or by a walk along them.

Weeks 1 to 3 ask for a way and not only for a result: a product with zip in place of indices, a matrix that is
transposed once, a layer's weights that are not read where the result is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


class WatchedRow(list[float]):
    """A row of a matrix, which counts how it is read.

    look_ups: how many numbers were read by index or in slices; by_index: how many of them one at a time; slices: how
    many slices were taken; walks: how many walks along it were begun
    """

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        self.look_ups = self.by_index = self.slices = self.walks = 0

    def __getitem__(self, index: Any) -> Any:
        sliced = isinstance(index, slice)
        self.slices += sliced
        self.by_index += not sliced
        self.look_ups += len(range(*index.indices(len(self)))) if sliced else 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[float]:
        self.walks += 1
        return super().__iter__()


def watched(matrix: np.ndarray) -> list[WatchedRow]:
    """A matrix as a list of rows that count."""
    return [WatchedRow(row) for row in matrix.tolist()]


def look_ups(rows: list[WatchedRow]) -> int:
    """How many numbers of the matrix were read by index."""
    return sum(row.look_ups for row in rows)


def most_walks(rows: list[WatchedRow]) -> int:
    """How often the row that was walked along most often was."""
    return max(row.walks for row in rows)
