"""Images of your own as a data set: a folder of pictures, an .npz file, or IDX files of any size and class count.

    FOLDER/train/CLASS/*.png, FOLDER/test/CLASS/*.png    pictures (pictures.py)
    FILE.npz                                             x_train, y_train, x_test, y_test, class_names
    FOLDER with the four files of an IDX set             as those of MNIST and EMNIST (idx_sets.py)

The classes are the sorted names of the folders, the class_names of the file, or the numbers of the labels. Images
become grey unless colour is asked for. All have one size, which `resize` can make.
"""

from __future__ import annotations

import math
import re
import string
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shared.data import pictures
from shared.data.accepted_data import (
    MOST_CLASSES,
    PIXELS_OR_SHARES,
    DataError,
    Dataset,
    Form,
    Split,
    channels_first,
    check_names,
    square,
)
from shared.data.idx import MOST_BYTES
from shared.data.idx_sets import CLOTHES, EMNIST, FILES, TEST_FILES, TRAIN_FILES, Files, find, look_transposed, note
from shared.data.pictures import MOST_MEMORY, Part, Wanted, check_amount, resized, times
from shared.machine import regular

ARRAYS = ".npz"
NEEDED = ("x_train", "y_train", "x_test", "y_test")
LARGEST_SIDE = 4096

LUMINANCE = np.array([19595, 38470, 7471], np.uint32)
"""Of red, green and blue, in 65,536ths: ITU-R BT.601, as Pillow's convert("L")."""


def load(place: Path, colour: bool = False, resize: str | None = None) -> Dataset:
    """The data set in a folder or an .npz file.

    colour: keep red, green and blue; resize: "28" or "24x16", height x width
    Raises DataError with a sentence for everything that is not as the first lines of this file say.
    """
    wanted = Wanted(colour, _size(resize))
    if place.suffix == ARRAYS and not place.is_dir():
        return _from_arrays(place, wanted)
    if not place.is_dir():
        raise DataError(f"{place}: expected a folder of images or an .npz file, but there is no such folder")
    sets = {prefix: paths for prefix, paths in find(place).items() if len(paths) == len(FILES)}
    if len(sets) > 1:
        names = ", ".join(prefix.rstrip("-_.") or "one without a name" for prefix in sorted(sets))
        raise DataError(f"{place} holds several sets, {names}; move each into a folder of its own")
    if sets:
        return _from_idx(place, *sets.popitem(), wanted)
    if not (place / "train").is_dir():
        raise DataError(
            f"{place}: expected pictures in folders {place.name}/train/CLASS, or the four files {', '.join(FILES)}"
        )
    train, test, classes = pictures.read(place, wanted)
    return _dataset(place.name, train, test, classes, wanted)


def split_of(images: np.ndarray, labels: np.ndarray) -> Split:
    """Images (n, channels, height, width) of uint8, or of floats from 0 to 1, as rows of float32."""
    x = images.reshape(len(images), -1).astype(np.float32)
    if images.dtype == np.uint8:
        x /= 255
    return Split(x, labels, images.shape[1:])


def _dataset(name: str, train: Part, test: Part, classes: Sequence[str], wanted: Wanted) -> Dataset:
    """The data set of these images, in the channels and the size that are wanted."""
    splits, shapes = [], []
    for images, labels in (train, test):
        if not images.size:
            raise DataError(f"{name}: expected training and test images with at least one pixel, got {images.shape}")
        shapes.append(shape := (3 if wanted.colour else 1, *(wanted.size or images.shape[1:3])))
        check_amount(name, len(images), shape)
        made = resized(_with_channels(images, wanted.colour), wanted.size)
        splits.append(split_of(made.transpose(0, 3, 1, 2), labels))
    if shapes[0] != shapes[1]:
        sizes = [times(shape[1:]) for shape in shapes]
        raise DataError(
            f"{name}: the training images have {sizes[0]} pixels, but the test images {sizes[1]}; all images need one "
            f"size: --resize {sizes[0]} makes it"
        )
    form = Form(shapes[0], tuple(classes), on_white(splits[0].x.reshape(-1, *shapes[0])))
    return Dataset(name, splits[0], splits[1], len(classes), form)


def on_white(images: np.ndarray) -> bool:
    """Whether the border of the images (n, channels, height, width), where there is paper, is light: above 1/2."""
    border = np.ones(images.shape[2:], bool)
    border[1:-1, 1:-1] = False
    return float(images.mean(axis=(0, 1))[border].mean()) > 0.5


