"""Known mistakes, recognised by their results.

A mistake is a function: it computes the result that a learner with this misconception would get. Where the learner's
result is the same, the message names the mistake. The general mistakes need only the right result; a task adds its own,
computed from its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CLOSE = 1e-4
"""Relative: a mistake is recognised by its idea, not by its rounding in float32."""


@dataclass(frozen=True)
class Mistake:
    """A known mistake.

    text: the message for the learner
    result: computes the mistaken result from the task's arguments; None where it would equal the right one
    output: the name of the output that it changes, "" for a function with a single one
    seen: whether it is seen in how the function runs, not only in its numbers
    """

    text: str
    result: Callable[..., Any]
    output: str = ""
    seen: bool = False


def likely_cause(
    got: np.ndarray,
    expected: np.ndarray,
    output: str,
    mistakes: Sequence[Mistake],
    arguments: Sequence[Any],
    fresh: bool = False,
) -> str:
    """The likely cause of a wrong result, as a message; "" where the numbers do not show one.

    got, expected: the learner's result and the right one; arguments: those of the call
    mistakes: the task's own, which are tried before the general ones
    fresh: as Exercise.fresh
    """
    for mistake in mistakes:
        if mistake.output == output:
            wrong = mistake.result(*arguments)
            if wrong is not None and alike(got, wrong) and not alike(expected, wrong):
                return mistake.text
    return general_cause(got, expected, fresh)


USED_UP = (
    "only the first row has its numbers: what zip, map or a generator gives is used up after one walk, and the rows "
    "after the first find nothing there. Make a list of it, list(zip(…)), or make it anew for each row"
)


def cause_of_ragged(rows: Any) -> str:
    """The likely cause if the rows of a result do not have one length, "" if it is not known."""
    lengths = [len(row) for row in rows if isinstance(row, Sequence)]
    if len(lengths) == len(rows) > 1 and lengths[0] and not any(lengths[1:]):
        return USED_UP
    if lengths == sorted(set(lengths)):
        return "every row is longer than the one before: begin a new list for each row, inside the loop over the rows"
    return ""


COMPUTED = "inf - inf, inf / inf or 0 / 0: was exp taken of a large number, or a number divided by a sum of zeros?"


def general_cause(got: np.ndarray, expected: np.ndarray, fresh: bool) -> str:
    """The likely cause of a wrong result that can come up in every task; \"\" where the numbers do not show one."""
    if got.shape != expected.shape:
        if expected.ndim == 2 and got.shape == expected.shape[::-1]:
            return "transposed: rows and columns have changed places"
        if got.size == expected.size:
            return "there are as many numbers as there should be, but in another shape"
        return ""
    if np.isnan(got).any() and not np.isnan(expected).any():
        first = [int(i) for i in np.argwhere(np.isnan(got))[0]]
        if fresh:
            return f"NaN was computed{'' if np.isnan(got).all() else f', first at {first}'}: {COMPUTED}"
        if np.isnan(got).all():
            return "nothing was written: the result is as it was before the call, NaN; or NaN was computed"
        return f"not every element is written: the first that is not is {first}; or NaN was computed there"
    if np.isnan(expected).any() and np.isfinite(got[np.isnan(expected)]).any():
        return "NaN has to come out, and a number does: NaN is skipped, or a comparison with it taken for an answer"
    if expected.ndim == 2 and expected.shape[0] == expected.shape[1] and alike(got, expected.T):
        return "transposed: rows and columns have changed places"
    if expected.size > 1 and not got.any() and expected.any():
        return "every number is 0: what was computed does not get into the result"
    if alike(got, -expected):
        return "wrong sign: everything is minus what it should be"
    if alike(got, expected) and not np.array_equal(got, expected, equal_nan=True):
        return (
            "nearly right, but further off than rounding explains: is a number clamped, a small one added, or a "
            "constant written with few digits?"
        )
    return _factor(got, expected)


def _factor(got: np.ndarray, expected: np.ndarray) -> str:
    """The message for a result whose elements are all too large, or too small, by one whole factor; else ""."""
    sizes = np.abs(expected)
    if expected.size < 2 or not np.isfinite(got).all() or not np.isfinite(expected).all() or sizes.max() == 0:
        return ""
    factor = float(got.flat[sizes.argmax()] / expected.flat[sizes.argmax()])
    if factor <= 0 or not alike(got, factor * expected) or alike(got, expected):
        return ""
    whole = round(factor) if abs(factor) >= 1 else round(1 / factor)
    if abs(factor) >= 1 and abs(factor - whole) < 1e-3 * abs(factor):
        return f"everything is {whole} times too large: was a sum taken in place of a mean, or a division forgotten?"
    if abs(factor) < 1 and abs(1 / factor - whole) < 1e-3 * abs(1 / factor):
        return f"everything is {whole} times too small: is there one division too many?"
    return ""


def alike(a: Any, b: Any) -> bool:
    """Whether two results have the same idea: the same numbers but for their rounding in float32."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return False
    largest = np.max(np.abs(b), where=np.isfinite(b), initial=0.0)
    return bool(np.allclose(a, b, rtol=CLOSE, atol=CLOSE * largest * 1e-2, equal_nan=True))
