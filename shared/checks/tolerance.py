"""How far apart two correct answers may be, and how far apart these two are.

Two stages add the same numbers in different orders, and every addition rounds. So their results need not have equal
bits, and how close is close enough must be derived instead of guessed. The rule is one line:

    |got - expected|  <=  C * eps(dtype) * sqrt(k) * scale

    k        how many terms are accumulated into one result (the roundings that can add up)
    scale    the size of what is summed: for a matmul, |a| @ |b|, element by element
    C        4; docs/numerics.md derives it and the square root

`compare` measures a difference in units of that tolerance: 0.1 is common, 1 is the limit, and a wrong sign usually
gives billions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shared.numbers import three_digits

C = 4.0
"""Up to 16 terms no correct result has a larger error; with more it is ten standard deviations (docs/numerics.md)."""


def eps(dtype: str) -> float:
    """The gap between 1 and the next number: 1.2e-7 in float32, 2.2e-16 in float64. A rounding error is half of it."""
    return float(np.finfo(dtype).eps)


def tolerance(dtype: str, k: float, scale: ArrayLike) -> Any:
    """C * eps(dtype) * sqrt(k) * scale: the largest difference between two stages that rounding explains.

    k: number of accumulated terms, at least 1
    scale: size of these terms, at least 0; a float gives a float, an array gives an array
    The tolerance is at least the smallest normal number of dtype, below which floats lose their relative precision.
    """
    if not k >= 1:
        raise ValueError(f"tolerance: k is {k}; expected at least 1 accumulated term")
    allowed = np.maximum(C * eps(dtype) * math.sqrt(k) * np.asarray(scale, np.float64), np.finfo(dtype).tiny)
    return float(allowed) if np.ndim(scale) == 0 else allowed


@dataclass(frozen=True)
class Comparison:
    """One result of a stage beside the reference's, at the index where they differ most.

    op: name of the result, such as "relu_backward" or "Dense.backward: grad_bias"
    layer: its number in the architecture: '4.2' is the second layer in the residual block that is layer 4; None for an
        operation on its own
    index: index in the array, from 0; empty for a single number, or if the shapes differ
    got, expected: the two values at the index
    tolerances: |got - expected| in units of the tolerance at the index; inf if no rounding can explain it
    level: "op", "layer", "step" or "trajectory"; case: the sizes, data or hyperparameters
    note: another reason for a failure, such as a wrong shape or an exception; else ""
    """

    op: str
    layer: str | None
    index: tuple[int, ...]
    got: float
    expected: float
    tolerances: float
    level: str = "op"
    case: str = ""
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether rounding explains the difference."""
        return self.tolerances <= 1.0

    @property
    def place(self) -> str:
        """Op, layer and index: 'relu_backward, layer 2, index (3, 1)'."""
        parts = [self.op]
        if self.layer is not None:
            parts.append(f"layer {self.layer}")
        if self.index:
            parts.append(f"index {self.index}")
        return ", ".join(parts)

    def __str__(self) -> str:
        """One line: the place, both values, how far apart, and on what data."""
        found = self.note or f"got {self.got:.17g}, expected {self.expected:.17g}"
        case = f" ({self.case})" if self.case else ""
        return f"{self.place}: {found}; {describe_tolerances(self.tolerances)}{case}"


def describe_tolerances(tolerances: float) -> str:
    """'0.03 tolerances apart', or words where the number would be infinite."""
    if math.isinf(tolerances):
        return "no rounding explains that"
    return f"{three_digits(tolerances)} tolerances apart"


def compare(
    op: str,
    got: Any,
    expected: Any,
    dtype: str,
    k: float,
    *,
    scale: Any = None,
    layer: str | None = None,
    level: str = "op",
    case: str = "",
) -> Comparison:
    """Compare two arrays and return the place where they differ most.

    got, expected: anything that numpy.asarray takes; both are read as float64 and must have equal shapes
    dtype: the dtype in which `got` was computed; expected values beyond its range count as infinite
    k, scale: as in `tolerance`; scale may be an array that broadcasts to the shape of expected; None: the largest
        finite |expected|
    NaN equals NaN only, and an infinity equals the same infinity only: other pairs differ by inf tolerances.
    """
    got = np.asarray(got, np.float64)
    expected = np.asarray(expected, np.float64)
    if got.shape != expected.shape:
        note = f"got shape {got.shape}, expected {expected.shape}"
        return failed(op, note, layer=layer, level=level, case=case)
    largest = float(np.finfo(dtype).max)
    expected = np.where(np.abs(expected) > largest, np.copysign(np.inf, expected), expected)
    if scale is None:
        scale = np.max(np.abs(expected), where=np.isfinite(expected), initial=0.0)
    apart = in_tolerances(got, expected, tolerance(dtype, k, scale))
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))
    return Comparison(op, layer, index, float(got[index]), float(expected[index]), float(apart[index]), level, case)


def failed(op: str, note: str, *, layer: str | None = None, level: str = "op", case: str = "") -> Comparison:
    """A failed comparison without numbers; note is the reason."""
    return Comparison(op, layer, (), math.nan, math.nan, math.inf, level, case, note)


def in_tolerances(got: np.ndarray, expected: np.ndarray, allowed: ArrayLike) -> np.ndarray:
    """|got - expected| / allowed for each element. For NaN and infinities: 0 if both are the same, else inf."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(got - expected) / np.where(np.isfinite(allowed), allowed, np.finfo(np.float64).max)
    odd = ~(np.isfinite(got) & np.isfinite(expected))
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    return np.where(odd, np.where(same, 0.0, np.inf), apart)
