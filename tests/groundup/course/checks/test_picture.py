"""What is drawn of two results: their part around the largest difference, each wrong number marked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.picture import MOST, picture


def drawn(got: object, expected: object) -> dict[str, object]:
    with pytest.raises(Wrong) as caught:
        Tally().equal(got, expected, case="f(x)")
    assert caught.value.picture is not None
    json.dumps(caught.value.picture, allow_nan=False)
    return caught.value.picture


def test_wrong_numbers_are_marked_and_nan_is_a_word() -> None:
    found = drawn([[1.0, float("nan")], [3.0, 5.0]], [[1.0, 2.0], [3.0, 4.0]])
    assert found["expected"] == [[1.0, 2.0], [3.0, 4.0]]
    assert found["got"] == [[1.0, "nan"], [3.0, 5.0]]
    assert (found["wrong"], found["count"]) == ([[0, 1], [1, 1]], 2)


def test_rounding_is_not_marked() -> None:
    found = drawn([1.0 + 1e-16, 2.5], [1.0, 2.0])
    assert (found["wrong"], found["count"]) == ([[0, 1]], 1)


def test_two_shapes_are_drawn_beside_each_other() -> None:
    found = drawn([[1.0, 2.0, 3.0]], [[1.0], [2.0], [3.0]])
    assert found["shapes"] == ["3 by 1", "1 by 3"]
    assert (found["expected"], found["got"]) == ([[1.0], [2.0], [3.0]], [[1.0, 2.0, 3.0]])
    assert found["wrong"] == []


def test_of_a_large_matrix_the_part_around_the_largest_difference_is_drawn() -> None:
    expected = np.zeros((100, 40))
    got = expected.copy()
    got[70, 30] = 5.0
    got[0, 0] = 1.0
    found = drawn(got, expected)
    row, column = found["row"], found["column"]
    assert isinstance(row, int)
    assert isinstance(column, int)
    assert found["wrong"] == [[70 - row, 30 - column]]
    assert found["count"] == 2
    assert isinstance(found["got"], list)
    assert len(found["got"]) <= MOST
    assert found["got"][70 - row][30 - column] == 5.0


def test_of_images_the_plane_with_the_difference_is_drawn() -> None:
    expected = np.zeros((2, 3, 4, 5))
    got = expected.copy()
    got[1, 2, 3, 4] = 1.0
    found = drawn(got, expected)
    assert found["plane"] == [1, 2]
    assert found["wrong"] == [[3, 4]]


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (1.0, 2.0),
        ([], [1.0]),
        (np.zeros((2, 2, 2)), np.zeros((0, 3))),
        (np.zeros((1, 0)), 3.0),
        (1.0, np.zeros((2, 2, 2))),
    ],
)
def test_any_shapes_can_be_drawn(expected: object, got: object) -> None:
    json.dumps(picture(expected, got), allow_nan=False)
