"""Normalisation: mean 0 and deviation 1 of the training samples, and the same two numbers for all others."""

import json
import math
from typing import Any

import numpy as np
import pytest

from shared.data.datasets import Dataset, Split, load_dataset
from shared.data.normalisation import Normalisation

RNG = np.random.default_rng(8)


def test_training_samples_get_mean_0_and_deviation_1_and_the_test_samples_the_same_numbers() -> None:
    train = Split((5 + 2 * RNG.standard_normal((300, 20))).astype(np.float32), np.zeros(300, np.int64))
    test = Split(RNG.random((40, 20), dtype=np.float32), np.zeros(40, np.int64))
    normalisation = Normalisation.of(train.x)
    got = normalisation.dataset(Dataset("d", train, test, 1))
    assert np.mean(got.train.x, dtype=float) == pytest.approx(0, abs=1e-6)
    assert np.std(got.train.x, dtype=float) == pytest.approx(1, rel=1e-6)
    assert got.train.x.dtype == np.float32
    np.testing.assert_allclose(got.test.x, (test.x - normalisation.mean) / normalisation.deviation, rtol=1e-5)
    assert test.x.max() <= 1, "the samples that came must stay as they are"


def test_the_bundled_subset_has_the_known_numbers_of_mnist() -> None:
    normalisation = Normalisation.of(load_dataset().train.x)
    assert (normalisation.mean, normalisation.deviation) == pytest.approx((0.1307, 0.3081), abs=0.002)


def test_a_large_mean_costs_no_digits() -> None:
    x = 1e4 + RNG.standard_normal((50, 30))
    assert Normalisation.of(x).deviation == pytest.approx(np.std(x - 1e4), rel=1e-12)


def test_notes_give_back_the_same_numbers_through_json() -> None:
    normalisation = Normalisation.of(RNG.random((9, 7), dtype=np.float32))
    assert Normalisation.from_notes(json.loads(json.dumps(normalisation.as_note()))) == normalisation
    assert Normalisation.from_notes({}) is None


@pytest.mark.parametrize("saved", [7, [0, 1], {"mean": 0}, {"mean": 0, "deviation": "1"}, {"mean": 0, "deviation": 0}])
def test_notes_that_hold_something_else_are_refused(saved: Any) -> None:
    with pytest.raises(ValueError, match="normalisation: expected"):
        Normalisation.from_notes({"normalisation": saved})


def test_samples_that_are_all_equal_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a finite deviation above 0, got 0\.5 and 0\.0"):
        Normalisation.of(np.full((3, 4), 0.5))
    with pytest.raises(ValueError, match="finite"):
        Normalisation(math.nan, 1.0)
