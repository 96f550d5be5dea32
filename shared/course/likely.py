"""What a wrong result looks like: the misconceptions that can be told from the numbers alone.

A misconception is a function: what would have come out, had the learner thought that. Where that is what did come out,
the message says so. The general ones need only the right result; a task adds its own, computed from the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CLOSE = 1e-4
"""Relative: a guess is about the idea, and float32 rounds."""


@dataclass(frozen=True)
class Guess:
    """text: what to tell the learner

    wrong: what the mistake gives with the task's arguments; None where these cannot tell it from what is right
    output: of several outputs, the name of the one it is about; "" for a single one
    """

    text: str
    wrong: Callable[..., Any]
    output: str = ""


def likely_cause(
    got: np.ndarray, expected: np.ndarray, output: str, guesses: Sequence[Guess], arguments: Sequence[Any]
) -> str:
    """What may have gone wrong, in words; "" where the numbers do not say.

    got, expected: the two results; guesses: the task's own, asked first; arguments: what the function was called with
    """
    for guess in guesses:
        if guess.output == output:
            wrong = guess.wrong(*arguments)
            if wrong is not None and _same(got, wrong) and not _same(expected, wrong):
                return guess.text
    return _general(got, expected)


def _general(got: np.ndarray, expected: np.ndarray) -> str:
    if got.shape != expected.shape:
        if expected.ndim == 2 and got.shape == expected.shape[::-1]:
            return "transposed: rows and columns have changed places"
        if got.size == expected.size:
            return "the numbers are as many as they should be, in another shape"
        return ""
    if np.isnan(got).any() and not np.isnan(expected).any():
        if np.isnan(got).all():
            return "nothing was written: the result is as it was before the call"
        missing = np.argwhere(np.isnan(got))[0]
        return f"not every element is written: the first that is not is {[int(i) for i in missing]}"
    if expected.ndim == 2 and expected.shape[0] == expected.shape[1] and _same(got, expected.T):
        return "transposed: rows and columns have changed places"
    if expected.size and not got.any() and expected.any():
        return "all zeros: the sum is never added to, or never written"
    if _same(got, -expected):
        return "wrong sign: everything is minus what it should be"
    return _factor(got, expected)


def _factor(got: np.ndarray, expected: np.ndarray) -> str:
    """Where every element is the same number of times too large, that number."""
    sizes = np.abs(expected)
    if expected.size < 2 or not np.isfinite(got).all() or not np.isfinite(expected).all() or sizes.max() == 0:
        return ""
    factor = float(got.flat[sizes.argmax()] / expected.flat[sizes.argmax()])
    if factor == 0 or not _same(got, factor * expected) or _same(got, expected):
        return ""
    whole = round(factor) if abs(factor) >= 1 else round(1 / factor)
    if abs(factor) >= 1 and abs(factor - whole) < 1e-3 * abs(factor):
        return f"everything is {whole} times too large: is a mean a sum, a division forgotten?"
    if abs(factor) < 1 and abs(1 / factor - whole) < 1e-3 * abs(1 / factor):
        return f"everything is {whole} times too small: divided once too often?"
    return ""


def _same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return False
    largest = np.max(np.abs(b), where=np.isfinite(b), initial=0.0)
    return bool(np.allclose(a, b, rtol=CLOSE, atol=CLOSE * largest * 1e-2, equal_nan=True))
