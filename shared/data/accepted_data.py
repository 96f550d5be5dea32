"""The door: what people have becomes the arrays that every stage trains on, once, before the first step.

    Split      samples and their labels, as arrays of one form
    Form       what a sample is, and what the classes are called: what a checkpoint keeps of a data set
    Dataset    training samples and test samples of one form

Lists, DataFrames, Series (by position), memory maps and big-endian arrays are taken; images may keep their shape. What
could be meant in two ways is refused with a sentence. What is taken in one of them is said as a DataNote, a warning.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.layers import Shape, shortened, times
from shared.plain_arrays import plain_array
from shared.shapes import whole
from shared.text import printable

NOTE = "data"
"""The name under which the notes of a checkpoint hold the form of its data set."""

MOST_CLASSES, MOST_NUMBERS, LONGEST_NAME = 1000, 2**24, 200
"""Of a form that is read from a file: classes, numbers of one sample, letters of a class's name."""

PIXELS_OR_SHARES = "uint8 of 0 and 1 may be pixels or shares"

CHANNELS = (1, 3)
"""Of an image: grey, or red, green and blue."""


class DataError(ValueError):
    """A data file is missing, damaged or not what it should be; the message names it and says what to do."""


class DataNote(UserWarning):
    """Data was taken in one of the ways in which it can be meant; the message says in which."""


# eq=False: comparing arrays with == gives an array, which a dataclass would take for a truth value.
@dataclass(frozen=True, eq=False)
class Split:
    """Samples and their labels.

    x: float32 or float64 (n, features); given as numbers of any kind, (n, features), images (n, height, width), or
        images with 1 or 3 channels before or after these. uint8 is divided by 255.
    y: int64 (n,), from 0; given as whole numbers or bools of any kind
    shape: (channels, height, width) of a sample; None for what is no image

    Raises TypeError for what are no numbers or labels, is hidden by a mask, or are whole numbers beyond uint8, of which
    nobody can say whether they are pixels; ValueError for other shapes, and for NaN and infinity.
    """

    x: np.ndarray
    y: np.ndarray
    shape: Shape | None = None

    def __post_init__(self) -> None:
        x, shape = _samples(self.x)
        y = _labels(self.y)
        if len(x) != len(y):
            raise ValueError(f"data: expected as many samples as labels, got {len(x)} and {len(y)}")
        if self.shape is not None and math.prod(self.shape) != x.shape[1]:
            raise ValueError(f"data: images of {times(self.shape)} have other than {x.shape[1]} numbers")
        for name, value in (("x", x), ("y", y), ("shape", self.shape or shape)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.y)

    def first(self, count: int) -> Split:
        """The first `count` samples."""
        return Split(self.x[:count], self.y[:count], self.shape)

    def chosen(self, samples: np.ndarray) -> Split:
        """The samples with these numbers, in this order."""
        return Split(self.x[samples], self.y[samples], self.shape)


