"""Where a window fits into an image, and what is said of sizes that are none."""

from typing import Any

import numpy as np
import pytest

from shared.windows import image_shape, output_size, pair, within


@pytest.mark.parametrize("value", [(2, 3), [2, 3], np.array([2, 3]), (np.int64(2), 3)], ids=repr)
def test_a_pair_comes_back_as_pythons_numbers(value: Any) -> None:
    got = pair("f: size", value, 1)
    assert got == (2, 3)
    assert [type(number) for number in got] == [int, int]


@pytest.mark.parametrize("value", [2, np.int32(2), np.array(2)], ids=repr)
def test_one_number_counts_for_rows_and_columns(value: Any) -> None:
    assert pair("f: size", value, 1) == (2, 2)


@pytest.mark.parametrize("value", [None, 1.0, "2", "23", True, (1, True), (1, 2.0), (1, None), {1, 2}], ids=repr)
def test_what_is_no_whole_number_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^f: size: expected a whole number of at least 1, or a pair"):
        pair("f: size", value, 1)


@pytest.mark.parametrize("value", [0, -1, (1, 0), (1,), (1, 2, 3), ()], ids=repr)
def test_too_small_and_too_many_numbers_are_value_errors(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^f: size: expected a whole number of at least 1, or a pair"):
        pair("f: size", value, 1)
    assert pair("f: padding", 0, 0) == (0, 0)


def test_a_stride_within_the_image_has_the_places_of_the_longer_one() -> None:
    assert within((5, 4), (10**30, 3)) == (5, 3)
    assert within((2, 3, 5, 4), (9, 7), (2, 1)) == (9, 6)
    assert output_size("f", (5, 4), (2, 2), (9, 6), (2, 1)) == output_size("f", (5, 4), (2, 2), (10**30, 99), (2, 1))


@pytest.mark.parametrize("image", range(1, 9))
@pytest.mark.parametrize("window", range(1, 4))
@pytest.mark.parametrize("stride", range(1, 5))
@pytest.mark.parametrize("padding", range(3))
def test_the_window_has_as_many_places_as_a_walk_finds(image: int, window: int, stride: int, padding: int) -> None:
    places = [at for at in range(0, image + 2 * padding, stride) if at + window <= image + 2 * padding]
    if places:
        assert output_size("f", (image, 9), (window, 1), (stride, 4), (padding, 0)) == (len(places), 3)
        assert output_size("f", (9, image), (1, window), (4, stride), (0, padding)) == (3, len(places))
    else:
        with pytest.raises(ValueError, match="is larger than the image"):
            output_size("f", (image, 9), (window, 1), (stride, 1), (padding, 0))


def test_a_window_that_is_too_large_is_told_with_the_image_and_its_padding() -> None:
    with pytest.raises(ValueError, match=r"^f: the window \(3, 1\) is larger than the image \(2, 5\)$"):
        output_size("f", (2, 5), (3, 1), (1, 1))
    with pytest.raises(
        ValueError, match=r"^f: the window \(1, 8\) is larger than the image \(2, 5\) padded to \(2, 7\)$"
    ):
        output_size("f", (2, 5), (1, 8), (1, 1), (0, 1))


@pytest.mark.parametrize("value", [(2, 3, 4, 5), [2, 3, 4, np.int64(5)], np.array([2, 3, 4, 5])], ids=repr)
def test_an_image_shape_comes_back_as_pythons_numbers(value: Any) -> None:
    got = image_shape("f: input_shape", value)
    assert got == (2, 3, 4, 5)
    assert {type(number) for number in got} == {int}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *[(value, TypeError) for value in (None, 4, "2345", (1, 2, 3, 4.0), (1, 2, 3, True), (1, 2, 3, None))],
        *[(value, ValueError) for value in ((), (1, 2, 3), (1, 2, 3, 4, 5), (1, 2, 0, 4), (1, 2, 3, -4))],
    ],
)
def test_what_is_no_image_shape_is_refused(value: Any, kind: type[Exception]) -> None:
    with pytest.raises(
        kind, match=r"^f: input_shape: expected 4 whole numbers \(batch, channels, rows, columns\) of at "
    ):
        image_shape("f: input_shape", value)
