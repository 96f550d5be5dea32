"""What a wrong result looks like: the misconceptions that can be told from the numbers alone, or a compiler's words.

A misconception is a function: what would have come out, had the learner thought that. Where that is what did come out,
the message says so. The general ones need only the right result; a task adds its own, computed from the arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CLOSE = 1e-4
"""Relative: a guess is about the idea, and float32 rounds."""


@dataclass(frozen=True)
class Mistake:
    """text: what to tell the learner

    wrong: what the mistake gives with the task's arguments; None where these cannot tell it from what is right
    output: of several outputs, the name of the one it is about; "" for a single one
    """

    text: str
    result: Callable[..., Any]
    output: str = ""


def likely_cause(
    got: np.ndarray,
    expected: np.ndarray,
    output: str,
    mistakes: Sequence[Mistake],
    arguments: Sequence[Any],
    fresh: bool = False,
) -> str:
    """What may have gone wrong, in words; "" where the numbers do not say.

    got, expected: the two results; guesses: the task's own, asked first; arguments: what the function was called with
    fresh: whether the function has made the result: else a NaN in it may have been there before the call
    """
    for mistake in mistakes:
        if mistake.output == output:
            wrong = mistake.result(*arguments)
            if wrong is not None and _same(got, wrong) and not _same(expected, wrong):
                return mistake.text
    return _general(got, expected, fresh)


COMPUTED = "inf - inf, inf / inf or 0 / 0: is exp taken of something large, or a sum of zeros divided by?"


def _general(got: np.ndarray, expected: np.ndarray, fresh: bool) -> str:
    if got.shape != expected.shape:
        if expected.ndim == 2 and got.shape == expected.shape[::-1]:
            return "transposed: rows and columns have changed places"
        if got.size == expected.size:
            return "the numbers are as many as they should be, in another shape"
        return ""
    if np.isnan(got).any() and not np.isnan(expected).any():
        first = [int(i) for i in np.argwhere(np.isnan(got))[0]]
        if fresh:
            return f"NaN was computed{'' if np.isnan(got).all() else f', first at {first}'}: {COMPUTED}"
        if np.isnan(got).all():
            return "nothing was written: the result is as it was before the call, NaN; or NaN was computed"
        return f"not every element is written: the first that is not is {first}; or NaN was computed there"
    if expected.ndim == 2 and expected.shape[0] == expected.shape[1] and _same(got, expected.T):
        return "transposed: rows and columns have changed places"
    if expected.size and not got.any() and expected.any():
        return "all zeros: the sum is never added to, or never written"
    if _same(got, -expected):
        return "wrong sign: everything is minus what it should be"
    if _same(got, expected) and not np.array_equal(got, expected, equal_nan=True):
        return (
            "nearly right, yet further off than rounding goes: is a number clamped, a small one added, or a constant "
            "written with few digits?"
        )
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


def compile_hint(text: str) -> str:
    """What the first error of a C compiler most likely means, in words; "" where it is none of those known here.

    text: what gcc or clang wrote, or any part of it that begins with the first error
    """
    text = text.replace("\u2018", "'").replace("\u2019", "'")  # gcc's quotes, where the language is not C
    first = next((line for line in text.splitlines() if "error:" in line), text)
    for pattern, hint in COMPILE_HINTS:
        found = re.search(pattern, first)
        if found:
            return hint(found)
    return ""


def _undeclared(name: str) -> str:
    """A call of a function that the compiler has not heard of."""
    header = next((header for header, names in HEADERS.items() if name in names), "")
    if header:
        return f"{name} is declared in {header}: write #include <{header}> at the top of the file"
    return f"no function {name} is declared above this line: is its name spelled right, its #include at the top?"


HEADERS = {
    "stdio.h": ("printf", "fprintf", "puts", "putchar", "fflush"),
    "stdlib.h": ("malloc", "calloc", "free", "abs", "abort", "exit"),
    "string.h": ("memcpy", "memmove", "memset"),
    "math.h": ("exp", "expf", "log", "logf", "sqrt", "sqrtf", "pow", "fabs", "fabsf", "fmax", "fmaxf", "fmin", "fminf"),
}
"""What learners call of the standard library, by where it is declared."""

COMPILE_HINTS: list[tuple[str, Callable[[re.Match[str]], str]]] = [
    (
        r"\[-W[^\]]*sign-(?:compare|conversion)\]|'size_t'.* to 'int'",
        lambda found: "count with size_t, as the sizes are: an int may be negative, and holds smaller numbers",
    ),
    (
        r" to '(?:real|float)'.*float-conversion\]",
        lambda found: "`real` may be float: (real)s says that you mean it, or keep the sum in real",
    ),
    (
        r"(?:implicit declaration of|call to undeclared(?: library)?) function '(\w+)'",
        lambda found: _undeclared(found[1]),
    ),
    (
        r"unused parameter '(\w+)'",
        lambda found: f"your code never looks at the argument {found[1]}: is a part of the task missing?",
    ),
]
"""What a line with an error looks like, gcc's or clang's, and what to say. All compiles with -Wconversion -Werror."""
