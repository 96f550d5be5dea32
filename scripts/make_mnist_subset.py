"""Make the MNIST subset that comes with the package, from the full MNIST.

    GROUNDUP_DATA=~/data python scripts/make_mnist_subset.py

Writes the same bytes each time: the choice depends on the seed alone, through random.Random.random, which
Python keeps the same from version to version, and the .gz files carry no time or name. (Another build of
zlib may compress the same content to other bytes.)
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
from pathlib import Path

import numpy as np

from shared.data.datasets import CLASSES, TEST_FILES, TRAIN_FILES
from shared.data.idx import idx_bytes, read_idx

SEED = 0
TRAIN_PER_CLASS = 600
TEST_PER_CLASS = 100
BUNDLED = Path(__file__).resolve().parent.parent / "shared" / "data" / "mnist_subset"


def choose(labels: np.ndarray, per_class: int, seed: int) -> list[int]:
    """Walk through the samples in random order and take each whose class is not yet full: balanced and shuffled."""
    rng = random.Random(seed)
    keys = [rng.random() for _ in labels]
    chosen = []
    taken = [0] * CLASSES
    for index in sorted(range(len(labels)), key=keys.__getitem__):
        if taken[labels[index]] < per_class:
            taken[labels[index]] += 1
            chosen.append(index)
    if min(taken) < per_class:
        raise SystemExit(f"error: expected {per_class} samples of every class, but found {taken}")
    return chosen


def write_idx_gz(path: Path, array: np.ndarray) -> None:
    """uint8 of any shape, as a gzipped IDX file."""
    # GzipFile rather than gzip.compress: the latter's header differs between Python versions.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as compressed:
        compressed.write(idx_bytes(array))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("GROUNDUP_DATA", "data")
    parser.add_argument("--data-dir", type=Path, default=Path(data), help="folder with the subfolder mnist")
    parser.add_argument("--output", type=Path, default=BUNDLED, help="folder to write to")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for (images_file, labels_file), per_class in ((TRAIN_FILES, TRAIN_PER_CLASS), (TEST_FILES, TEST_PER_CLASS)):
        images = read_idx(arguments.data_dir / "mnist" / f"{images_file}.gz")
        labels = read_idx(arguments.data_dir / "mnist" / f"{labels_file}.gz")
        chosen = choose(labels, per_class, SEED)
        write_idx_gz(arguments.output / f"{images_file}.gz", images[chosen])
        write_idx_gz(arguments.output / f"{labels_file}.gz", labels[chosen])
    for path in sorted(arguments.output.glob("*.gz")):
        print(f"{path.stat().st_size:>10,}  {path}")


if __name__ == "__main__":
    main()
