"""What a learner's function got and returned: the numbers, and how they read in a message."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shared.checks.tolerance import Comparison

Outputs = Mapping[str, Any]
"""A function's results by name; a single result has the name ""."""


def difference_shown(comparison: Comparison) -> tuple[str, str, str]:
    """Two numbers that differ, as a message shows them: (by how much they differ, expected, got).

    The first is "" unless both numbers would read the same with nine digits; then all digits are shown.
    """
    expected, got = f"{comparison.expected:.9g}", f"{comparison.got:.9g}"
    if expected != got or comparison.ok or not np.isfinite(comparison.got):
        return "", expected, got
    difference = abs(comparison.got - comparison.expected)
    told = f", by {difference:.2g} where rounding allows {difference / comparison.tolerances:.2g}"
    return told, f"{comparison.expected:.17g}", f"{comparison.got:.17g}"


def outputs(result: Any) -> Outputs:
    """A function's results by name; a single result as {"": result}."""
    return result if isinstance(result, Mapping) else {"": result}


def numbers(value: Any) -> np.ndarray:
    """A result as an array of floats. Raises TypeError or ValueError for what is no number, such as "7.0" in quotes."""
    array = np.asarray(value)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"expected numbers, got {array.dtype}")
    return np.asarray(array, np.float64)


MOST_BY_HAND = 24
"""Numbers of an array that a message shows whole."""


def by_hand(value: Any) -> str:
    """An array of at most MOST_BY_HAND numbers as a matrix, so that it can be recomputed on paper; else ""."""
    try:
        array = numbers(value)
    except (TypeError, ValueError):
        return ""
    if not 0 < array.size <= MOST_BY_HAND:
        return ""
    text = np.array2string(
        array + 0.0, precision=6, suppress_small=bool(np.abs(array).max() < LARGE), max_line_width=88
    )
    # NumPy puts empty lines between the matrices of more than two axes.
    return "\n".join(line for line in text.splitlines() if line.strip())


LARGE = 1e5
"""Numbers below it are shown without exponents."""


def arguments_by_hand(function: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """The arguments of a call by name, as matrices; only those that are arrays or numbers.

    function: takes these arguments, and has names for them
    """
    parts = []
    for name, value in zip(inspect.signature(function).parameters, arguments, strict=False):
        text = by_hand(value) if isinstance(value, np.ndarray) and value.ndim else ""
        if text:
            parts.append(beside(f"{name} = ", text))
    return "\n".join(parts)


def call_by_hand(function: Callable[..., Any], arguments: Sequence[Any], expected: Any, got: Any) -> str:
    """The arguments of a call, the right result and what came, as matrices; "" unless both results are small arrays."""
    wanted, came = by_hand(expected), by_hand(got)
    if not wanted or not came or not np.ndim(expected):
        return ""
    results = [beside("expected = ", wanted), beside("got      = ", came)]
    return "\n".join(part for part in (arguments_by_hand(function, arguments), *results) if part)


def beside(before: str, text: str) -> str:
    """A text of several lines after another one, with its lines below each other."""
    return before + text.replace("\n", "\n" + " " * len(before))


MOST_SHOWN = 160
"""Characters of a result that a message shows."""


def shown(value: Any) -> str:
    """A result as a message shows it, cut to MOST_SHOWN characters."""
    try:
        text = np.array2string(np.asarray(value), precision=6, threshold=12) if np.ndim(value) else str(value)
    except ValueError:  # rows of several lengths are no array
        text = str(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."
