"""A cause is named only if it explains all that is known of a wrong answer.

In one case several mistakes can have the same numbers: a sum of one row is its last row, too. So before a cause is
told, the function is called with the exercise's other arguments. A mistake that would be wrong where the function is
right, or that has other numbers in most cases, is not its cause: then the case alone is told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.exercise import Exercise, checks_of
from groundup.course.checks.mistakes import alike, general_cause
from groundup.course.checks.results import numbers, outputs
from shared.checks.tolerance import compare

MOST_CASES = 12

GENERAL = ("every number is 0", "transposed", "wrong sign", "everything is")
"""How the causes begin that are recognised in every task, and are checked in all cases."""


def sure_checks(exercise: Exercise) -> list[Check]:
    """The checks of an exercise, which name only a cause that fits in all cases."""

    def surely(run: Callable[[Tally], None]) -> Callable[[Tally], None]:
        def check(tally: Tally) -> None:
            try:
                run(tally)
            except Wrong as wrong:
                texts = list(dict.fromkeys(each.text for each in exercise.mistakes if not each.seen))
                if wrong.picture is not None and wrong.cause in texts:  # told by its numbers
                    cases = list(_cases(exercise))
                    scores = sorted(((_score(exercise, text, cases), text) for text in texts), reverse=True)
                    best, others = scores[0][0], [score for score, _ in scores[1:]]
                    wrong.cause = scores[0][1] if best > NO_FIT and best not in others else ""
                elif wrong.cause.startswith(GENERAL) and not _always(exercise, wrong.cause, tally.fresh):
                    wrong.cause = ""
                raise

        return check

    return [replace(each, run=surely(each.run)) for each in checks_of(exercise)]


Case = tuple[tuple[Any, ...], str, np.ndarray, np.ndarray, bool]


def _cases(exercise: Exercise) -> Iterator[Case]:
    """(arguments, output, right numbers, the function's numbers, whether these are right) of each case and output."""
    rng = np.random.default_rng(40)
    drawn = [exercise.arguments(rng, size) for size in [exercise.typical, *exercise.sizes][:MOST_CASES]]
    with np.errstate(all="ignore"):
        for arguments in [*(each for each, _ in exercise.hand), *drawn]:
            given = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in arguments)
            try:
                got = outputs(exercise.call(*given))
                scale = exercise.scale(*arguments)
                for name, value in outputs(exercise.reference(*arguments)).items():
                    right, mine = np.asarray(value, np.float64), numbers(got.get(name))
                    of = scale[name] if isinstance(scale, dict) else scale
                    terms = max(exercise.terms(*arguments), 1)
                    yield arguments, name, right, mine, compare("", mine, right, exercise.dtype, terms, scale=of).ok
            except Exception:  # what fails in another way tells nothing of the numbers
                continue


NO_FIT = (-math.inf, 0)


def _score(exercise: Exercise, text: str, cases: Sequence[Case]) -> tuple[float, int]:
    """(minus the cases in which a mistake has other numbers than the function, those in which it has the same).

    NO_FIT if it is wrong where the function is right, or has the function's numbers in no more than half of the cases.
    Not in all: a mistake is modelled for plain launches, and rarely for every grid.
    """
    fitting = others = 0
    for arguments, name, right, mine, is_right in cases:
        told = [each for each in exercise.mistakes if (each.text, each.output) == (text, name)]
        results = [result for each in told if (result := each.result(*arguments)) is not None]
        same = any(alike(mine, each) for each in results)
        if is_right and len(results) == len(told) > 0 and not same:
            return NO_FIT
        fitting += same and not is_right
        others += bool(results) and not same and not all(alike(right, each) for each in results)
    return (-others, fitting) if fitting > others else NO_FIT


def _always(exercise: Exercise, cause: str, fresh: bool) -> bool:
    """Whether a general cause fits in every case in which the function is wrong."""
    found = {general_cause(mine, right, fresh) for _, _, right, mine, is_right in _cases(exercise) if not is_right}
    return {re.sub(r"\d+", "", each) for each in found} <= {re.sub(r"\d+", "", cause)}
