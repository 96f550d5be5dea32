"""Augmentation: the plain formula for one pixel, whole pixels unchanged, and a change that only the counter decides."""

import math
from typing import Any

import numpy as np
import pytest

from shared.data.augmentation import Augmentation, moved
from shared.dropout import mask_key, random_bits

RNG = np.random.default_rng(4)


def one_pixel(image: np.ndarray, row: int, column: int, change: tuple[float, int, int], background: float) -> float:
    """The docstring's formula for one new pixel of one image (H, W), in plain Python."""
    angle, down, right = change
    height, width = image.shape
    y, x = row - (height - 1) / 2 - down, column - (width - 1) / 2 - right
    old_row = math.cos(angle) * y + math.sin(angle) * x + (height - 1) / 2
    old_column = math.cos(angle) * x - math.sin(angle) * y + (width - 1) / 2
    total = 0.0
    for i in range(math.floor(old_row), math.floor(old_row) + 2):
        for j in range(math.floor(old_column), math.floor(old_column) + 2):
            share = (1 - abs(old_row - i)) * (1 - abs(old_column - j))
            total += share * (image[i, j] if 0 <= i < height and 0 <= j < width else background)
    return total


@pytest.mark.parametrize("shape", [(7, 5), (1, 1), (1, 6), (8, 8)])
def test_every_pixel_is_read_between_its_four_neighbours(shape: tuple[int, int]) -> None:
    images = RNG.standard_normal((4, 2, *shape))
    angles = np.array([0.3, -1.0, 0.0, math.pi])
    down, right = np.array([0.0, 2.0, -9.0, 1.0]), np.array([-1.0, 0.0, 3.0, 20.0])
    got = moved(images, angles, down, right, background=-0.5)
    for n, channel, row, column in np.ndindex(got.shape):
        change = (float(angles[n]), int(down[n]), int(right[n]))
        expected = one_pixel(images[n, channel], row, column, change, -0.5)
        assert got[n, channel, row, column] == pytest.approx(expected, abs=1e-12)


def test_a_quarter_turn_is_counter_clockwise() -> None:
    image = RNG.standard_normal((1, 1, 5, 5))
    got = moved(image, np.array([math.pi / 2]), np.zeros(1), np.zeros(1), 0.0)
    np.testing.assert_allclose(got[0, 0], np.rot90(image[0, 0]), atol=1e-12)


def test_a_shift_alone_moves_the_numbers_as_they_are() -> None:
    images = RNG.random((1, 1, 4, 6), dtype=np.float32)
    got = moved(images, np.zeros(1), np.array([1.0]), np.array([-2.0]), 0.25)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got[0, 0, 1:, :4], images[0, 0, :3, 2:])
    assert (got[0, 0, 0] == 0.25).all()
    assert (got[0, 0, :, 4:] == 0.25).all()


def test_changes_are_the_plain_formula_of_seed_epoch_and_sample() -> None:
    augmentation = Augmentation(shift=2, rotation=10.0)
    samples = np.array([0, 7, 59_999])
    angles, down, right = augmentation.changes(samples, seed=3, epoch=5)
    key = mask_key(3, 5, 2**32)  # a layer's number that no dropout has, in every version
    for n, sample in enumerate(samples.tolist()):
        u, v, w = ((random_bits(key, 3 * sample + i) >> 11) / 2**53 for i in range(3))
        assert angles[n] == (2 * u - 1) * math.radians(10)
        assert (down[n], right[n]) == (math.floor(v * 5) - 2, math.floor(w * 5) - 2)


def test_all_shifts_and_angles_occur_equally_often() -> None:
    angles, down, right = Augmentation(2, 10.0).changes(np.arange(50_000), 0, 0)
    for shifts in (down, right):
        counts = np.unique(shifts, return_counts=True)
        assert counts[0].tolist() == [-2, -1, 0, 1, 2]
        assert counts[1].min() > 9_700
    assert np.abs(angles).max() <= math.radians(10)
    counts = np.histogram(angles, 10, (-math.radians(10), math.radians(10)))
    assert counts[0].min() > 4_700
    assert abs(np.corrcoef([angles, down, right])[np.triu_indices(3, 1)]).max() < 0.02


def test_an_image_s_change_depends_on_nothing_but_seed_epoch_and_its_number() -> None:
    augmentation = Augmentation(2, 10.0, background=-0.4)
    images = RNG.standard_normal((6, 1, 9, 9)).astype(np.float32)
    samples = np.array([4, 0, 17, 3, 2, 100])
    together = augmentation.augmented(images, samples, 1, 2)
    order = np.array([5, 2, 0])
    np.testing.assert_array_equal(augmentation.augmented(images[order], samples[order], 1, 2), together[order])
    for other in ((2, 2), (1, 3)):
        assert not np.array_equal(augmentation.augmented(images, samples, *other), together)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shift": -1}, "augment_shift: expected a whole number of at least 0, got -1"),
        ({"shift": True}, "augment_shift: expected a whole number of at least 0, got True"),
        ({"rotation": 180.5}, "augment_rotation: expected an angle from 0 to 180 degrees, got 180.5"),
        ({"rotation": "10"}, "augment_rotation: expected an angle from 0 to 180 degrees, got '10'"),
        ({"background": math.inf}, "background: expected a finite number"),
    ],
)
def test_impossible_settings_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Augmentation(**values)


def test_a_shift_that_could_move_an_image_out_of_sight_is_refused() -> None:
    for sides in [(5, 4), (4, 5)]:
        images = np.ones((2, 1, *sides), np.float32)
        assert Augmentation(shift=3).augmented(images, np.arange(2), 0, 0).max() == 1.0
        with pytest.raises(ValueError, match="expected less than the images' smaller side, 4 pixels, got 4"):
            Augmentation(shift=4).augmented(images, np.arange(2), 0, 0)
