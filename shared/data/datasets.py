"""Real data: MNIST, Fashion-MNIST, and a small part of MNIST that comes with the package.

Every set has the same form: images as rows of float32 between 0 and 1, labels as integers. The bundled
subset needs no files and no network. The full sets are looked for in a folder, first found wins: the
`data_dir` argument, the environment variable GROUNDUP_DATA, the user's cache.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path

import numpy as np

from shared.data.download import FULL_SIZES, SOURCES, download
from shared.data.idx import DataError, content_sha256, read_idx
from shared.machine import caches

__all__ = ["DATASETS", "DataError", "Dataset", "Split", "limited", "load_dataset", "load_test"]

DATASETS = ("mnist-subset", "mnist", "fashion-mnist")
CLASSES = 10
SIDE = 28
"""Images are SIDE x SIDE pixels."""

TRAIN_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
TEST_FILES = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
FILES = TRAIN_FILES + TEST_FILES


# eq=False: comparing arrays with == gives an array, which a dataclass would take for a truth value.
@dataclass(frozen=True, eq=False)
class Split:
    """Samples and their labels. x: float32 (n, features), in [0, 1] for images. y: int64 (n,)."""

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def first(self, count: int) -> Split:
        """The first `count` samples."""
        return Split(self.x[:count], self.y[:count])


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training samples and test samples, without any in common. Labels are 0 to classes - 1."""

    name: str
    train: Split
    test: Split
    classes: int


def load_dataset(
    name: str = "mnist-subset", data_dir: str | PathLike[str] | None = None, download: bool = False
) -> Dataset:
    """Load a data set by name.

    name: "mnist-subset" (bundled: 6,000 training and 1,000 test images, class-balanced; data_dir and download
        are not used), "mnist" or "fashion-mnist" (60,000 and 10,000).
    data_dir: a folder with the four IDX files, gzipped or not, in a subfolder called like the set or in the
        folder itself. None: the folder in GROUNDUP_DATA, else the user's cache.
    download: fetch files that are missing into the subfolder.
    Returns x as float32 (n, 784), pixel / 255, and y as int64 (n,).
    Raises DataError (a ValueError) for an unknown name and for files that are missing, damaged or do not fit
    together; OSError where a download cannot be written.
    """
    if name not in DATASETS:
        raise DataError(f"unknown data set {name!r}; choose one of {', '.join(DATASETS)}")
    if name == "mnist-subset":
        return _load_bundled()
    return _load_full(name, _data_root(data_dir), download)


def load_test(name: str = "mnist-subset", data_dir: str | PathLike[str] | None = None) -> Split:
    """The test samples of a data set alone: a sixth of the memory of `load_dataset`, which takes the same arguments.

    Raises DataError (a ValueError) as `load_dataset` does.
    """
    if name not in DATASETS:
        raise DataError(f"unknown data set {name!r}; choose one of {', '.join(DATASETS)}")
    if name != "mnist-subset":
        return _read_split(*(_found(name, _data_root(data_dir), False)[file] for file in TEST_FILES))
    with ExitStack() as stack:
        return _read_split(*(_bundled(stack)[file] for file in TEST_FILES))


def limited(data: Dataset, limit: int | None) -> Dataset:
    """The first `limit` samples of each split, in their order; all of them where limit is None."""
    if limit is None:
        return data
    return Dataset(data.name, data.train.first(limit), data.test.first(limit), data.classes)


def _load_bundled() -> Dataset:
    with ExitStack() as stack:
        return _read("mnist-subset", _bundled(stack))


def _bundled(stack: ExitStack) -> dict[str, Path]:
    """IDX name -> path of the bundled files, for as long as the stack is open."""
    folder = resources.files("shared.data") / "mnist_subset"
    # as_file: the package may be imported from an archive, where files have no path
    return {file: stack.enter_context(resources.as_file(folder / f"{file}.gz")) for file in FILES}


