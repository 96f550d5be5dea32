"""Pictures in folders, as arrays: FOLDER/train/CLASS/*.png and FOLDER/test/CLASS/*.png.

Without a folder test, every fifth picture by the hash of its name is a test image, the same ones on every machine.
Pictures that could be shown in several ways are refused: with transparent places, with 16 bits, animated, of another
size than the first. They are read by Pillow, which matplotlib brings.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from shared.data.accepted_data import DataError, check_names
from shared.data.idx import MOST_BYTES
from shared.data.idx_sets import note
from shared.layers import Shape
from shared.machine import regular
from shared.terminal import TextConsole

KINDS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".bmp": "BMP", ".webp": "WEBP"}
"""The endings of pictures, and Pillow's names of what they must be."""

ORIENTATION = 274
"""The number of the EXIF field that says how the camera was held; 1: upright."""

MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")
"""Pillow's names of what has at most 8 bits for each number of a pixel."""

MOST_PIXELS = 2**26
"""Of a picture that is decoded."""

MOST_MEMORY = 2**32
"""Bytes of all images of a set, as float32. GROUNDUP_LARGEST_FILE raises it."""

FIFTH = 5

Part = tuple[np.ndarray, np.ndarray]
"""Images (n, height, width, channels), uint8 or floats from 0 to 1, and their labels (n,)."""

Picture = tuple[Path, int]
"""The file of a picture, and its label."""


@dataclass(frozen=True)
class Original:
    """A picture before it was made what is wanted: (height, width) upright, whether it lay, whether it has colours."""

    size: tuple[int, int]
    lay: bool
    coloured: bool


@dataclass(frozen=True)
class Wanted:
    """What images are made into. colour: three channels and not one; size: (height, width), None for their own"""

    colour: bool
    size: tuple[int, int] | None


def read(place: Path, wanted: Wanted) -> tuple[Part, Part, list[str]]:
    """(training images, test images, names of the classes) of a folder. Raises DataError."""
    names = _classes(place / "train")
    check_names(str(place / "train"), names)
    train = _pictures(place / "train", names)
    if (place / "test").is_dir():
        strange = sorted(set(_classes(place / "test")) - set(names))
        if strange:
            raise DataError(f"{place / 'test'}: the class {strange[0]} has no folder in {place / 'train'}")
        test = _pictures(place / "test", names)
    else:
        train, test = ([each for each in train if _is_fifth(each[0]) == fifth] for fifth in (False, True))
    labels = {label for _, label in train}
    absent = [f"training pictures of {name}" for label, name in enumerate(names) if label not in labels]
    absent += [] if test else ["test pictures"]
    if absent:
        raise DataError(f"{place}: there are no {absent[0]}; found {len(train)} to train and {len(test)} to test")
    first = train[0][0]
    return _decoded(train, first, wanted), _decoded(test, first, wanted), names


def read_one(path: Path, wanted: Wanted) -> tuple[np.ndarray, Original]:
    """One picture, uint8 (height, width, channels), and what it was before. Raises DataError."""
    if not path.exists():
        raise DataError(f"there is no picture {path}")
    if path.suffix.lower() not in KINDS:
        raise DataError(f"{path}: expected a picture that ends in {', '.join(KINDS)}")
    pixels, original = _upright(path, wanted.colour)
    return resized(pixels[np.newaxis], wanted.size)[0], original


def read_bytes(name: str, content: bytes, wanted: Wanted, most_pixels: int) -> tuple[np.ndarray, Original]:
    """The same of a picture that was sent, of any of the kinds. name: what an error calls it"""
    kinds = list(dict.fromkeys(KINDS.values()))
    picture = _looked_at(name, content, kinds, most_pixels)
    pixels, original = _decoded_upright(name, picture, wanted.colour)
    return resized(pixels[np.newaxis], wanted.size)[0], original


def check_amount(name: str, count: int, shape: Shape) -> None:
    """Raise DataError for more images than the memory is used for."""
    size, most = 4 * count * math.prod(shape), regular.largest(MOST_MEMORY)
    if size > most:
        raise DataError(
            f"{name}: {count:,} images of {times(shape)} numbers take {size:,} bytes, more than the {most:,} that are "
            "used; --resize makes them smaller"
        )


def resized(images: np.ndarray, size: tuple[int, int] | None) -> np.ndarray:
    """Images (n, height, width, channels) in another size, by bilinear interpolation; as they are where it is None."""
    if size is None or images.shape[1:3] == size:
        return images
    image = _pillow()
    planes = (images if images.dtype == np.uint8 else images.astype(np.float32)).transpose(0, 3, 1, 2)
    bilinear = image.Resampling.BILINEAR  # one channel at a time: Pillow knows floats only as grey
    made = [[np.asarray(image.fromarray(plane).resize(size[::-1], bilinear)) for plane in each] for each in planes]
    return np.array(made).transpose(0, 2, 3, 1)


