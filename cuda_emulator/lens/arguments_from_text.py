"""Make arguments from a line of text, for a kernel that its script does not launch:

a=float32[64,64] labels=int32[64] n=64 slope=float32(0.01) order=int32[64]:arange

float32[64,64]        an array; floats are random from 0 to 1, the same in each run; other types are zeros
float32[64]:ones      an array with other values: zeros, ones, arange or random
float32(0.5)          one number of that type
64, 0.5, True         a Python number
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

DTYPES = (
    *("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bool", "complex64", "complex128"),
)
FILLS = ("zeros", "ones", "arange", "random")
ARRAY = re.compile(r"(\w+)\[([\d,\s]+)\](?::(\w+))?")
NUMBER = re.compile(r"(\w+)\(([^()]+)\)")
WORD = re.compile(r"(\w+)\s*=\s*((?:\[[^\]]*\]|\([^)]*\)|\S)+)\s*,?\s*")
SEED = 0


def arguments_from(text: str, names: tuple[str, ...], kernel: str) -> tuple[Any, ...]:
    """The arguments in the order of `names`, the kernel's parameters.

    Raises ValueError for a text that cannot be read, and for names that are not the kernel's.
    """
    texts: dict[str, str] = {}
    at = 0
    while at < len(text.strip()):
        match = WORD.match(text.strip(), at)
        if match is None:
            raise ValueError(f"args: expected name=float32[64,64] or name=5, got {text.strip()[at:]!r}")
        if match[1] in texts:
            raise ValueError(f"args: {match[1]} is given twice")
        texts[match[1]] = match[2].rstrip(",")
        at = match.end()
    missing = [name for name in names if name not in texts]
    unknown = [name for name in texts if name not in names]
    if missing or unknown:
        wrong = [f"{', '.join(missing)} missing"] if missing else []
        wrong += [f"{', '.join(unknown)} unknown"] if unknown else []
        raise ValueError(f"args: {kernel} takes {', '.join(names) or 'nothing'}; {'; '.join(wrong)}")
    return tuple(value_from(name, texts[name]) for name in names)


def value_from(name: str, text: str) -> Any:
    """The value of one argument. Raises ValueError with its name."""
    array, number = ARRAY.fullmatch(text), NUMBER.fullmatch(text)
    if array is not None:
        return _filled(name, _dtype(name, array[1]), _shape(name, array[2]), array[3])
    try:
        if number is not None:
            return _dtype(name, number[1]).type(ast.literal_eval(number[2].strip()))
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        value = None
    if not isinstance(value, int | float | complex):
        raise ValueError(f"args: {name}: expected float32[64,64], float32(0.5) or a number, got {text!r}")
    return value


def _filled(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], fill: str | None) -> np.ndarray[Any, Any]:
    if fill not in (None, *FILLS):
        raise ValueError(f"args: {name}: expected one of {', '.join(FILLS)} after the colon, got {fill!r}")
    fill = fill or ("random" if dtype.kind in "fc" else "zeros")
    count = int(np.prod(shape))
    if fill == "arange":
        return np.arange(count).astype(dtype).reshape(shape)
    if fill == "random":
        random = np.random.default_rng([SEED, *name.encode()])  # two arrays hold different numbers
        most = 1 if dtype.kind in "fc" else 2 if dtype.kind == "b" else 100
        return (random.random(count) * most).astype(dtype).reshape(shape)
    return np.full(shape, fill == "ones", dtype)


def _dtype(name: str, text: str) -> np.dtype[Any]:
    if text not in DTYPES:
        raise ValueError(f"args: {name}: expected one of {', '.join(DTYPES)}, got {text!r}")
    return np.dtype(text)


def _shape(name: str, text: str) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in text.split(",") if size.strip())
    if not sizes:
        raise ValueError(f"args: {name}: expected sizes with commas between, got [{text}]")
    return sizes
