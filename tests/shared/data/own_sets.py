"""Makes two small sets of images, as somebody would bring them: `python -m tests.shared.data.own_sets FOLDER`.

shapes    3 classes of 20 x 20 grey PNGs in folders: a bar, a cross, a ring, at random places
flags     4 classes of 24 x 16 in colour in an .npz file, told apart by their colours and the way of their stripes
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

SHAPES, FLAGS = ("bar", "cross", "ring"), ("green", "red across", "red down", "white")


def shapes(folder: Path, train: int = 20, test: int | None = 5, seed: int = 0) -> Path:
    """FOLDER/train/CLASS/0.png, … (and test/, unless `test` is None), 20 by 20 pixels."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    for part, count in (("train", train), ("test", test)):
        for name in SHAPES:
            (folder / part / name).mkdir(parents=True, exist_ok=True) if count is not None else None
            for number in range(count or 0):
                Image.fromarray(_shape(name, rng)).save(folder / part / name / f"{number}.png")
    return folder


def _shape(name: str, rng: np.random.Generator) -> np.ndarray:
    image = rng.integers(0, 30, (20, 20), dtype=np.uint8)
    row, column = rng.integers(6, 14, 2)
    y, x = np.ogrid[:20, :20]
    far = np.hypot(y - row, x - column)
    marks = {"bar": abs(y - row) < 2, "cross": (abs(y - row) < 1) | (abs(x - column) < 1), "ring": abs(far - 5) < 1}
    image[np.broadcast_to(marks[name], image.shape)] = 255
    return image


def flags(path: Path, train: int = 60, test: int = 20, seed: int = 0) -> Path:
    """An .npz file of images (n, 24, 16, 3), uint8, with class_names."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for part, count in (("train", train), ("test", test)):
        labels = np.arange(count) % 4
        arrays[f"x_{part}"] = np.stack([_flag(FLAGS[label], rng) for label in labels])
        arrays[f"y_{part}"] = labels
    np.savez(path, class_names=np.array(FLAGS), **arrays)
    return path


def _flag(name: str, rng: np.random.Generator) -> np.ndarray:
    image = rng.integers(0, 60, (24, 16, 3), dtype=np.uint8)
    start = int(rng.integers(0, 8))
    if name == "green":
        image[..., 1] = 220
    elif name == "white":
        image[:] = np.maximum(image, 200)
    elif name == "red across":
        image[start : start + 8, :, 0] = 230
    else:
        image[:, start : start + 8, 0] = 230
    return image


if __name__ == "__main__":
    shapes(Path(sys.argv[1], "shapes"))
    flags(Path(sys.argv[1], "flags.npz"))
