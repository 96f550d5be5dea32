"""What fuzz_stage3.py passes to stage 3: arrays with guards around them, in every form that a caller might think of."""

from collections.abc import Callable
from typing import Any

import numpy as np

GUARD = 64  # bytes before and after each array that nobody may write to
BEYOND_MEMORY = 2**50  # no machine can address that many rows
SMALL = 10**6  # what may be copied


class Memory:
    """Makes arrays with guards around them, and tells whether a guard was written to."""

    def __init__(self) -> None:
        self.blocks: list[tuple[np.ndarray, int]] = []

    def array(self, shape: tuple[int, ...], dtype: Any, offset: int = 0) -> np.ndarray:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        block = np.full(size + 3 * GUARD, 0xA5, np.uint8)
        start = -block.ctypes.data % GUARD + GUARD + offset
        self.blocks.append((block, start))
        return block[start : start + size].view(dtype).reshape(shape)

    def filled(self, values: Any, offset: int = 0) -> np.ndarray:
        values = np.asarray(values)
        array = self.array(values.shape, values.dtype, offset)
        array[...] = values
        return array

    def intact(self) -> bool:
        return all((block[:start] == 0xA5).all() and (block[-GUARD:] == 0xA5).all() for block, start in self.blocks)


FORMS: dict[str, Callable[[Memory, np.ndarray], Any]] = {
    "read-only": lambda memory, x: frozen(memory.filled(x)),
    "Fortran order": lambda memory, x: memory.filled(x.T).T,
    "every other": lambda memory, x: memory.filled(np.repeat(x, 2, axis=-1))[..., ::2],
    "reversed": lambda memory, x: memory.filled(x[::-1])[::-1],
    "misaligned": lambda memory, x: memory.filled(x, offset=1),
    "byte-swapped": lambda memory, x: memory.filled(x.astype(x.dtype.newbyteorder())),
    "list": lambda memory, x: x.tolist(),
    "float16": lambda memory, x: memory.filled(x.astype(np.float16)),
    "float32": lambda memory, x: memory.filled(x.astype(np.float32)),
    "float64": lambda memory, x: memory.filled(x.astype(np.float64)),
    "longdouble": lambda memory, x: x.astype(np.longdouble),
    "whole numbers": lambda memory, x: memory.filled(
        np.nan_to_num(x, posinf=1, neginf=-1).clip(-9, 9).astype(np.int32)
    ),
    "objects": lambda memory, x: x.astype(object),
    "complex": lambda memory, x: memory.filled(x.astype(complex)),
    "text": lambda memory, x: x.astype(str),
    "masked": lambda memory, x: np.ma.masked_array(memory.filled(x), mask=x > 0),
    "more rows": lambda memory, x: memory.filled(np.concatenate([x, x])),
    "no rows": lambda memory, x: memory.filled(x[:0]),
    "one less column": lambda memory, x: memory.filled(x[..., :-1]),
    "one dimension": lambda memory, x: memory.filled(x.ravel()),
    "three dimensions": lambda memory, x: memory.filled(x[np.newaxis, np.newaxis]),
    "a number": lambda memory, x: float(x.flat[0]),
    "no dimension": lambda memory, x: np.array(1.0),
    "ragged": lambda memory, x: [[1.0, 2.0], [3.0]],
    "beyond memory": lambda memory, x: np.broadcast_to(x.flat[0], (BEYOND_MEMORY, *x.shape[1:])),
    "record": lambda memory, x: np.zeros(x.shape, [("f", np.float32)]),
    "dates": lambda memory, x: np.zeros(x.shape, "M8[s]"),
    "None": lambda memory, x: None,
    "an object": lambda memory, x: object(),
    "a dict": lambda memory, x: {"a": x},
    "a generator": lambda memory, x: iter(x),
    "bytes": lambda memory, x: b"\x00" * x.nbytes,
    "a string": lambda memory, x: "1 2 3",
    "a type": lambda memory, x: np.ndarray,
}
HOPELESS = {"objects", "complex", "text", "masked", "no rows", "a number", "no dimension", "ragged", "beyond memory"}
HOPELESS |= {"record", "dates", "None", "an object", "a dict", "a generator", "bytes", "a string", "a type"}
HOPELESS |= {"out of range"}
"""What no input may be, whatever the others are."""

FILLS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ordinary": lambda x: x,
    "zero": lambda x: 0 * x,
    "large": lambda x: 1e4 * x,
    "nan": lambda x: np.where(x > 0.5, np.nan, x),
    "inf": lambda x: np.where(x > 0.5, np.inf, np.where(x < -0.5, -np.inf, x)),
}


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def right_array(memory: Memory, shape: tuple[int, ...], dtype: str, fill: str, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=shape)
    with np.errstate(all="ignore"):
        return memory.filled(FILLS[fill](values).astype(dtype))


def right_labels(memory: Memory, shape: tuple[int, ...], classes: int, seed: int) -> np.ndarray:
    return memory.filled(np.random.default_rng(seed).integers(0, classes, shape))


def overlapping(memory: Memory, arguments: dict[str, Any], source: str, shape: tuple[int, ...], shifted: bool) -> Any:
    """An `out` in the memory of an input, which moves there: all of it where the shapes allow that, or half."""
    given = arguments[source]
    if type(given) is not np.ndarray or given.dtype.char not in "fd" or not 0 < given.size < SMALL:
        return given
    size = int(np.prod(shape))
    room = memory.array((given.size + size,), given.dtype)
    room[: given.size] = given.ravel()
    room[given.size :] = 1
    arguments[source] = room[: given.size].reshape(given.shape)
    start = given.size // 2 if shifted else 0
    return room[start : start + size].reshape(shape)


def independent(value: Any) -> Any:
    """A copy that shares no memory and no guards, in the same form where that matters."""
    return np.array(value, order="K", subok=True) if isinstance(value, np.ndarray) and value.size < SMALL else value
