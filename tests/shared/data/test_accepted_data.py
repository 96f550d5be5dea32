"""What people have becomes arrays of one form, or a sentence: before the first step, and the same for every floor."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture
from shared.contract import Stage
from shared.data.accepted_data import DataError, DataNote, Dataset, Form, Split
from shared.data.augmentation import Augmentation
from shared.layers import BatchNorm, Conv, Dense, Flatten
from shared.training.loop import train
from shared.training.metrics import evaluate
from shared.training.settings import QUIET, TrainingSettings

RNG = np.random.default_rng(0)
X = RNG.random((60, 16), dtype=np.float32)
Y = (X[:, 0] * 3).astype(np.int64)
MASKED = np.ma.masked_greater(X, 0.9)


class Series:
    """As pandas' Series: an index that indexing goes by, and an array that NumPy gets."""

    def __init__(self, values: np.ndarray, order: np.ndarray) -> None:
        self.values, self.place = values, {int(name): i for i, name in enumerate(order)}

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, names: Any) -> np.ndarray:
        return self.values[[self.place[int(name)] for name in np.atleast_1d(names)]]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


def trained(stage: Stage, data: Split, **settings: Any) -> float:
    """The loss of the last epoch of a small network."""
    network = stage.network.Network([16, 8, 3], seed=1)
    chosen = TrainingSettings(**{"epochs": 2, "batch_size": 8} | settings)
    return train(stage, network, stage.optimizers.SGD(0.1), data, chosen, hooks=QUIET).epochs[-1].train_loss


# --- labels


@pytest.mark.parametrize("order", [RNG.permutation(60), np.arange(60) * 2, np.arange(60)[::-1]])
def test_labels_with_an_index_of_their_own_are_taken_by_position(order: np.ndarray) -> None:
    np.testing.assert_array_equal(Split(X, Series(Y, order)).y, Y)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["u1", "i2", ">i4", ">u8", "O"])
def test_whole_numbers_of_any_kind_are_labels(kind: str) -> None:
    split = Split(X, Y.astype(kind))
    assert split.y.dtype == np.int64
    assert split.y.dtype.isnative
    np.testing.assert_array_equal(split.y, Y)


