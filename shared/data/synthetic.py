"""Toy data in the plane: problems small enough to see what a network does with them.

    xor           no line separates it: needs a hidden layer
    two_clouds    a line separates it with a margin: a single layer must learn it
    circles       a disk with a ring around it: needs a hidden layer
    spirals       classes wound around each other: needs hidden layers and many epochs

Every set is a Split of x float32 (n, 2) and y int64 (n,), the same for the same seed. Unlike pixels,
coordinates are not confined to [0, 1].
"""

from __future__ import annotations

import math

import numpy as np

from shared.data.accepted_data import Split

CLOUD_DIRECTION = (math.sqrt(0.5), math.sqrt(0.5))
"""The unit vector across the gap between the clouds."""

CLOUD_OFFSET = 1.0
"""Where the line that separates them lies: at x · CLOUD_DIRECTION = CLOUD_OFFSET. Not 0, so that a bias is needed."""

CLOUD_MARGIN = 0.5
"""No point lies nearer to that line."""

CLOUD_RADIUS = 1.5

DISK_RADIUS = 0.5
RING_RADIUS = 0.7
"""The inner edge of the ring of `circles`, whose outer edge is at radius 1."""


def xor() -> Split:
    """The four corners of the unit square; the label is 1 where exactly one coordinate is 1."""
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32)
    return Split(x, np.array([0, 1, 1, 0], dtype=np.int64))


def two_clouds(samples: int = 200, seed: int = 0) -> Split:
    """Two disks of points on either side of a line, half of the samples in each (class 0 has the odd one).

    The perceptron convergence theorem promises an end to learning where there is such a margin.
    samples: at least 2. Returns x (samples, 2), y (samples,) of 0 and 1, in random order.
    Raises ValueError where there are fewer samples than clouds.
    """
    _check_counts("two_clouds", samples, 2)
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(samples, dtype=np.int64) % 2)
    side = np.where(y == 1, 1.0, -1.0)
    # The square root spreads the points evenly over the disk: without it they crowd around the centre.
    radius = CLOUD_RADIUS * np.sqrt(rng.random(samples))
    angle = rng.uniform(0, 2 * math.pi, samples)
    centres = np.outer(CLOUD_OFFSET + side * (CLOUD_MARGIN + CLOUD_RADIUS), CLOUD_DIRECTION)
    return Split((centres + _polar(radius, angle)).astype(np.float32), y)


def circles(samples: int = 200, seed: int = 0, noise: float = 0.0) -> Split:
    """A disk around the origin (class 0) and a ring around it (class 1), half of the samples in each.

    samples: at least 2. noise: standard deviation of a normal number added to each coordinate; without it no point of
    one class comes nearer to the other than 0.2.
    Returns x (samples, 2), y (samples,) of 0 and 1, in random order.
    Raises ValueError for fewer samples than classes, or negative or non-finite noise.
    """
    _check_counts("circles", samples, 2)
    _check_noise("circles", noise)
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(samples, dtype=np.int64) % 2)
    inner, outer = np.where(y == 1, RING_RADIUS, 0.0), np.where(y == 1, 1.0, DISK_RADIUS)
    # Even over the area: the area within a radius grows with its square.
    radius = np.sqrt(inner**2 + rng.random(samples) * (outer**2 - inner**2))
    angle = rng.uniform(0, 2 * math.pi, samples)
    moved = _polar(radius, angle) + rng.normal(0, noise, (samples, 2))
    return Split(moved.astype(np.float32), y)


def spirals(samples: int = 300, classes: int = 3, seed: int = 0, turns: float = 0.75, noise: float = 0.1) -> Split:
    """Arms that wind out from the origin to radius 1, one for each class, turned evenly against each other.

    samples: at least one for each class; classes get equal shares, the first ones one more where it does not divide.
    turns: how many times an arm winds around. noise: standard deviation of the angle, in radians.
    Returns x (samples, 2), y (samples,) from 0 to classes - 1, in random order.
    Raises ValueError for fewer than 2 classes, fewer samples than classes, or negative or non-finite noise.
    """
    if classes < 2:
        raise ValueError(f"spirals: classes is {classes}; expected at least 2")
    _check_counts("spirals", samples, classes)
    _check_noise("spirals", noise)
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.arange(samples, dtype=np.int64))
    y = order % classes
    # Points of an arm stand evenly along it: `order // classes` is a point's place on its arm.
    radius = (order // classes + 1) / math.ceil(samples / classes)
    angle = 2 * math.pi * (y / classes + turns * radius) + rng.normal(0, noise, samples)
    return Split(_polar(radius, angle).astype(np.float32), y)


def _polar(radius: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """(n,), (n,) -> (n, 2): the points' Cartesian coordinates."""
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _check_counts(function: str, samples: int, classes: int) -> None:
    if samples < classes:
        raise ValueError(f"{function}: samples is {samples}; expected at least one for each of the {classes} classes")


def _check_noise(function: str, noise: float) -> None:
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"{function}: noise is {noise}; expected a number that is 0 or more")