def _with_channels(images: np.ndarray, colour: bool) -> np.ndarray:
    """The images with three channels if `colour`, else with one, by the luminance of red, green and blue."""
    if images.shape[3] == (3 if colour else 1):
        return images
    if colour:
        return np.repeat(images, 3, axis=3)
    if images.dtype == np.uint8:
        return ((images.astype(np.uint32) @ LUMINANCE + 0x8000) >> 16).astype(np.uint8)[..., np.newaxis]
    return np.asarray(images @ (LUMINANCE / 2**16).astype(images.dtype))[..., np.newaxis]


def _size(text: str | None) -> tuple[int, int] | None:
    """(height, width) of "28" or "24x16"."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,4})(?:x([0-9]{1,4}))?", text)
    size = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if min(size) < 1 or max(size) > LARGEST_SIDE:
        raise DataError(f"--resize: expected a size like 28, or height x width like 24x16, got {text[:60]!r}")
    return size


# ---- .npz


def _from_arrays(path: Path, wanted: Wanted) -> Dataset:
    arrays = _arrays(path)
    images, labels = [], []
    for part in ("train", "test"):
        x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
        name = f"{path}: x_{part}"
        if not x.size:
            raise DataError(f"{name}: expected at least one image, got shape {x.shape}")
        if x.dtype == np.uint8 and x.max() == 1:
            raise DataError(f"{name}: {PIXELS_OR_SHARES}; save float32, or bool for 0 and 1")
        if x.dtype == bool:
            x = x.astype(np.float32)
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            strange = np.argwhere(~np.isfinite(x))[0]
            raise DataError(f"{name}: expected finite numbers, but image {strange[0]} has {x[tuple(strange)]}")
        if x.dtype != np.uint8 and not (x.dtype.kind == "f" and x.min() >= 0 and x.max() <= 1):
            raise DataError(f"{name}: expected uint8 from 0 to 255, or floats from 0 to 1, got {_described(x)}")
        if x.ndim == 2 and (shape := square(x.shape[1])) is not None:
            x = x.reshape(-1, *shape)
        try:
            images.append(channels_first(name, x).transpose(0, 2, 3, 1))
        except ValueError as error:
            raise DataError(str(error)) from None
        if y.shape != (len(x),) or y.dtype.kind not in "iuU":
            raise DataError(f"{path}: y_{part}: expected {len(x)} labels, numbers or names, got {_described(y)}")
        labels.append(y)
    classes = _class_names(path, arrays.get("class_names"), labels)
    number = {name: label for label, name in enumerate(classes)}
    labels = [np.array([number[name] for name in y.tolist()]) if y.dtype.kind == "U" else y for y in labels]
    _note_absent(path, labels[0], classes)
    train, test = zip(images, labels, strict=True)
    return _dataset(path.stem, train, test, classes, wanted)


def _note_absent(place: Path, labels: np.ndarray, classes: Sequence[str]) -> None:
    """Say which classes have no training image."""
    if absent := sorted(set(range(len(classes))) - set(labels.tolist())):
        names = ", ".join(classes[label] for label in absent[:3])
        note(f"{place}: no training image is of class {names}" + (" and others" if len(absent) > 3 else ""))


def _class_names(path: Path, saved: np.ndarray | None, labels: Sequence[np.ndarray]) -> list[str]:
    """The names of the classes in the order of their labels: those in the file, else the sorted labels."""
    texts = [y for y in labels if y.dtype.kind == "U"]
    if len(texts) == 1:
        raise DataError(f"{path}: expected numbers or names as labels of both parts, got numbers and names")
    used = sorted({name for y in texts for name in y.tolist()})
    low, high = (0, 0) if texts else (min(int(y.min()) for y in labels), max(int(y.max()) for y in labels))
    if saved is not None and (saved.ndim != 1 or saved.dtype.kind != "U"):
        raise DataError(f"{path}: class_names: expected texts, (classes,), got {_described(saved)}")
    if saved is None and high >= MOST_CLASSES:
        raise DataError(f"{path}: expected labels from 0 to at most {MOST_CLASSES - 1}, got {high}")
    names = used or list(map(str, range(high + 1))) if saved is None else saved.tolist()
    check_names(f"{path}: class_names", names)
    if low < 0 or high >= len(names) or not set(used) <= set(names):
        came = f"labels {', '.join(used)}" if used else f"labels from {low} to {high}"
        came += "; the first class has the label 0" if low else ""
        raise DataError(f"{path}: expected a class for each label, got {len(names)} classes and {came:.200}")
    return names


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file that make a data set.

    The file may come from a stranger: nothing in it is run, and memory is taken only for what lies in it.
    """
    arrays: dict[str, np.ndarray] = {}
    try:
        with regular.opened(path) as file, zipfile.ZipFile(file) as archive:
            members: dict[str, zipfile.ZipInfo] = {}
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name in members:
                    raise DataError(f"{path}: expected each array once, but it holds {name[:60]!r} twice")
                members[name] = member
            missing = [name for name in NEEDED if name not in members]
            if missing:
                raise DataError(f"{path}: expected {', '.join(NEEDED)} and class_names, but it has no {missing[0]}")
            for name in (*NEEDED, "class_names"):
                if name in members:
                    arrays[name] = _array(f"{path}: {name}", archive, members[name])
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (OSError, zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as error:  # RuntimeError: a password
        raise DataError(f"{path}: expected an .npz file, but it is none, or damaged ({error})") from error
    return arrays


def _array(name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    form = np.lib.format
    readers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    with archive.open(member) as stream:
        try:
            shape, by_column, dtype = readers[form.read_magic(stream)](stream)
            if min(shape, default=0) < 0:
                raise ValueError(f"a size below 0 in {shape}")
        except (ValueError, KeyError) as error:  # version 3 is for names of columns, which images do not have
            raise DataError(f"{name}: its header is damaged ({error})") from error
        size, most = math.prod(shape) * dtype.itemsize, min(member.file_size, regular.largest(MOST_MEMORY))
        if dtype.kind not in "biufU":
            raise DataError(f"{name}: expected numbers or texts, got {dtype} of shape {shape}")
        if size > most:
            raise DataError(f"{name}: expected numbers or texts in at most {most:,} bytes, got {dtype} of {shape}")
        content = bytearray()
        while len(content) < size and (piece := stream.read(min(1 << 20, size - len(content)))):
            content += piece
    if len(content) < size:
        raise DataError(f"{name}: expected {size:,} bytes, as its header says, but only {len(content):,} follow")
    array = np.frombuffer(content, dtype).reshape(shape, order="F" if by_column else "C")
    array = array.astype(dtype.newbyteorder("="), copy=False)
    if dtype.kind == "U":
        codes = array.reshape(-1).view(np.uint32) if array.size else np.zeros(1, np.uint32)
        if codes.max() > sys.maxunicode or ((codes >= 0xD800) & (codes < 0xE000)).any():
            raise DataError(f"{name}: its texts are damaged: a letter of them is none")
    return array


def _described(array: np.ndarray) -> str:
    text = f"{array.dtype} of shape {array.shape}"
    return f"{text} from {array.min()} to {array.max()}" if array.size and array.dtype.kind in "biuf" else text


# ---- IDX


def _from_idx(place: Path, prefix: str, paths: dict[str, Path], wanted: Wanted) -> Dataset:
    files = Files(paths, lambda file: MOST_BYTES)
    (train, y_train), (test, y_test) = files.pair(TRAIN_FILES), files.pair(TEST_FILES)
    low, high = min(int(y_train.min()), int(y_test.min())), max(int(y_train.max()), int(y_test.max()))
    if low < 0 or high > MOST_CLASSES:
        raise DataError(f"{place}: expected labels from 0 to at most {MOST_CLASSES:,}, got {low} to {high}")
    first = min(low, 1)
    if first:
        note(f"{place}: no image has the label 0, so the classes are 1 to {high}, as EMNIST numbers its letters")
    if prefix.lower().startswith(EMNIST) or look_transposed(train, y_train - first):
        note(f"{place}: its images are transposed, as EMNIST stores them; they were turned upright")
        train, test = train.transpose(0, 2, 1), test.transpose(0, 2, 1)
    classes = [str(label) for label in range(first, high + 1)]
    if prefix.lower().startswith(f"{EMNIST}-letters") and len(classes) == 26:
        classes = list(string.ascii_uppercase)
    if files.known == "fashion-mnist":
        classes = list(CLOTHES)
    check_names(str(place), classes)
    shifted = [y.astype(np.int64) - first for y in (y_train, y_test)]
    _note_absent(place, shifted[0], classes)
    return _dataset(
        place.name, (train[..., np.newaxis], shifted[0]), (test[..., np.newaxis], shifted[1]), classes, wanted
    )
