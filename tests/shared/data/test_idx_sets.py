"""Folders with four IDX files: under other names, in other places, of two sets at once, and those of EMNIST."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest

from shared.data.datasets import CLOTHES, FILES, TEST_FILES, TRAIN_FILES, DataError, DataNote, load_dataset, load_test
from shared.data.download import SOURCES, Source
from shared.data.idx import content_sha256
from tests.shared.data.idx_files import idx_bytes, small_mnist, write


def put(folder: Path, arrays: dict[str, np.ndarray], named: dict[str, str] | None = None) -> Path:
    """The files of a set in a folder. named: IDX name -> the file's name, where it has another one"""
    for name, array in arrays.items():
        write(folder / (named or {}).get(name, f"{name}.gz"), idx_bytes(array))
    return folder


@pytest.fixture(autouse=True)
def _notes_are_errors() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataNote)
        yield


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, np.ndarray]]:
    """Two small sets whose files are known by their checksums, as those of MNIST and Fashion-MNIST are."""
    sets = {"mnist": small_mnist(1), "fashion-mnist": small_mnist(2)}
    for name, arrays in sets.items():
        folder = put(tmp_path / "known" / name, arrays)
        sums = {file: content_sha256(folder / f"{file}.gz") for file in FILES}
        monkeypatch.setitem(SOURCES, name, Source(mirrors=(), sha256=sums))
    return sets


# --- names and places


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("pattern", ["{}.idx{}-ubyte", "{}_idx{}_ubyte", "{}-idx{}.ubyte", "{}.idx{}.ubyte"])
def test_names_that_other_programs_give_are_known(tmp_path: Path, name: str, suffix: str, pattern: str) -> None:
    arrays = small_mnist()
    other = {file: pattern.format(file.partition("-idx")[0], file[-7]) + suffix for file in FILES}
    put(tmp_path / name, arrays, other)
    np.testing.assert_array_equal(load_dataset(name, tmp_path).test.y, arrays[TEST_FILES[1]])
    data = load_dataset(str(tmp_path / name))
    np.testing.assert_array_equal(data.train.y, arrays[TRAIN_FILES[1]])


@pytest.mark.parametrize(
    ("name", "place", "asked_for"),
    [
        ("mnist", "MNIST/raw", "."),
        ("mnist", "MNIST/raw", "MNIST"),
        ("mnist", "MNIST/raw", "MNIST/raw"),
        ("fashion-mnist", "FashionMNIST/raw", "."),
        ("fashion-mnist", "FashionMNIST/raw", "FashionMNIST"),
    ],
)
def test_torchvision_s_folders_are_known(tmp_path: Path, name: str, place: str, asked_for: str) -> None:
    put(tmp_path / place, small_mnist())
    assert len(load_dataset(name, tmp_path / asked_for).train) == 12
    assert len(load_test(name, tmp_path / asked_for)) == 5