@dataclass(frozen=True)
class Form:
    """What a sample of a data set is, and what its classes are called: the same for training and test samples.

    shape: (channels, height, width); names: of the classes, in the order of their labels
    on_white: whether its figures are dark on white paper, as its training images have it
    """

    shape: Shape
    names: tuple[str, ...]
    on_white: bool = field(default=False, compare=False)

    def as_note(self) -> dict[str, Any]:
        """The entry for the notes of a checkpoint, which `from_notes` reads."""
        white = {"on_white": True} if self.on_white else {}
        return {NOTE: {"shape": list(self.shape), "classes": list(self.names), **white}}

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> Form | None:
        """The form that the notes of a checkpoint hold; None if they hold none. ValueError for anything else there."""
        saved = notes.get(NOTE)
        if saved is None:
            return None
        if not isinstance(saved, Mapping) or set(saved) - {"on_white"} != {"shape", "classes"}:
            raise ValueError(f"{NOTE}: expected a shape and classes, got {shortened(saved)}")
        if not isinstance(on_white := saved.get("on_white", False), bool):
            raise ValueError(f"{NOTE}: on_white: expected true or false, got {shortened(on_white)}")
        shape, names = saved["shape"], saved["classes"]
        sizes = isinstance(shape, list) and len(shape) == 3 and all(type(size) is int and size > 0 for size in shape)
        if not sizes or shape[0] not in CHANNELS or math.prod(shape) > MOST_NUMBERS:
            raise ValueError(f"{NOTE}: shape: expected channels, height and width, got {shortened(shape)}")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{NOTE}: classes: expected a list of names, got {shortened(names)}")
        check_names(NOTE, names)
        return cls(tuple(shape), tuple(names), on_white)

    def fits(self, architecture: Architecture) -> bool:
        """Whether a network takes such samples, as images or as rows of numbers, and has an output for each class."""
        takes = architecture.input_shape in (self.shape, (math.prod(self.shape),))
        return takes and architecture.output_shape == (len(self.names),)

    def __str__(self) -> str:
        colour = ", colour" if self.shape[0] == 3 else ""
        return f"images of {self.shape[1]} by {self.shape[2]} pixels{colour} in {len(self.names)} classes"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training samples and test samples, without any in common. Labels are 0 to classes - 1.

    form: None for that of the training samples, whose classes are then called by their labels
    """

    name: str
    train: Split
    test: Split
    classes: int
    form: Form | None = None

    @property
    def described(self) -> Form:
        """The form of its samples; samples that are no images are one row of numbers."""
        shape = self.train.shape or square(self.train.x.shape[1]) or (1, 1, self.train.x.shape[1])
        return self.form or Form(shape, tuple(map(str, range(self.classes))))


def square(features: int) -> Shape | None:
    """The shape of a square grey image of so many pixels; None if there is none."""
    side = math.isqrt(features)
    return (1, side, side) if side * side == features else None


def check_names(where: str, names: list[str]) -> None:
    """Raise DataError unless these can be the names of the classes: at least two, all different, none empty or long,
    and none with characters that do something, such as a line break: tables and figures show them."""
    if not 2 <= len(names) <= MOST_CLASSES:
        raise DataError(f"{where}: expected 2 to {MOST_CLASSES:,} classes, got {len(names):,}")
    strange = next((name for name in names if not 0 < len(name) <= LONGEST_NAME), None)
    if strange is not None or len(set(names)) < len(names):
        raise DataError(f"{where}: expected a different name for each class, got {shortened(names)}")
    unsafe = next((name for name in names if printable(name) != name or set(name) & set("\t\n\r")), None)
    if unsafe is not None:
        raise DataError(f"{where}: expected names in one line of characters that can be printed, got {unsafe!a}")


def channels_first(name: str, images: np.ndarray) -> np.ndarray:
    """Images (n, height, width), or with 1 or 3 channels before or after these, as (n, channels, height, width).

    Raises ValueError for other shapes, and where either could be the channels.
    """
    if images.ndim == 3:
        return images[:, np.newaxis]
    before, after = (images.ndim == 4 and images.shape[axis] in CHANNELS for axis in (1, 3))
    if before == after:
        raise ValueError(
            f"{name}: expected images (n, height, width), or with 1 or 3 channels before or after these, "
            f"got shape {images.shape}" + (", where either may be the channels" if before else "")
        )
    return images if before else images.transpose(0, 3, 1, 2)


def _samples(values: object) -> tuple[np.ndarray, Shape | None]:
    """x (n, features) in float32 or float64, and the shape of an image."""
    array = _array("x", values)
    if array.dtype == np.uint8:
        if array.size and array.max() == 1:
            raise TypeError(f"x: {PIXELS_OR_SHARES}; pass float32, or bool for 0 and 1")
        _note("x: uint8 from 0 to 255 was divided by 255")
        array = array.astype(np.float32) / np.float32(255)
    elif array.dtype.kind in "iu":
        raise TypeError(
            f"x: expected floats, or uint8 of pixels from 0 to 255, got {type(values).__name__} of {array.dtype}; of "
            'other whole numbers nobody can say what they are: .astype("uint8") for pixels, .astype("float32") else'
        )
    elif array.dtype.kind not in "fb":
        raise TypeError(f"x: expected numbers, got {type(values).__name__} of {array.dtype}")
    with np.errstate(all="ignore"):  # a number of more bits may become infinite, which is found below, or 0
        array = np.asarray(array, np.float64 if array.dtype.itemsize > 4 else np.float32)
    shape = None
    if array.ndim > 2:
        array = channels_first("x", array)
        shape = array.shape[1:]
        array = array.reshape(len(array), -1)
    if array.ndim != 2:
        raise ValueError(f"x: expected a row for each sample, (n, features), got shape {array.shape}")
    _check_finite(array)
    return array, shape


def _check_finite(x: np.ndarray) -> None:
    """Raise ValueError for NaN and infinity."""
    with np.errstate(all="ignore"):
        if math.isfinite(x.sum(dtype=np.float64)):  # which takes no memory; a sum of finite numbers may overflow
            return
    for i, row in enumerate(x):
        strange = np.flatnonzero(~np.isfinite(row))
        if len(strange):
            raise ValueError(f"x: expected finite numbers, but sample {i} has {row[strange[0]]} at place {strange[0]}")


def _labels(values: object) -> np.ndarray:
    """y as int64 (n,)."""
    array = _array("labels", values)
    if array.ndim != 1:
        remedy = "; y.argmax(axis=1) makes labels of one-hot rows" if array.ndim == 2 and array.shape[1] > 1 else ""
        raise ValueError(f"labels: expected one for each sample, (n,), got shape {array.shape}{remedy}")
    kind = array.dtype.kind
    if kind == "O":
        strange = [value for value in array if not hasattr(value, "__index__")]
        if not strange:
            numbers = [index(value) for value in array]
            if beyond := [number for number in numbers if not -(2**63) <= number < 2**63]:
                raise ValueError(f"labels: expected classes from 0, got {whole(beyond[0])}")
            return np.array(numbers, np.int64)
        kind = "U" if isinstance(strange[0], str) else kind
    if kind in "US":
        raise TypeError(
            f"labels: expected whole numbers from 0, got texts like {str(array[0])!r}; "
            "classes, y = numpy.unique(labels, return_inverse=True) numbers them"
        )
    if kind not in "iub" and array.size:
        remedy = '; if they are whole: .astype("int64")' if kind == "f" else ""
        raise TypeError(f"labels: expected whole numbers, got {type(values).__name__} of {array.dtype}{remedy}")
    if kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"labels: expected classes from 0, got {array.max()}")
    return array.astype(np.int64, copy=False)


def _array(name: str, values: object) -> np.ndarray:
    try:
        return plain_array(values)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{name}: expected rows of equal length, got ragged ones") from error


def _note(message: str) -> None:
    warnings.warn(message, DataNote, stacklevel=5)  # whoever made the Split
