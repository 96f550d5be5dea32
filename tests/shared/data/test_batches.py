"""From a data set to batches: the order, the validation split, the targets, the buffer."""

import numpy as np
import pytest

from shared import contract
from shared.data.batches import BatchFeeder, as_targets, batch_order, split_validation
from tests.shared.training.small_runs import DATA, make


def test_batch_order_visits_every_sample_once_and_differs_between_epochs_and_seeds() -> None:
    order = batch_order(100, seed=4, epoch=2)
    np.testing.assert_array_equal(np.sort(order), np.arange(100))
    np.testing.assert_array_equal(order, batch_order(100, 4, 2))
    assert not np.array_equal(order, batch_order(100, 4, 3))
    assert not np.array_equal(order, batch_order(100, 5, 2))


def test_validation_split_is_seeded_and_loses_and_doubles_nothing() -> None:
    fitted, held_out = split_validation(DATA, 0.3, seed=1)
    assert held_out is not None
    assert (len(fitted), len(held_out)) == (35, 15)
    both = np.concatenate([fitted.x, held_out.x])
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(DATA.x, axis=0))
    again = split_validation(DATA, 0.3, seed=1)[1]
    other = split_validation(DATA, 0.3, seed=2)[1]
    assert again is not None
    assert other is not None
    np.testing.assert_array_equal(held_out.x, again.x)
    assert not np.array_equal(held_out.x, other.x)


def test_orders_and_splits_are_these_in_every_version() -> None:
    """A run that an earlier version began goes on with the same samples in the same batches."""
    np.testing.assert_array_equal(batch_order(50, seed=4, epoch=2), np.random.default_rng([4, 2]).permutation(50))
    held_out = split_validation(DATA, 0.3, seed=4)[1]
    assert held_out is not None
    chosen = np.sort(np.random.default_rng([4, 0, 1]).permutation(50)[:15])
    np.testing.assert_array_equal(held_out.x, DATA.x[chosen])


def test_each_part_of_a_split_has_a_sample_at_least() -> None:
    four = DATA.first(4)
    for fraction, held in [(0.25, 1), (0.75, 3)]:
        fitted, held_out = split_validation(four, fraction, seed=0)
        assert held_out is not None
        assert (len(fitted), len(held_out)) == (4 - held, held)
    for fraction in (0.1, 0.9):
        with pytest.raises(ValueError, match=f"validation: {fraction} of 4 samples leaves one part without any"):
            split_validation(four, fraction, seed=0)


def test_targets_are_labels_one_hot_rows_or_a_column() -> None:
    labels = np.array([0, 2, 1])
    assert as_targets(labels, "hinge", 3) is labels
    rows = as_targets(labels, "mean_squared_error", 3)
    np.testing.assert_array_equal(rows, [[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert rows.dtype == np.float32
    column = as_targets(np.array([0, 1]), "sigmoid_cross_entropy", 1, "float64")
    np.testing.assert_array_equal(column, [[0], [1]])
    assert column.dtype == np.float64
    with pytest.raises(ValueError, match=r"labels go from 0 to 2, but 1 output\(s\) can tell 0 to 1 apart"):
        as_targets(labels, "sigmoid_cross_entropy", 1)
    with pytest.raises(ValueError, match=r"labels go from -1 to 1, but 3 output\(s\) can tell 0 to 2 apart"):
        as_targets(labels - 1, "hinge", 3)
    assert as_targets(labels[:0], "mean_squared_error", 3).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_feeder_gathers_the_right_rows_and_uses_its_memory_again(numpy_stage: contract.Stage, dtype: str) -> None:
    network, _ = make(numpy_stage, dtype)
    feeder = BatchFeeder(numpy_stage, network, DATA, 8)
    first, _ = feeder.batch(np.arange(8))
    indices = np.array([49, 3, 17])
    x, y = feeder.batch(indices)
    np.testing.assert_array_equal(x, DATA.x[indices])
    np.testing.assert_array_equal(y, DATA.y[indices])
    assert x.dtype == dtype
    assert np.shares_memory(first, x)
