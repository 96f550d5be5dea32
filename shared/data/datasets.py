"""Real data by name: MNIST, Fashion-MNIST, a small part of MNIST that comes with the package, and sets of your own.

Every set has the same form: images as rows of float32 between 0 and 1, labels as integers. The bundled subset needs no
files and no network. The full sets are looked for in a folder, first found wins: the `data_dir` argument, the
environment variable GROUNDUP_DATA, the user's cache. A set of your own is a folder or an .npz file
(`shared.data.own_images`).
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from shared.data import own_images
from shared.data.accepted_data import DataError, DataNote, Dataset, Form, Split
from shared.data.download import FULL_SIZES, SOURCES, download
from shared.data.idx_sets import (
    CLOTHES,
    DIGITS,
    FILES,
    TEST_FILES,
    TRAIN_FILES,
    Files,
    find,
    folders_of,
    look_transposed,
)
from shared.data.idx_sets import bundled as bundled_files
from shared.machine import caches

__all__ = [
    "CLOTHES",
    "DATASETS",
    "DIGITS",
    "FILES",
    "FORMS",
    "TEST_FILES",
    "TRAIN_FILES",
    "DataError",
    "DataNote",
    "Dataset",
    "Form",
    "Split",
    "check_apart",
    "limited",
    "load_dataset",
    "load_test",
    "place_of",
]

DATASETS = ("mnist-subset", "mnist", "fashion-mnist")
CLASSES = 10
SIDE = 28
"""The images of the known sets are SIDE x SIDE pixels."""

FORMS = {name: Form((1, SIDE, SIDE), CLOTHES if name == "fashion-mnist" else DIGITS) for name in DATASETS}
"""The form of each known set."""


def load_dataset(
    name: str = "mnist-subset",
    data_dir: str | PathLike[str] | None = None,
    download: bool = False,
    colour: bool = False,
    resize: str | None = None,
) -> Dataset:
    """Load a data set by name, or one of your own by its place.

    name: "mnist-subset" (bundled: 6,000 training and 1,000 test images, class-balanced; data_dir and download
        are not used), "mnist" or "fashion-mnist" (60,000 and 10,000); or the path of a folder or an .npz file.
    data_dir: a folder with the four IDX files, gzipped or not, in a subfolder called like the set or in the
        folder itself. None: the folder in GROUNDUP_DATA, else the user's cache. Of a set of your own: where it is now,
        if it was moved.
    download: fetch files that are missing into the subfolder.
    colour, resize: of a set of your own, see `shared.data.own_images.load`
    Returns x as float32 (n, channels * height * width), pixel / 255, and y as int64 (n,).
    Raises DataError (a ValueError) for an unknown name and for files that are missing, damaged or do not fit
    together; OSError where a download cannot be written.
    """
    own = own_place(name, data_dir)
    if own is not None:
        return own_images.load(own, colour, resize)
    _check_name(name)
    if colour or resize is not None:
        raise DataError(f"colour and resize are for images of your own; {name}'s are grey, {SIDE} by {SIDE} pixels")
    if name == "mnist-subset":
        with ExitStack() as stack:
            return _read(name, Files(bundled_files(stack), FULL_SIZES.__getitem__))
    data = _read(name, Files(_found(name, _data_root(data_dir), download), FULL_SIZES.__getitem__, name))
    if name == "mnist":
        _refuse_transposed(data)
    return data


def load_test(name: str = "mnist-subset", data_dir: str | PathLike[str] | None = None) -> Split:
    """The test samples of a data set alone. Of a known set that needs a sixth of the memory of `load_dataset`, which
    takes the same arguments.

    Raises DataError (a ValueError) as `load_dataset` does.
    """
    if name not in DATASETS:
        return load_dataset(name, data_dir).test
    with ExitStack() as stack:
        bundled = name == "mnist-subset"
        paths = bundled_files(stack) if bundled else _found(name, _data_root(data_dir), False)
        files = Files(paths, FULL_SIZES.__getitem__, None if bundled else name)
        files.read(TRAIN_FILES[1])  # small, and enough to know whose files these are
        return _read_split(name, files, TEST_FILES)


def place_of(name: str) -> str:
    """A known set's name as it is; the place of a set of your own as an absolute path, which holds in every folder."""
    own = own_place(name, None)
    return name if own is None else os.path.abspath(own)


