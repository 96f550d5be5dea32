"""The check of a derivative against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from groundup.course.checks.check import Tally
from groundup.course.checks.mistakes import Mistake
from groundup.course.checks.results import outputs
from shared.checks.tolerance import tolerance

STEP = float(np.finfo(np.float64).eps) ** (1 / 3)
"""Step of the central differences, as in shared.checks.gradients. That module holds exercises, and the learner's
functions must be put into it before it is imported, so it is not imported here."""

SLOPE_ERROR = 1e-7
"""Relative to loss and gradient: central differences have errors of about 1e-10, a wrong formula far larger ones."""


def slopes(loss: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """The gradient of a loss by central differences, number by number: (loss(v + h) - loss(v - h)) / 2h."""
    found = np.empty(at.shape)
    for index in np.ndindex(at.shape):
        h = STEP * max(1.0, abs(float(at[index])))
        above, below = at.copy(), at.copy()
        above[index] += h
        below[index] -= h
        found[index] = (loss(above) - loss(below)) / (2 * h)
    return found


def gradient_check(
    loss: Callable[[np.ndarray], float],
    analytic: Callable[[np.ndarray], Any],
    at: Callable[[np.random.Generator], np.ndarray],
    case: str,
    *,
    name: str = "",
    mistakes: Sequence[Mistake] = (),
) -> Callable[[Tally], None]:
    """The check of a derivative: `analytic`, the learner's function, against the slopes of `loss` at random numbers.

    at: draws the random numbers, away from kinks; case, name, mistakes: as Tally.equal takes them
    """

    def check(tally: Tally) -> None:
        tally.trying(f"the slope of {case}")
        point = at(np.random.default_rng(3))
        got = outputs(analytic(point.copy())).get(name)
        expected = slopes(loss, point)
        size = float(np.max(np.abs(expected))) + abs(loss(point))
        tally.equal(
            got,
            expected,
            case=f"the slope of {case}",
            name=name,
            terms=1,
            scale=SLOPE_ERROR * size / tolerance("float64", 1, 1.0),
            mistakes=mistakes,
            arguments=(point,),
        )

    return check