def _load_full(name: str, root: Path, may_download: bool) -> Dataset:
    return _read(name, _found(name, root, may_download))


def _found(name: str, root: Path, may_download: bool) -> dict[str, Path]:
    """IDX name -> path of a full set. Raises DataError if files are missing, or are those of the other set."""
    own_folder = root / name
    found = _find_files(own_folder)
    if len(found) < len(FILES):
        flat = _find_files(root)
        if len(flat) == len(FILES):
            found = flat
        elif may_download:
            download([file for file in FILES if file not in found], own_folder, SOURCES[name])
            found = _find_files(own_folder)
        else:
            raise _missing(name, root, max(found, flat, key=len))
    _refuse_other_set(name, found[TRAIN_FILES[1]])
    return found


def _data_root(data_dir: str | PathLike[str] | None) -> Path:
    return Path(data_dir).expanduser() if data_dir else caches.data()


def _find_files(folder: Path) -> dict[str, Path]:
    """IDX name -> path, for those that are there; gzipped ones first, since they carry a checksum."""
    candidates = ((file, folder / f"{file}{suffix}") for file in FILES for suffix in ("", ".gz"))
    return {file: path for file, path in candidates if path.is_file()}  # a later candidate replaces an earlier one


def _missing(name: str, root: Path, found: dict[str, Path]) -> DataError:
    missing = ", ".join(f"{file}.gz" for file in FILES if file not in found)
    looked = f"looked in {root / name} and {root}" if root.is_dir() else f"the folder {root} does not exist"
    return DataError(
        f"{name}: missing {missing}; {looked}. Name a folder that has them with --data-dir, or in the environment "
        f"variable GROUNDUP_DATA, or fetch them with --download. The bundled mnist-subset needs no files"
    )


def _refuse_other_set(name: str, train_labels: Path) -> None:
    """All sets use the same file names: a folder of one would otherwise pass, silently, for another."""
    digest = content_sha256(train_labels, _most(train_labels))
    for other, source in SOURCES.items():
        if other != name and digest == source.sha256[TRAIN_FILES[1]]:
            raise DataError(
                f"{train_labels}: these are {other}'s labels, but {name} was asked for; "
                f"keep each set in a subfolder called like it"
            )


def _most(path: Path) -> int:
    """The most bytes that the content of this file may have: those of the full sets, which are the largest."""
    return FULL_SIZES[path.name.removesuffix(".gz")]


def _read(name: str, paths: dict[str, Path]) -> Dataset:
    train, test = (_read_split(paths[images], paths[labels]) for images, labels in (TRAIN_FILES, TEST_FILES))
    return Dataset(name, train, test, CLASSES)


def _read_split(images_path: Path, labels_path: Path) -> Split:
    images, labels = read_idx(images_path, _most(images_path)), read_idx(labels_path, _most(labels_path))
    if images.dtype != np.uint8 or images.shape[1:] != (SIDE, SIDE):
        raise DataError(
            f"{images_path}: expected images, uint8 of shape (n, {SIDE}, {SIDE}), "
            f"but it holds {images.dtype} of shape {images.shape}"
        )
    if labels.dtype != np.uint8 or labels.ndim != 1:
        raise DataError(
            f"{labels_path}: expected labels, uint8 of shape (n,), but it holds {labels.dtype} of shape {labels.shape}"
        )
    if len(images) != len(labels):
        raise DataError(
            f"{labels_path}: expected one label for each of the {len(images)} images in {images_path}, "
            f"but it holds {len(labels)}"
        )
    if labels.max() >= CLASSES:
        first = int(np.argmax(labels >= CLASSES))
        raise DataError(f"{labels_path}: expected labels from 0 to {CLASSES - 1}, but label {first} is {labels[first]}")
    x = images.reshape(len(images), -1).astype(np.float32)
    x /= 255
    return Split(x, labels.astype(np.int64))
