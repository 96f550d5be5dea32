"""How far another run may differ from this one: the noise of a number that was measured in several passes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

STUDENT_99 = (63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250)
"""Student's t, 99 % two-sided, for 1, 2, … degrees of freedom: how many standard errors one must go out to have the
mean of a few normal numbers inside. (Any table of the distribution, like NIST's handbook of statistics, 1.3.6.7.2.)"""


def noise(values: Sequence[float]) -> float | None:
    """How far another run may differ from these passes, as a share of the value; None for a single pass.

    The half-width of the 99 % confidence interval of their mean, on a log scale, since a ratio and its inverse must
    be equally sure: exp(t · s / √n) − 1, where s is the standard deviation of the logarithms. Two runs agree where
    their intervals overlap.
    """
    if len(values) < 2:
        return None
    degrees = len(values) - 1
    t = STUDENT_99[min(degrees, len(STUDENT_99)) - 1]
    logarithms = [math.log(value) for value in values]
    return math.expm1(min(t * statistics.stdev(logarithms) / math.sqrt(len(values)), 700.0))


def agree(one: float, one_noise: float | None, other: float, other_noise: float | None) -> bool | None:
    """Whether two runs' values are the same within the noise that both state; None where one of them states none."""
    if one_noise is None or other_noise is None:
        return None
    return abs(math.log(one / other)) <= math.log1p(one_noise) + math.log1p(other_noise)
