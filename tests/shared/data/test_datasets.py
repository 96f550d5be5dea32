"""Loading data sets: the bundled one, files in a folder, and what is said where they do not fit."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shared.data.datasets import DataError, Dataset, Split, limited, load_dataset, load_test
from shared.data.download import SOURCES, Source
from shared.data.idx import content_sha256, read_idx
from shared.machine import caches
from tests.shared.data.idx_files import idx_bytes, small_mnist, write

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(small_mnist())
TRAIN_LABELS = "train-labels-idx1-ubyte"


@pytest.fixture
def no_data_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As on a fresh machine: no GROUNDUP_DATA, and a cache folder (returned) that does not exist."""
    monkeypatch.delenv("GROUNDUP_DATA", raising=False)
    cache = tmp_path / "cache"
    monkeypatch.setattr(caches, "user_cache", lambda: cache)
    return cache


def put(folder: Path, suffix: str = ".gz", **changed: np.ndarray) -> dict[str, np.ndarray]:
    """The small MNIST's files into the folder; `changed` replaces arrays, named with _ for -."""
    arrays = small_mnist() | {name.replace("_", "-"): array for name, array in changed.items()}
    for name, array in arrays.items():
        write(folder / f"{name}{suffix}", idx_bytes(array))
    return arrays


def assert_holds(dataset: Dataset, arrays: dict[str, np.ndarray]) -> None:
    for split, prefix in ((dataset.train, "train"), (dataset.test, "t10k")):
        images, labels = arrays[f"{prefix}-images-idx3-ubyte"], arrays[f"{prefix}-labels-idx1-ubyte"]
        assert split.x.dtype == np.float32
        assert split.y.dtype == np.int64
        assert len(split) == len(labels)
        expected = (images.reshape(len(images), 784) / 255).astype(np.float32)
        np.testing.assert_array_equal(split.x, expected)
        np.testing.assert_array_equal(split.y, labels)


class TestBundledSubset:
    def test_has_6000_and_1000_images_every_class_equally_often(self, no_data_around: Path):
        dataset = load_dataset()
        assert (dataset.name, dataset.classes) == ("mnist-subset", 10)
        assert dataset.train.x.shape == (6000, 784)
        assert dataset.test.x.shape == (1000, 784)
        assert np.bincount(dataset.train.y).tolist() == [600] * 10
        assert np.bincount(dataset.test.y).tolist() == [100] * 10

    def test_is_in_mixed_order(self):
        # Sorted by class, the first 100 would be of one class; in random order, hardly ever fewer than 10 of the 10.
        assert len(set(load_dataset().train.y[:100])) == 10

    def test_no_test_image_is_among_the_training_images(self):
        dataset = load_dataset()
        assert not {row.tobytes() for row in dataset.train.x} & {row.tobytes() for row in dataset.test.x}

    def test_names_its_source_and_licence(self):
        text = (ROOT / "shared" / "data" / "mnist_subset" / "LICENCE.txt").read_text()
        for required in ("Yann LeCun", "Corinna Cortes", "Christopher J. C. Burges", "ShareAlike 3.0", "by-sa/3.0"):
            assert required in text


