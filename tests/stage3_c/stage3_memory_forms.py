"""Arrays in forms that C cannot read or write as they are, for the tests of stage 3's boundary."""

from typing import Any

import numpy as np


def misaligned(values: np.ndarray) -> np.ndarray:
    """The same values, starting one byte after a multiple of their size."""
    memory = np.zeros(values.nbytes + 1, np.uint8)
    array = memory[1:].view(values.dtype).reshape(values.shape)
    array[...] = values
    assert not array.flags.aligned
    return array


def read_only(values: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def blocks(count: int, dtype: str = "float32") -> list[np.ndarray]:
    """(4, 4) arrays in one memory, each beginning in the middle of the one before, and so overlapping it."""
    memory = np.random.default_rng(1).normal(size=16 + 8 * (count - 1)).astype(dtype)
    return [memory[8 * i : 8 * i + 16].reshape(4, 4) for i in range(count)]


def other_forms(values: np.ndarray) -> dict[str, Any]:
    """The same float32 matrix in forms that are converted on the way in."""
    return {
        "lists": values.tolist(),
        "tuple of rows": tuple(values),
        "Fortran order": np.asfortranarray(values),
        "negative strides": values[::-1, ::-1].copy()[::-1, ::-1],
        "every other column": np.repeat(values, 2, axis=1)[:, ::2],
        "byte-swapped": values.astype(values.dtype.newbyteorder()),
        "misaligned": misaligned(values),
        "read-only": read_only(values),
        "np.matrix": values.view(np.matrix),
        "longdouble": values.astype(np.longdouble),
    }
