"""Folders with the four IDX files of a data set: found by their names, known by their content.

Files unpacked by other programs have other names (train-images.idx3-ubyte), and torchvision keeps them in MNIST/raw.
MNIST and Fashion-MNIST use the same names, so each of the four files is held against the checksums of both: the files
of two sets together, or images in the place of labels, are refused. EMNIST stores its images transposed, and numbers
its letters from 1.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

import numpy as np

from shared.data.accepted_data import PIXELS_OR_SHARES, DataError, DataNote
from shared.data.download import FULL_SIZES, SOURCES
from shared.data.idx import idx_header, read_idx

TRAIN_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
TEST_FILES = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
FILES = TRAIN_FILES + TEST_FILES

WORDS = dict(zip(FILES, ("training images", "training labels", "test images", "test labels"), strict=True))

NAME = re.compile(
    r"(?P<set>.*?)(?P<part>train|t10k|test)[-_.](?P<what>images|labels)[-_.]?idx[1-4][-_.]ubyte(\.gz)?", re.IGNORECASE
)

TORCHVISION = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}
"""The folders in which torchvision keeps its sets, each with another folder raw in it."""

EMNIST = "emnist"

DIGITS = tuple("0123456789")
CLOTHES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")
"""The names of the classes of MNIST and of Fashion-MNIST."""


def find(folder: Path) -> dict[str, dict[str, Path]]:
    """The IDX files of a folder: what stands before their names, such as "emnist-letters-", -> {IDX name: path}.

    Of a file that is there twice the gzipped one is taken, which carries a checksum.
    """
    sets: dict[str, dict[str, Path]] = {}
    try:
        names = sorted(os.listdir(folder), key=lambda name: (name.endswith(".gz"), name))
    except OSError:
        return sets
    for name in names:
        match = NAME.fullmatch(name)
        if match is not None and (folder / name).is_file():
            part = "train" if match["part"].lower() == "train" else "t10k"
            file = next(each for each in FILES if each.startswith(f"{part}-{match['what'].lower()}"))
            sets.setdefault(match["set"], {})[file] = folder / name
    return sets


def folders_of(name: str, root: Path) -> list[Path]:
    """Where the files of a known set are looked for below a folder, first found wins."""
    return [root / name, root, root / TORCHVISION[name] / "raw", root / "raw"]


class Files:
    """The arrays of a data set's files.

    paths: IDX name -> path; most(file): the most bytes of its content; asked_for: the known set that they must be, if
    they are one that is known; None for any
    """

    def __init__(self, paths: Mapping[str, Path], most: Callable[[str], int], asked_for: str | None = None) -> None:
        self._paths, self._most = paths, most
        self.known = asked_for
        self._asked_for = asked_for

    def path(self, file: str) -> Path:
        """The path of a file of the set."""
        return self._paths[file]

    def pair(self, files: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """Images uint8 (n, height, width) and labels (n,), after all checks that need no other pair."""
        images, labels = map(self.read, files)
        paths = [self._paths[file] for file in files]
        swapped = images.ndim == 1 and labels.ndim == 3
        remedy = "; the names of the images and of the labels are swapped" if swapped else ""
        fit = (images.ndim == 3 and images.dtype == np.uint8, labels.ndim == 1 and labels.dtype.kind in "iu")
        expected = ("images, uint8 of shape (n, height, width)", "labels, whole numbers of shape (n,)")
        for path, array, fits, words in zip(paths, (images, labels), fit, expected, strict=True):
            if not fits:
                raise DataError(f"{path}: expected {words}, but it holds {array.dtype} of shape {array.shape}{remedy}")
        if images.max() == 1:
            raise DataError(f"{paths[0]}: {PIXELS_OR_SHARES}; save pixels from 0 to 255")
        if len(images) != len(labels):
            raise DataError(
                f"{paths[1]}: expected one label for each of the {len(images)} images in {paths[0]}, "
                f"but it holds {len(labels)}"
            )
        return images, labels

    def read(self, file: str) -> np.ndarray:
        """One file. Raises DataError if its content is a known file of another set, or of another place."""
        path = self._paths[file]
        array = read_idx(path, self._most(file))
        if array.dtype != np.uint8:
            return array
        sha = hashlib.sha256(idx_header(array))
        sha.update(np.ascontiguousarray(array).data)
        of = known_contents().get(sha.hexdigest())
        if of is None:
            return array
        name, true_file = of
        if self.known is None:
            self.known = name
        if name != self.known:
            other = f"but {self._asked_for} was asked for" if self._asked_for else f"beside files of {self.known}"
            raise DataError(
                f"{path}: these are {name}'s {WORDS[true_file]}, {other}; keep each set in a folder of its own, "
                "called like it"
            )
        if file != true_file:
            raise DataError(
                f"{path}: these are {name}'s {WORDS[true_file]}, but its name says {WORDS[file]}; "
                "files of the set have each other's names"
            )
        return array


def known_contents() -> dict[str, tuple[str, str]]:
    """SHA-256 of a content -> (set, IDX name)."""
    return {sha: (name, file) for name, source in SOURCES.items() for file, sha in source.sha256.items()}


def bundled(stack: ExitStack) -> dict[str, Path]:
    """IDX name -> path of the files of the bundled subset of MNIST, for as long as the stack is open."""
    folder = resources.files("shared.data") / "mnist_subset"
    # as_file: the package may be imported from an archive, where files have no path
    return {file: stack.enter_context(resources.as_file(folder / f"{file}.gz")) for file in FILES}


def look_transposed(images: np.ndarray, labels: np.ndarray) -> bool:
    """Whether images (n, height, width) are digits whose rows and columns are swapped: turned, the mean of each class
    is far more like that of MNIST's. Of MNIST the likeness is 1.0 upright and 0.6 on its side; of Fashion-MNIST 0.5."""
    with ExitStack() as stack:
        pixels, digits = Files(bundled(stack), FULL_SIZES.__getitem__).pair(TRAIN_FILES)
    if images.shape[1:] != pixels.shape[1:] or labels.max() > digits.max():
        return False
    classes = np.unique(labels)
    means = np.array([images[labels == k].mean(axis=0, dtype=np.float64) for k in classes])
    known = np.array([pixels[digits == k].mean(axis=0, dtype=np.float64) for k in classes])
    return likeness(means.transpose(0, 2, 1), known) > max(0.75, likeness(means, known) + 0.2)


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """The mean correlation of pairs of images (n, height, width)."""
    one, other = (each - each.mean(axis=(1, 2), keepdims=True) for each in (one, other))
    sizes = np.sqrt(np.square(one).sum(axis=(1, 2)) * np.square(other).sum(axis=(1, 2)))
    return float(np.mean((one * other).sum(axis=(1, 2)) / np.maximum(sizes, 1e-12)))


def note(message: str) -> None:
    """Say in what way files were taken."""
    warnings.warn(message, DataNote, stacklevel=3)
