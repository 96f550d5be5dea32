"""The toy sets are what they promise: seeded, balanced, and as separable as they say."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.data.datasets import Split
from shared.data.synthetic import CLOUD_DIRECTION, CLOUD_MARGIN, CLOUD_OFFSET, circles, spirals, two_clouds, xor

counts_and_seeds = {"samples": st.integers(3, 400), "seed": st.integers(0, 2**32)}


def line_separates(split: Split) -> bool:
    """Whether some line through the plane has all of one class strictly on one side: a linear program by perceptron.

    The perceptron stops after at most (R / margin)² corrections; far beyond that means there is no line.
    """
    rows = np.column_stack([split.x.astype(np.float64), np.ones(len(split))]) * np.where(split.y == 1, 1, -1)[:, None]
    weights = np.zeros(3)
    for _ in range(2000):
        wrong = np.flatnonzero(rows @ weights <= 0)
        if not len(wrong):
            return True
        weights += rows[wrong[0]]
    return False


def test_xor_is_the_four_corners_and_no_line_separates_it():
    split = xor()
    assert {(*point, label) for point, label in zip(split.x.tolist(), split.y.tolist(), strict=True)} == {
        (0, 0, 0),
        (0, 1, 1),
        (1, 0, 1),
        (1, 1, 0),
    }
    assert not line_separates(split)


@settings(deadline=None, max_examples=50)
@given(**counts_and_seeds)
def test_the_known_line_separates_the_clouds_with_the_promised_margin(samples: int, seed: int):
    split = two_clouds(samples, seed)
    signed_distance = (split.x @ np.array(CLOUD_DIRECTION) - CLOUD_OFFSET) * np.where(split.y == 1, 1, -1)
    assert signed_distance.min() >= CLOUD_MARGIN - 1e-6  # float32 coordinates


@settings(deadline=None, max_examples=50)
@given(**counts_and_seeds)
def test_classes_have_equal_shares(samples: int, seed: int):
    for split, classes in ((two_clouds(samples, seed), 2), (circles(samples, seed), 2), (spirals(samples, 3, seed), 3)):
        shares = np.bincount(split.y, minlength=classes)
        assert shares.sum() == samples
        assert len(shares) == classes
        assert shares.max() - shares.min() <= 1


@pytest.mark.parametrize("make", [two_clouds, circles, spirals])
def test_samples_come_in_mixed_order(make: Callable[..., Split]):
    labels = make(300).y
    changes = np.count_nonzero(labels[1:] != labels[:-1])
    assert 50 < changes < 290  # sorted by class: 1 or 2 changes; taking turns: 299


@pytest.mark.parametrize("make", [two_clouds, circles, spirals])
def test_the_seed_decides_and_nothing_else(make: Callable[..., Split]):
    first, again, other = make(seed=3), make(seed=3), make(seed=4)
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.x, other.x)


def test_spiral_arms_are_one_arm_turned():
    split = spirals(300, classes=3, seed=1, noise=0)
    points = split.x @ np.array([1, 1j])
    arms = [points[split.y == label] for label in range(3)]
    arms = [arm[np.argsort(np.abs(arm))] for arm in arms]
    assert np.abs(arms[0][-1]) == pytest.approx(1)
    for label in (1, 2):
        np.testing.assert_allclose(arms[label], arms[0] * np.exp(2j * np.pi * label / 3), atol=1e-5)


def test_the_circles_are_a_disk_and_a_ring_with_a_gap_between():
    split = circles(400, seed=2)
    radius = np.hypot(*split.x.T)
    assert radius[split.y == 0].max() <= 0.5 + 1e-6
    assert radius[split.y == 1].min() >= 0.7 - 1e-6
    assert radius.max() <= 1 + 1e-6
    # Even over the area: a quarter of a disk's points lies within half of its radius.
    assert np.mean(radius[split.y == 0] < 0.25) == pytest.approx(0.25, abs=0.08)
    assert not line_separates(split)


def test_no_line_separates_two_spirals():
    assert not line_separates(spirals(200, classes=2))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: two_clouds(1), "two_clouds: samples is 1; expected at least one for each of the 2 classes"),
        (lambda: spirals(4, 5), "spirals: samples is 4; expected at least one for each of the 5 classes"),
        (lambda: spirals(10, 1), "spirals: classes is 1; expected at least 2"),
        (lambda: circles(noise=-1), "circles: noise is -1; expected a number that is 0 or more"),
    ],
)
def test_impossible_requests_are_refused_in_words(call: Callable[[], Split], says: str):
    with pytest.raises(ValueError, match=says):
        call()
