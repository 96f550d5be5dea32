"""What a learner's function returned: its numbers, and how they read in a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shared.checks.tolerance import Comparison

Outputs = Mapping[str, Any]
"""A function's results by name; a single result has the name ""."""


def difference_shown(found: Comparison) -> tuple[str, str, str]:
    """Two numbers that differ, as a message shows them: (by how much they differ, expected, got).

    The first is "" unless both numbers would read the same with nine digits; then all digits are shown.
    """
    expected, got = f"{found.expected:.9g}", f"{found.got:.9g}"
    if expected != got or found.ok or not np.isfinite(found.got):
        return "", expected, got
    difference = abs(found.got - found.expected)
    told = f", by {difference:.2g} where rounding allows {difference / found.tolerances:.2g}"
    return told, f"{found.expected:.17g}", f"{found.got:.17g}"


def outputs(result: Any) -> Outputs:
    """A function's results by name; a single result as {"": result}."""
    return result if isinstance(result, Mapping) else {"": result}


def numbers(value: Any) -> np.ndarray:
    """A result as an array of floats. Raises TypeError or ValueError for what is no number, such as "7.0" in quotes."""
    array = np.asarray(value)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"expected numbers, got {array.dtype}")
    return np.asarray(array, np.float64)


MOST_SHOWN = 160
"""Characters of a result that a message shows."""


def shown(value: Any) -> str:
    """A result as a message shows it, cut to MOST_SHOWN characters."""
    try:
        text = np.array2string(np.asarray(value), precision=6, threshold=12) if np.ndim(value) else str(value)
    except ValueError:  # rows of several lengths are no array
        text = str(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."
