"""The right result and the learner's as numbers to be drawn: the part of both around the largest difference.

picture(expected, got, apart)    both parts, where they differ, and which part of the whole it is; ready for JSON
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MOST = 16
"""Rows and columns that are drawn; of larger arrays the part around the largest difference."""


def picture(expected: Any, got: Any, apart: np.ndarray | None = None) -> dict[str, Any]:
    """The last two dimensions of both arrays around the largest difference. A NaN or infinity is text: "nan", "-inf".

    apart: the difference of each element in tolerances, more than 1 where it is wrong; None where the shapes differ
    Returns {"expected", "got": lists of rows; "shapes": both shapes as text; "row", "column": where the parts begin;
    "plane": which matrix of a larger array it is; "wrong": [row, column] of each wrong element of the part; "count":
    of all wrong elements}
    """
    one, other = np.asarray(expected, np.float64), np.asarray(got, np.float64)
    wrong = None if apart is None else np.asarray(~(apart <= 1))
    at = (0,) * one.ndim if apart is None else tuple(map(int, np.unravel_index(int(np.argmax(apart)), apart.shape)))
    plane = at[:-2]
    row, column = (0, 0, *at)[-2:]
    down, right = (max(0, place - MOST // 2) if place >= MOST else 0 for place in (row, column))
    cut = np.s_[down : down + MOST, right : right + MOST]
    marked = [] if wrong is None else np.argwhere(_matrix(wrong, plane)[cut]).tolist()
    return {
        "expected": _rows(_matrix(one, plane)[cut]),
        "got": _rows(_matrix(other, plane if other.ndim == one.ndim else ())[cut]),
        "shapes": [_shape(one), _shape(other)],
        "row": down,
        "column": right,
        "plane": list(plane),
        "wrong": marked,
        "count": 0 if wrong is None else int(wrong.sum()),
    }


def _matrix(array: np.ndarray, plane: tuple[int, ...]) -> np.ndarray:
    """A number or a vector as a matrix of one row; of more than two dimensions the matrix at `plane`."""
    if array.ndim <= 2:
        return np.atleast_2d(array)
    if len(plane) != array.ndim - 2 or any(i >= size for i, size in zip(plane, array.shape, strict=False)):
        plane = (0,) * (array.ndim - 2)
    found: np.ndarray = array[plane] if 0 not in array.shape else np.zeros((0, 0))
    return found


def _rows(matrix: np.ndarray) -> list[list[float | str]]:
    return [[value if math.isfinite(value) else str(value) for value in row] for row in matrix.tolist()]


def _shape(array: np.ndarray) -> str:
    return " by ".join(map(str, array.shape)) or "one number"