def test_bools_are_the_labels_0_and_1() -> None:
    assert Split(X[:2], [True, False]).y.tolist() == [1, 0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "error", "sentence"),
    [
        (Y.astype(float), TypeError, r"expected whole numbers, got ndarray of float64; if they are whole: \.astype"),
        (Y.astype(str), TypeError, r"expected whole numbers from 0, got texts like '\d'; .*return_inverse=True"),
        (np.eye(3)[Y], ValueError, r"expected one for each sample, \(n,\), got shape \(60, 3\); y\.argmax"),
        (Y[:40], ValueError, "expected as many samples as labels, got 60 and 40"),
        ([2**70] + [0] * 59, ValueError, "labels: expected classes from 0, got a whole number of 71 bits"),
        (np.ma.array(Y, mask=Y == 2), TypeError, "labels: a masked array would lose its mask"),
        ([[0, 1], [2]], ValueError, "labels: expected rows of equal length"),
    ],
)
def test_other_labels_are_refused_with_a_sentence(labels: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        Split(X, labels)


# --- samples


@pytest.mark.parametrize(
    "given", [X.tolist(), list(X), X.astype(">f4"), X.astype(">f8"), np.asfortranarray(X), X[::-1][::-1]]
)
def test_numbers_in_any_order_and_form_are_samples(given: Any) -> None:
    split = Split(given, Y)
    assert type(split.x) is np.ndarray
    assert split.x.dtype.isnative
    np.testing.assert_array_equal(split.x, X)


def test_a_memory_map_stays_where_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    split = Split(np.load(tmp_path / "x.npy", mmap_mode="r"), Y)
    assert isinstance(split.x.base, np.memmap)
    np.testing.assert_array_equal(split.x, X)


@pytest.mark.parametrize("augmentation", [None, Augmentation(rotation=20), Augmentation(shift=1)])
def test_bytes_are_divided_by_255_and_that_is_said(numpy_stage: Stage, augmentation: Augmentation | None) -> None:
    pixels = (X * 255).astype("u1")
    with pytest.warns(DataNote, match="uint8 from 0 to 255 was divided by 255") as said:
        data = Split(pixels, Y)
    assert said[0].filename == __file__  # the line that made the split
    expected = Split(pixels.astype("f4") / 255, Y)
    losses = [trained(numpy_stage, each, augmentation=augmentation) for each in (data, expected)]
    assert losses[0] == losses[1]


def test_bools_are_pixels_of_0_and_1() -> None:
    np.testing.assert_array_equal(Split(X > 0.5, Y).x, (X > 0.5).astype("f4"))


@pytest.mark.parametrize(
    ("x", "error", "sentence"),
    [
        ((X * 255).astype("i2"), TypeError, r"expected floats, or uint8 of pixels from 0 to 255, got ndarray of int16"),
        ((X > 0.5).astype("u1"), TypeError, "uint8 of 0 and 1 may be pixels or shares"),
        (X.astype(complex), TypeError, "expected numbers, got ndarray of complex128"),
        (MASKED, TypeError, "x: a masked array would lose its mask"),
        (X[:, 0], ValueError, r"expected a row for each sample, \(n, features\), got shape \(60,\)"),
        (X[:40], ValueError, "expected as many samples as labels, got 40 and 60"),
        (RNG.random((60, 3, 4, 3)), ValueError, "where either may be the channels"),
        ([[1.0, 2.0], [3.0]], ValueError, "x: expected rows of equal length"),
        (None, TypeError, "expected numbers, got NoneType of object"),
    ],
)
def test_other_samples_are_refused_with_a_sentence(x: Any, error: type[Exception], sentence: str) -> None:
    with warnings.catch_warnings(action="error"), pytest.raises(error, match=sentence):
        Split(x, Y)


@pytest.mark.parametrize(("value", "said"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numbers_that_are_not_finite_are_named_with_their_place(value: float, said: str, dtype: str) -> None:
    x = X.astype(dtype)
    x[3, 5] = value
    with pytest.raises(ValueError, match=f"x: expected finite numbers, but sample 3 has {said} at place 5"):
        Split(x, Y)


def test_large_numbers_are_finite_though_their_sum_is_not() -> None:
    Split(np.full((4, 2), 1.7e308), np.zeros(4, int))


def test_images_keep_their_shape_and_become_rows() -> None:
    images = RNG.random((5, 4, 6))
    grey, first, last = (Split(x, np.zeros(5, int)) for x in (images, images[:, None], images[..., None]))
    for split in (grey, first, last):
        assert split.shape == (1, 4, 6)
        np.testing.assert_array_equal(split.x, images.reshape(5, 24))
    colour = RNG.random((5, 4, 6, 3))
    split = Split(colour, np.zeros(5, int))
    assert split.shape == (3, 4, 6)
    np.testing.assert_array_equal(split.x, colour.transpose(0, 3, 1, 2).reshape(5, -1))
    assert split.first(2).shape == split.chosen(np.array([1])).shape == (3, 4, 6)


# --- before the first step


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        (Split(X[:, :15], Y), "test data: the data has 15 features, but the network takes 16"),
        (Split(X[:0], Y[:0]), "test data: expected at least one sample, got none"),
        (Split(X, Y + 1), r"test data: labels go from 1 to 3, but 3 output\(s\) can tell 0 to 2 apart"),
    ],
)
def test_test_data_is_looked_at_before_the_first_step(numpy_stage: Stage, test: Split, sentence: str) -> None:
    network = numpy_stage.network.Network([16, 8, 3])
    before = network.parameters[0].copy()
    with pytest.raises(ValueError, match=sentence):
        train(numpy_stage, network, numpy_stage.optimizers.SGD(0.1), Split(X, Y), TrainingSettings(1), test_data=test)
    np.testing.assert_array_equal(network.parameters[0], before)
    with pytest.raises(ValueError, match=sentence.replace("test data", "data")):
        evaluate(numpy_stage, network, test)


def test_images_of_another_shape_with_as_many_numbers_are_refused(numpy_stage: Stage) -> None:
    network = numpy_stage.network.Network(Architecture((1, 2, 8), (Conv(2, 1), Flatten(), Dense(3))))
    wide, high, flat = Split(X.reshape(60, 2, 8), Y), Split(X.reshape(60, 8, 2), Y), Split(X, Y)
    sentence = "data has images of 1 x 8 x 2, but the network takes images of 1 x 2 x 8"
    for data, test, where in ((high, None, "training"), (wide, high, "test"), (flat, high, "test")):
        for augmentation in (None, Augmentation(shift=1)):
            settings, optimizer = TrainingSettings(1, augmentation=augmentation), numpy_stage.optimizers.SGD(0.1)
            with pytest.raises(ValueError, match=f"{where} data: the {sentence}"):
                train(numpy_stage, network, optimizer, data, settings, test_data=test)
    with pytest.raises(ValueError, match=sentence):
        evaluate(numpy_stage, network, high)


def test_numbers_that_float32_does_not_hold_are_told_from_a_training_that_diverged(numpy_stage: Stage) -> None:
    huge, network = Split(X.astype("f8") * 1e39, Y), numpy_stage.network.Network([16, 3])
    sentence = r"(data: x|augmentation: background): expected numbers that float32 holds, got (9\..*e\+38|1e\+39)"
    for data, test, background in ((huge, None, 0.0), (Split(X, Y), huge, 0.0), (Split(X, Y), None, 1e39)):
        settings = TrainingSettings(1, augmentation=Augmentation(shift=1, background=background))
        with pytest.raises(ValueError, match=sentence):
            train(numpy_stage, network, numpy_stage.optimizers.SGD(0.1), data, settings, test_data=test)
    with np.errstate(all="raise"):  # too small is 0
        assert np.isfinite(evaluate(numpy_stage, network, Split(X.astype("f8") * 1e-50, Y))[0])
    assert np.isfinite(evaluate(numpy_stage, numpy_stage.network.Network([16, 3], dtype="float64"), huge)[0])


@pytest.mark.parametrize("name", ["epochs", "batch_size", "patience", "seed"])
@pytest.mark.parametrize("value", [2.5, 8.0, True, "8"])
def test_a_part_of_a_sample_or_an_epoch_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected a whole number of at least [01], got {value!r}"):
        TrainingSettings(**{"epochs": 1, "validation": 0.5, name: value})
    with pytest.raises(ValueError, match=r"batch_size: expected a whole number of at least 1, got 2\.5"):
        evaluate(None, _Takes16(), Split(X, Y), batch_size=2.5)  # type: ignore[arg-type]


class _Takes16:
    layer_sizes, loss_name, dtype, architecture = (
        [16, 3],
        "softmax_cross_entropy",
        "float32",
        Architecture((16,), (Dense(3),)),
    )


class TestABatchOfOneForABatchNormalisation:
    def network(self, stage: Stage) -> Any:
        return stage.network.Network(Architecture((16,), (Dense(4), BatchNorm(), Dense(3))))

    @pytest.mark.parametrize(("count", "batch_size"), [(57, 8), (9, 4), (1, 8), (60, 1)])
    def test_is_told_before_the_first_step(self, stage: Stage, count: int, batch_size: int) -> None:
        network, settings = self.network(stage), TrainingSettings(1, batch_size)
        before = np.array(stage.arrays.to_host(network.parameters[0]))
        with pytest.raises(
            ValueError, match=f"{count} samples in batches of {batch_size} end in a batch of 1, and layer 2"
        ):
            train(stage, network, stage.optimizers.SGD(0.1), Split(X[:count], Y[:count]), settings, hooks=QUIET)
        np.testing.assert_array_equal(stage.arrays.to_host(network.parameters[0]), before)


# --- the form of a data set


def test_a_form_comes_back_from_the_notes() -> None:
    form = Form((3, 24, 16), ("a", "ä", "c d"))
    assert Form.from_notes(form.as_note()) == form
    assert Form.from_notes({}) is None
    for white in (True, False):
        saved = Form.from_notes(Form((1, 2, 2), ("a", "b"), on_white=white).as_note())
        assert saved is not None
        assert saved.on_white is white
    assert str(form) == "images of 24 by 16 pixels, colour in 3 classes"


@pytest.mark.parametrize(
    "saved",
    [
        [],
        {"shape": [1, 2, 3]},
        {"shape": [1, 2, 2], "classes": ["a", "b"], "on_white": 1},
        {"shape": [1, 0, 2], "classes": ["a", "b"]},
        {"shape": [1, 2**20, 2**20], "classes": ["a", "b"]},
        {"shape": [1, 2, 2], "classes": ["a", "a"]},
        {"shape": [1, 2, 2], "classes": [str(i) for i in range(1001)]},
    ],
)
def test_notes_with_another_form_in_them_are_refused(saved: Any) -> None:
    with pytest.raises(ValueError, match=r"^data: "):
        Form.from_notes({"data": saved})


def test_a_data_set_without_a_form_has_that_of_its_samples() -> None:
    points, images = Split(X[:, :3], Y), Split(X, Y)
    assert Dataset("points", points, points, 3).described == Form((1, 1, 3), ("0", "1", "2"))
    assert Dataset("images", images, images, 3).described.shape == (1, 4, 4)
    with pytest.raises(ValueError, match=r"data: images of 1 x 5 x 5 have other than 16 numbers"):
        Split(X, Y, (1, 5, 5))
    assert issubclass(DataError, ValueError)