@pytest.mark.parametrize("pairs", [[TRAIN_FILES], [TEST_FILES], [TRAIN_FILES, TEST_FILES]])
def test_images_and_labels_with_each_other_s_names_are_told(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    arrays = small_mnist()
    swapped = {file: f"{other}.gz" for pair in pairs for file, other in (pair, pair[::-1])}
    put(tmp_path / "mnist", arrays, swapped)
    for name, data_dir in (("mnist", tmp_path), (str(tmp_path / "mnist"), None)):
        with pytest.raises(DataError, match=r"it holds uint8 of shape \(\d+,\); the names of the images"):
            load_dataset(name, data_dir)


# --- files of two sets


@pytest.mark.parametrize("files", [each for n in (1, 2, 3) for each in itertools.combinations(FILES, n)])
def test_files_of_two_known_sets_are_refused(
    tmp_path: Path, known: dict[str, dict[str, np.ndarray]], files: tuple[str, ...]
) -> None:
    mixed = known["mnist"] | {file: known["fashion-mnist"][file] for file in files}
    put(tmp_path / "mnist", mixed)
    with pytest.raises(DataError, match=r"these are fashion-mnist's .*, but mnist was asked for; keep each set"):
        load_dataset("mnist", tmp_path)
    with pytest.raises(DataError, match=r"these are (fashion-)?mnist's .*, beside files of (fashion-)?mnist"):
        load_dataset(str(tmp_path / "mnist"))


def test_training_and_test_files_with_each_other_s_names_are_refused(
    tmp_path: Path, known: dict[str, dict[str, np.ndarray]]
) -> None:
    named = dict(zip(FILES, (f"{file}.gz" for file in (*TEST_FILES, *TRAIN_FILES)), strict=True))
    put(tmp_path / "mnist", known["mnist"], named)
    with pytest.raises(DataError, match="these are mnist's test images, but its name says training images"):
        load_dataset("mnist", tmp_path)


def test_files_that_nobody_knows_are_taken(tmp_path: Path, known: dict[str, dict[str, np.ndarray]]) -> None:
    put(tmp_path / "mnist", small_mnist(7))
    load_dataset("mnist", tmp_path)
    put(tmp_path / "fashion-mnist", known["fashion-mnist"])
    assert load_dataset(str(tmp_path / "fashion-mnist")).described.names == CLOTHES  # known by its content


# --- EMNIST


def digits(count: int = 400) -> dict[str, np.ndarray]:
    """Digits of the bundled subset as the arrays of four files."""
    data = load_dataset()
    found = {}
    for part, names in ((data.train, TRAIN_FILES), (data.test, TEST_FILES)):
        x = np.rint(part.x[:count] * 255).astype(np.uint8).reshape(-1, 28, 28)
        found |= dict(zip(names, (x, part.y[:count].astype(np.uint8)), strict=True))
    return found


def transposed(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array.transpose(0, 2, 1) if array.ndim == 3 else array for name, array in arrays.items()}


def emnist_names(kind: str) -> dict[str, str]:
    return {file: f"emnist-{kind}-{file.replace('t10k', 'test')}.gz" for file in FILES}


def test_the_letters_of_emnist_are_turned_upright_and_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {}
    for names in (TRAIN_FILES, TEST_FILES):
        images, labels = rng.integers(0, 256, (52, 28, 28), dtype=np.uint8), np.arange(52, dtype=np.uint8) % 26 + 1
        arrays |= dict(zip(names, (images, labels), strict=True))
    put(tmp_path / "letters", transposed(arrays), emnist_names("letters"))
    with pytest.warns(DataNote) as said:
        data = load_dataset(str(tmp_path / "letters"))
    assert [str(each.message).partition(": ")[2] for each in said] == [
        "no image has the label 0, so the classes are 1 to 26, as EMNIST numbers its letters",
        "its images are transposed, as EMNIST stores them; they were turned upright",
    ]
    assert data.described.names == tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    np.testing.assert_array_equal(data.train.y, arrays[TRAIN_FILES[1]] - 1)
    np.testing.assert_array_equal(np.rint(data.train.x * 255).reshape(-1, 28, 28), arrays[TRAIN_FILES[0]])


@pytest.mark.parametrize("names", [None, emnist_names("digits")])
def test_digits_on_their_sides_are_turned_upright_whatever_their_files_are_called(
    tmp_path: Path, names: dict[str, str] | None
) -> None:
    arrays = digits()
    put(tmp_path / "sides", transposed(arrays), names)
    with pytest.warns(DataNote, match="its images are transposed, as EMNIST stores them; they were turned upright"):
        data = load_dataset(str(tmp_path / "sides"))
    np.testing.assert_array_equal(np.rint(data.test.x * 255).reshape(-1, 28, 28), arrays[TEST_FILES[0]])


def test_digits_on_their_sides_are_not_taken_for_mnist(tmp_path: Path) -> None:
    put(tmp_path / "mnist", transposed(digits()))
    with pytest.raises(DataError, match=r"mnist: its digits lie on their sides, .* as EMNIST stores"):
        load_dataset("mnist", tmp_path)
    put(tmp_path / "mnist", digits())
    load_dataset("mnist", tmp_path)


def test_labels_from_1_are_not_taken_for_mnist_and_are_told_of_a_folder(tmp_path: Path) -> None:
    arrays = {name: array + 1 if array.ndim == 1 else array for name, array in small_mnist().items()}
    put(tmp_path / "mnist", arrays)
    with pytest.raises(DataError, match=r"expected labels from 0 to 9, but label .* is 10; the labels begin at 1"):
        load_dataset("mnist", tmp_path)
    with pytest.warns(DataNote, match="no image has the label 0, so the classes are 1 to 10"):
        data = load_dataset(str(tmp_path / "mnist"))
    assert data.described.names[0] == "1"
    np.testing.assert_array_equal(data.train.y, small_mnist()[TRAIN_FILES[1]])
