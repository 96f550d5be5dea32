"""The learner's own drawings as a data set for `groundup train`, in the folder my-digits.

A network does not learn from one drawing. So the set is the bundled subset, and behind its 6,000 training images the
drawings; the test images are those of the subset. The folder holds four IDX files, which `groundup train` reads with
`--dataset mnist --data-dir my-digits`.

Every file is replaced as a whole, and both at almost the same moment, so that a training that begins meanwhile finds
as many labels as images. Images are written before labels, and taken away after them: an image too many, after
a crash between the two, has no label, and is dropped when the set is opened next.
"""

from __future__ import annotations

import base64
import shlex
import threading
from pathlib import Path
from typing import Any

import numpy as np

from shared.data.datasets import CLASSES, SIDE, TEST_FILES, TRAIN_FILES, Split, load_dataset
from shared.data.idx import DataError, idx_bytes, read_idx
from shared.machine.atomic import write_atomically, write_together

FOLDER = "my-digits"

MOST = 5000
"""Drawings in the set; each addition writes the whole set, 4.7 MB and more."""

LATEST = 12
"""Drawings that the page shows."""


class OwnSet:
    """The set in the folder my-digits of `home`. Every method may be called by any thread."""

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER
        self._lock = threading.Lock()

    def add(self, pixels: np.ndarray, label: object) -> dict[str, Any]:
        """Add a drawing, uint8 (784,), with the digit that it shows. Returns the set as `about` does.

        Raises ValueError for a label that is no digit and for a full set, DataError if the folder holds other files,
        OSError if they cannot be written.
        """
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < CLASSES:
            raise ValueError(f"label: expected a digit from 0 to {CLASSES - 1}, got {str(label)[:20]}")
        with self._lock:
            images, labels = self._read()
            if len(labels) >= MOST:
                raise ValueError(f"{self.folder} is full: it holds {MOST:,} drawings; move it away to begin a new one")
            images = np.concatenate([images, pixels.reshape(1, SIDE, SIDE)])
            labels = np.append(labels, np.uint8(label))
            self._write_tests()
            self._write(images, labels, (0, 1))
            return self._about(images, labels)

    def take_back(self) -> dict[str, Any]:
        """Remove the drawing that was added last. ValueError if there is none."""
        with self._lock:
            images, labels = self._read()
            if not len(labels):
                raise ValueError(f"{self.folder} holds no drawing that could be taken back")
            self._write(images[:-1], labels[:-1], (1, 0))
            return self._about(images[:-1], labels[:-1])

    def about(self) -> dict[str, Any]:
        """The set: {"folder", "count", "counts": of each digit, "latest": its newest drawings, "command"}."""
        with self._lock:
            return self._about(*self._read())

    def _about(self, images: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        newest = range(len(labels) - 1, max(-1, len(labels) - 1 - LATEST), -1)
        drawings = [{"label": int(labels[i]), "pixels": base64.b64encode(images[i].tobytes()).decode()} for i in newest]
        return {
            "folder": str(self.folder),
            "count": len(labels),
            "counts": np.bincount(labels, minlength=CLASSES).tolist(),
            "latest": drawings,
            "command": command(),
        }

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        """The drawings, uint8 (n, 28, 28), and their labels, uint8 (n,)."""
        paths = [self.folder / name for name in TRAIN_FILES]
        if not any(path.exists() for path in paths):
            return np.zeros((0, SIDE, SIDE), np.uint8), np.zeros(0, np.uint8)
        first_images, first_labels = _bundled()
        images = read_idx(paths[0])
        if not paths[1].exists():  # the first addition was cut short between the two files
            return np.zeros((0, SIDE, SIDE), np.uint8), np.zeros(0, np.uint8)
        labels = read_idx(paths[1])
        for path, array, shape in ((paths[0], images, (SIDE, SIDE)), (paths[1], labels, ())):
            if array.dtype != np.uint8 or array.shape[1:] != shape:
                form = "images, uint8 of shape (n, 28, 28)" if shape else "labels, uint8 of shape (n,)"
                raise DataError(f"{path}: expected {form}, but it holds {array.dtype} of shape {array.shape}")
        if labels.max() >= CLASSES:
            first = int(np.argmax(labels >= CLASSES))
            raise DataError(f"{paths[1]}: expected labels from 0 to 9, but label {first} is {labels[first]}")
        count = len(first_labels)
        if not np.array_equal(labels[:count], first_labels) or not np.array_equal(images[:count], first_images):
            raise DataError(f"{self.folder} holds a data set that is not the studio's; move it away, or rename it")
        own = min(len(images), len(labels)) - count
        return images[count : count + own], labels[count : count + own]

    def _write(self, images: np.ndarray, labels: np.ndarray, order: tuple[int, int]) -> None:
        """Replace both files of the training set. order: which first, images (0) or labels (1)"""
        own, bundled = (images, labels), _bundled()
        whole = [idx_bytes(np.concatenate([bundled[i], own[i]])) for i in (0, 1)]
        write_together({self.folder / TRAIN_FILES[i]: whole[i] for i in order})

    def _write_tests(self) -> None:
        if not all((self.folder / name).is_file() for name in TEST_FILES):
            for name, array in zip(TEST_FILES, _as_bytes(load_dataset("mnist-subset").test), strict=True):
                write_atomically(self.folder / name, idx_bytes(array))


def command() -> str:
    """The command that trains on the set, in the studio's folder."""
    words = ["groundup", "train", "numpy", "--dataset", "mnist", "--data-dir", FOLDER, "--run-dir", f"runs/{FOLDER}"]
    words += ["--overwrite", "--optimizer", "adam", "--epochs", "20", "--augment-shift", "1"]
    return shlex.join([*words, "--augment-rotation", "12"])


def _bundled() -> tuple[np.ndarray, np.ndarray]:
    return _as_bytes(load_dataset("mnist-subset").train)


def _as_bytes(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 (n, 28, 28) and labels uint8 (n,), as the files have them."""
    return np.rint(split.x * 255).astype(np.uint8).reshape(-1, SIDE, SIDE), split.y.astype(np.uint8)
