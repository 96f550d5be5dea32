"""Writing IDX files, for the tests of what reads them. Written from the format's description, apart from the reader."""

import gzip
import struct
from pathlib import Path

import numpy as np

TYPE_CODES = {"uint8": 0x08, "int8": 0x09, "int16": 0x0B, "int32": 0x0C, "float32": 0x0D, "float64": 0x0E}
STRUCT_CODES = {"uint8": "B", "int8": "b", "int16": "h", "int32": "i", "float32": "f", "float64": "d"}


def idx_bytes(array: np.ndarray) -> bytes:
    """The array as the bytes of an IDX file."""
    name = array.dtype.name
    header = struct.pack(f">HBB{array.ndim}I", 0, TYPE_CODES[name], array.ndim, *array.shape)
    return header + struct.pack(f">{array.size}{STRUCT_CODES[name]}", *array.ravel().tolist())


def write(path: Path, content: bytes) -> Path:
    """Write the content, gzipped where the name ends in .gz; the folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def small_mnist(seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays of MNIST's form under MNIST's names: 12 training images of all classes, and 5 test images."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, count in (("train", 12), ("t10k", 5)):
        arrays[f"{name}-images-idx3-ubyte"] = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        arrays[f"{name}-labels-idx1-ubyte"] = rng.permutation(count).astype(np.uint8) % 10
    return arrays