def times(sizes: Sequence[int]) -> str:
    """A size in words: 24x16"""
    return "x".join(map(str, sizes))


def _classes(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))


def _pictures(folder: Path, names: Sequence[str]) -> list[Picture]:
    """Every picture, class by class and sorted by name. Says which files are left out."""
    found, others = [], []
    for label, name in enumerate(names):
        for path in sorted((folder / name).iterdir()) if (folder / name).is_dir() else ():
            if path.suffix.lower() in KINDS:
                found.append((path, label))
            elif not path.name.startswith("."):
                others.append(path.name)
    if others:
        note(f"{folder}: left out {len(others)} files that are no pictures of a known kind, such as {others[0]}")
    return found


def _is_fifth(path: Path) -> bool:
    name = f"{path.parent.name}/{path.name}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") % FIFTH == 0


def _decoded(pictures: Sequence[Picture], first: Path, wanted: Wanted) -> Part:
    """The pictures as uint8 and their labels. first: the picture whose size all others must have."""
    size, channels = wanted.size or _picture(first, first, None, wanted).shape[:2], 3 if wanted.colour else 1
    check_amount(str(first.parents[2]), len(pictures), (channels, *size))
    images = np.empty((len(pictures), *size, channels), np.uint8)
    console = TextConsole(stderr=True)
    words = f"reading {len(pictures):,} pictures"
    bar = track(pictures, words, console=console, transient=True, disable=not console.is_terminal)
    for i, (path, _) in enumerate(bar):
        images[i] = _picture(path, first, size, wanted)
    return images, np.array([label for _, label in pictures])


def _picture(path: Path, first: Path, size: tuple[int, int] | None, wanted: Wanted) -> np.ndarray:
    """One picture, uint8 (height, width, channels). size: None for its own"""
    picture, original = _upright(path, wanted.colour)
    if size is not None and original.size != size and wanted.size is None:
        raise DataError(
            f"{path} has {original.size[0]} by {original.size[1]} pixels, but {first} has {size[0]} by {size[1]}; all "
            f"images need one size: --resize {times(size)} makes it"
        )
    return resized(picture[np.newaxis], size)[0]


def _upright(path: Path, colour: bool) -> tuple[np.ndarray, Original]:
    """One picture as the camera was held, uint8 (height, width, 3 or 1)."""
    _pillow()
    kind = KINDS[path.suffix.lower()]
    try:
        content = regular.read(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a {kind} picture ({error})") from error
    return _decoded_upright(str(path), _looked_at(str(path), content, [kind], MOST_PIXELS), colour)


def _decoded_upright(name: str, picture: Any, colour: bool) -> tuple[np.ndarray, Original]:
    from PIL import ImageOps  # after the sentence about a missing Pillow

    try:
        lay = picture.getexif().get(ORIENTATION, 1) in range(2, 9)  # others mean nothing
        picture = ImageOps.exif_transpose(picture)
        coloured = picture.mode not in ("1", "L", "LA")
        if picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info:
            picture = picture.convert("RGBA")
            transparent = picture.getextrema()[3][0] < 255
        else:
            transparent = False
        picture = picture.convert("RGB" if colour else "L")
    except (OSError, SyntaxError, ValueError, TypeError, struct.error) as error:  # the last two: damaged EXIF fields
        raise DataError(f"{name}: the picture is damaged ({error})") from error
    if transparent:
        raise DataError(f"{name}: expected a picture without transparent places; lay it on a background first")
    size = picture.height, picture.width
    return np.asarray(picture).reshape(*size, -1), Original(size, lay, coloured)


def _looked_at(name: str, content: bytes, kinds: list[str], most_pixels: int) -> Any:
    """A picture of one of Pillow's kinds, of which only the beginning has been looked at."""
    image = _pillow()
    try:
        picture = image.open(io.BytesIO(content), formats=kinds)
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        why = str(error).partition("<")[0].strip()
        raise DataError(f"{name}: expected a {' or '.join(kinds)} picture ({why})") from error
    if picture.width * picture.height > most_pixels:
        raise DataError(f"{name}: expected at most {most_pixels:,} pixels, got {picture.height} by {picture.width}")
    if picture.mode not in MODES:
        raise DataError(f"{name}: expected grey or RGB with 8 bits for each number, got Pillow's mode {picture.mode}")
    if picture.format in ("PNG", "WEBP") and getattr(picture, "is_animated", False):  # a JPEG may hold a preview
        raise DataError(f"{name}: expected a picture that stands still, got {picture.n_frames} of a film")
    return picture


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError("pictures need Pillow, which is not installed: pip install pillow") from error
    return Image