class TestWhereDataIsLookedFor:
    @pytest.mark.parametrize("suffix", ["", ".gz"])
    @pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
    def test_in_a_subfolder_called_like_the_set(self, no_data_around: Path, tmp_path: Path, name: str, suffix: str):
        arrays = put(tmp_path / name, suffix)
        dataset = load_dataset(name, tmp_path)
        assert dataset.name == name
        assert_holds(dataset, arrays)

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_in_the_folder_itself(self, no_data_around: Path, tmp_path: Path, suffix: str):
        arrays = put(tmp_path, suffix)
        assert_holds(load_dataset("mnist", tmp_path), arrays)

    def test_the_subfolder_comes_before_the_folder(self, no_data_around: Path, tmp_path: Path):
        arrays = put(tmp_path / "mnist")
        put(tmp_path, train_labels_idx1_ubyte=np.full(12, 9, np.uint8))
        assert_holds(load_dataset("mnist", tmp_path), arrays)

    def test_argument_then_environment_then_cache(
        self, no_data_around: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        marked = {}
        for label, folder in enumerate((no_data_around, tmp_path / "environment", tmp_path / "argument")):
            marked[label] = put(folder / "mnist", train_labels_idx1_ubyte=np.full(12, label, np.uint8))
        assert_holds(load_dataset("mnist"), marked[0])
        monkeypatch.setenv("GROUNDUP_DATA", str(tmp_path / "environment"))
        assert_holds(load_dataset("mnist"), marked[1])
        assert_holds(load_dataset("mnist", tmp_path / "argument"), marked[2])


class TestWhatIsSaidOfFilesThatDoNotFit:
    def test_unknown_name(self):
        with pytest.raises(DataError, match="unknown data set 'cifar'; choose one of mnist-subset, mnist, fashion-mn"):
            load_dataset("cifar")

    def test_missing_files_name_the_folders_and_the_ways_to_get_them(self, no_data_around: Path, tmp_path: Path):
        with pytest.raises(DataError) as caught:
            load_dataset("mnist", tmp_path)
        message = str(caught.value)
        assert "\n" not in message
        for part in (*FILES, str(tmp_path / "mnist"), "--data-dir", "GROUNDUP_DATA", "--download", "mnist-subset"):
            assert part in message

    @pytest.mark.parametrize("file", FILES)
    def test_one_missing_file_is_named_and_the_others_are_not(self, no_data_around: Path, tmp_path: Path, file: str):
        put(tmp_path / "mnist")
        (tmp_path / "mnist" / f"{file}.gz").unlink()
        with pytest.raises(DataError, match=f"missing {file}.gz; looked in"):
            load_dataset("mnist", tmp_path)

    def test_fewer_labels_than_images(self, no_data_around: Path, tmp_path: Path):
        put(tmp_path, train_labels_idx1_ubyte=np.zeros(11, np.uint8))
        with pytest.raises(DataError, match=r"labels\S*: expected one label for each of the 12 images .* it holds 11"):
            load_dataset("mnist", tmp_path)

    def test_a_label_out_of_range(self, no_data_around: Path, tmp_path: Path):
        put(tmp_path, t10k_labels_idx1_ubyte=np.array([1, 9, 3, 10, 11], np.uint8))
        with pytest.raises(DataError, match=r"t10k-labels\S*: expected labels from 0 to 9, but label 3 is 10"):
            load_dataset("mnist", tmp_path)

    @pytest.mark.parametrize(
        "images", [np.zeros((12, 784), np.uint8), np.zeros((12, 28, 28), np.int16), np.zeros((12, 28, 28, 1), np.uint8)]
    )
    def test_images_of_another_form(self, no_data_around: Path, tmp_path: Path, images: np.ndarray):
        put(tmp_path, train_images_idx3_ubyte=images)
        with pytest.raises(DataError, match=r"train-images\S*: expected images, uint8 of shape \(n, height, w"):
            load_dataset("mnist", tmp_path)

    def test_images_of_another_size(self, no_data_around: Path, tmp_path: Path):
        put(tmp_path, train_images_idx3_ubyte=np.zeros((12, 28, 27), np.uint8))
        with pytest.raises(DataError, match=r"train-images\S*: expected images of 28 by 28 pixels, got 28 by 27; --"):
            load_dataset("mnist", tmp_path)

    def test_one_set_does_not_pass_for_another(
        self, no_data_around: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        put(tmp_path)
        known = {TRAIN_LABELS: content_sha256(tmp_path / f"{TRAIN_LABELS}.gz")}
        monkeypatch.setitem(SOURCES, "mnist", Source(mirrors=(), sha256=known))
        load_dataset("mnist", tmp_path)
        with pytest.raises(DataError, match="these are mnist's training labels, but fashion-mnist was asked for"):
            load_dataset("fashion-mnist", tmp_path)


def full_set(name: str) -> Path:
    """The folder of a full set, or the test is skipped."""
    root = os.environ.get("GROUNDUP_DATA")
    if not root:
        pytest.skip("GROUNDUP_DATA is not set: the full data sets are not tested")
    folder = Path(root) / name
    if not all((folder / f"{file}.gz").is_file() for file in FILES):
        pytest.skip(f"GROUNDUP_DATA has no {name} with four .gz files: it is not tested")
    return folder


class TestFullSets:
    @pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
    def test_the_originals_load_and_have_the_checksums_that_downloads_must_have(self, name: str):
        folder = full_set(name)
        dataset = load_dataset(name)
        assert dataset.train.x.shape == (60_000, 784)
        assert dataset.test.x.shape == (10_000, 784)
        assert set(dataset.train.y) == set(dataset.test.y) == set(range(10))
        assert {file: content_sha256(folder / f"{file}.gz") for file in FILES} == SOURCES[name].sha256

    def test_the_bundled_subset_is_what_its_script_makes(self, tmp_path: Path):
        folder = full_set("mnist")
        script = ROOT / "scripts" / "make_mnist_subset.py"
        subprocess.run(
            [sys.executable, script, "--data-dir", folder.parent, "--output", tmp_path],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        )
        for file in FILES:
            # Content rather than bytes: another zlib may compress differently.
            np.testing.assert_array_equal(
                read_idx(tmp_path / f"{file}.gz"), read_idx(ROOT / "shared" / "data" / "mnist_subset" / f"{file}.gz")
            )


def assert_same(one: Split, other: Split) -> None:
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.y, other.y)


def test_the_test_samples_alone_are_those_of_the_data_set(tmp_path: Path) -> None:
    assert_same(load_test(), load_dataset().test)
    put(tmp_path / "mnist")
    assert_same(load_test("mnist", tmp_path), load_dataset("mnist", tmp_path).test)


def test_the_test_samples_alone_are_refused_as_the_data_set_is(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="unknown data set 'letters'; choose one of"):
        load_test("letters")
    with pytest.raises(DataError, match="mnist: missing"):
        load_test("mnist", tmp_path)


def test_limited_takes_the_first_samples_of_both_splits() -> None:
    data = load_dataset()
    assert limited(data, None) is data
    short = limited(data, 10)
    np.testing.assert_array_equal(short.train.x, data.train.x[:10])
    np.testing.assert_array_equal(short.test.y, data.test.y[:10])