def own_place(name: str, data_dir: str | PathLike[str] | None) -> Path | None:
    """The folder or file of a set of your own; None for the name of a known set, and for what is no place."""
    if name in DATASETS or not name or "\0" in name:
        return None
    place = Path(name).expanduser()
    if place.name == name and place.suffix != own_images.ARRAYS and not place.exists():
        return None  # a word that may be a known set's name, misspelled
    return Path(data_dir).expanduser() if data_dir else place


def check_apart(name: str, data_dir: str | PathLike[str] | None, results: Path) -> None:
    """Raise DataError for a folder of results that is a set of your own, or lies among its pictures, which would become
    a class of it."""
    own = own_place(name, data_dir)
    if own is None:
        return
    place, folder = own.resolve(), results.resolve()
    if folder == place or any(folder.is_relative_to(place / part) for part in ("train", "test")):
        raise DataError(f"{results}: this folder belongs to the data set {own}; choose another one for the results")


def limited(data: Dataset, limit: int | None) -> Dataset:
    """The first `limit` samples of each split, in their order; all of them where limit is None."""
    if limit is None:
        return data
    return replace(data, train=data.train.first(limit), test=data.test.first(limit))


def _check_name(name: str) -> None:
    if name not in DATASETS:
        raise DataError(
            f"unknown data set {name!r}; choose one of {', '.join(DATASETS)}, or name a folder or an .npz file that "
            "is there"
        )


def _found(name: str, root: Path, may_download: bool) -> dict[str, Path]:
    """IDX name -> path of a full set. Raises DataError if files are missing."""
    found = [find(folder).get("", {}) for folder in folders_of(name, root)]
    whole = next((paths for paths in found if len(paths) == len(FILES)), None)
    if whole is not None:
        return whole
    if may_download:
        download([file for file in FILES if file not in found[0]], root / name, SOURCES[name])
        return find(root / name)[""]
    raise _missing(name, root, max(found, key=len))


def _data_root(data_dir: str | PathLike[str] | None) -> Path:
    return Path(data_dir).expanduser() if data_dir else caches.data()


def _missing(name: str, root: Path, found: dict[str, Path]) -> DataError:
    missing = ", ".join(f"{file}.gz" for file in FILES if file not in found)
    looked = f"looked in {root / name} and {root}" if root.is_dir() else f"the folder {root} does not exist"
    others = sorted(prefix.rstrip("-_.") for folder in folders_of(name, root) for prefix in find(folder) if prefix)
    own = f", which have files of {', '.join(others)}: --dataset FOLDER takes those" if others else ""
    return DataError(
        f"{name}: missing {missing}; {looked}{own}. Name a folder that has them with --data-dir, or in the environment "
        f"variable GROUNDUP_DATA, or fetch them with --download. The bundled mnist-subset needs no files"
    )


def _read(name: str, files: Files) -> Dataset:
    train, test = (_read_split(name, files, pair) for pair in (TRAIN_FILES, TEST_FILES))
    return Dataset(name, train, test, CLASSES, FORMS[name])


def _read_split(name: str, files: Files, pair: tuple[str, str]) -> Split:
    images, labels = files.pair(pair)
    if images.shape[1:] != (SIDE, SIDE):
        raise DataError(
            f"{name}: {files.path(pair[0])}: expected images of {SIDE} by {SIDE} pixels, got {images.shape[1]} by "
            f"{images.shape[2]}; --dataset FOLDER takes images of any size"
        )
    if labels.min() < 0 or labels.max() >= CLASSES:
        first = int(np.argmax((labels < 0) | (labels >= CLASSES)))
        from_1 = "; the labels begin at 1, as EMNIST's letters do: --dataset FOLDER takes those" if labels.min() else ""
        raise DataError(
            f"{files.path(pair[1])}: expected labels from 0 to {CLASSES - 1}, but label {first} is {labels[first]}"
            f"{from_1}"
        )
    return own_images.split_of(images[:, np.newaxis], labels)


def _refuse_transposed(data: Dataset) -> None:
    """Raise DataError for digits whose rows and columns are swapped, which only a look at the images would show."""
    if look_transposed(data.train.x.reshape(-1, SIDE, SIDE), data.train.y):
        raise DataError(
            f"{data.name}: its digits lie on their sides, with rows and columns swapped, as EMNIST stores its images; "
            "name their folder as the data set, --dataset FOLDER, and they are turned upright"
        )
