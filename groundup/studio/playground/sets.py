"""The playground's data: points in the square from -1 to 1, divided into training and test points; or digits.

The points are those of shared.data.synthetic, moved and scaled alike in both directions into the square that the page
draws, so that one learning rate suits all sets.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from groundup.studio.playground.settings import Settings
from shared.data.batches import split_validation
from shared.data.datasets import Dataset, Split, limited, load_dataset
from shared.data.synthetic import CLOUD_DIRECTION, CLOUD_OFFSET, circles, spirals, two_clouds, xor

TEST_SHARE = 1 / 3
DIGITS = 600
"""Images of each part of "digits"; the bundled subset is class-balanced in its order."""

XOR_SCALE, CLOUD_SCALE, ROUND_SCALE = 0.75, 3.0, 1.1
"""Half the side of the square in each set's own units."""


def make(settings: Settings) -> Dataset:
    """The data set that the settings name: x float32 (n, 2) or (n, 784), y int64 (n,). The seed decides about it.

    Raises ValueError if a set of one's own is too small for two parts.
    """
    if settings.data == "digits":
        return _digits()
    points, classes = _points(settings)
    train, test = split_validation(points, TEST_SHARE, settings.seed)
    assert test is not None
    return Dataset(settings.data, train, test, classes)


@cache
def _digits() -> Dataset:
    return limited(load_dataset("mnist-subset"), DIGITS)


def _points(settings: Settings) -> tuple[Split, int]:
    """All points of a set in the plane, and the number of classes."""
    samples, seed, noise = settings.samples, settings.seed, settings.noise
    if settings.data == "own":
        x = np.array([point[:2] for point in settings.points], np.float32)
        y = np.array([point[2] for point in settings.points], np.int64)
        return Split(x, y), int(y.max()) + 1
    if settings.data == "circles":
        rings = circles(samples, seed, noise * ROUND_SCALE)
        return Split(rings.x / np.float32(ROUND_SCALE), rings.y), 2
    if settings.data == "spirals":
        arms = spirals(samples, 3, seed, noise=noise)
        return Split(arms.x / np.float32(ROUND_SCALE), arms.y), 3
    if settings.data == "clouds":
        clouds = two_clouds(samples, seed)
        middle = CLOUD_OFFSET * np.array(CLOUD_DIRECTION)
        return _moved(Split((clouds.x - middle) / CLOUD_SCALE, clouds.y), noise, seed), 2
    corners = xor()
    turns = np.arange(samples) % len(corners)
    return _moved(Split((corners.x[turns] - 0.5) / XOR_SCALE, corners.y[turns]), noise, seed), 2


def _moved(points: Split, noise: float, seed: int) -> Split:
    """The points, each moved by two normal numbers of this deviation."""
    shifts = np.random.default_rng([seed, 1]).normal(0, noise, points.x.shape)
    return Split((points.x + shifts).astype(np.float32), points.y)
