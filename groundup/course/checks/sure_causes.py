"""A cause is named only if it explains all that is known of a wrong answer.

In one case several mistakes can have the same numbers: a sum of one row is its last row, too. So before a cause is
told, the function is called with the exercise's other arguments. A mistake that would be wrong where the function is
right, or that has other numbers in most cases, is not its cause: then the case alone is told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from groundup.course.checks import repeated
from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.mistakes import Mistake, alike, general_cause
from groundup.course.checks.results import numbers, outputs
from shared.checks.tolerance import compare

if TYPE_CHECKING:
    from groundup.course.checks.exercise import Exercise

MOST_CASES = 12

GENERAL = ("every number is 0", "transposed", "wrong sign", "everything is")
"""How the causes begin that are recognised in every task, and are checked in all cases."""


def surely(exercise: Exercise, check: Check) -> Check:
    """The check, whose failure names a cause only if it fits in all cases."""

    def run(tally: Tally) -> None:
        try:
            check.run(tally)
        except Wrong as wrong:
            if wrong.cause and wrong.picture is not None:  # told by its numbers
                wrong.cause = sure_cause(exercise, wrong.cause, tally.fresh)
            raise

    return replace(check, run=run)


def sure_cause(exercise: Exercise, cause: str, fresh: bool) -> str:
    """The mistake that fits in the cases of this exercise better than any other, if this cause is a mistake at all.

    A general cause, if it fits in every case in which the function is wrong. Else "". All other causes stay.
    """
    named = {each.output for each in exercise.mistakes if each.text == cause and not each.seen}
    mistakes = [each for each in exercise.mistakes if each.output in named and not each.seen]
    if mistakes:
        cases, scores = list(_cases(exercise)), dict[str, tuple[float, int]]()
        for each in mistakes:
            scores[each.text] = max(scores.get(each.text, NO_FIT), _score(each, cases))
        best = max(scores.values())
        fitting = [text for text, score in scores.items() if score == best > NO_FIT]
        return fitting[0] if len(fitting) == 1 else ""
    if cause.startswith(GENERAL):
        several = [each for each in _cases(exercise) if each[2].size > 1]  # of a single number less can be told
        found = {general_cause(mine, right, fresh) for _, _, right, mine, is_right in several if not is_right}
        if cause.startswith(GENERAL[0]) and any(is_right and right.any() for _, _, right, _, is_right in several):
            return ""
        return cause if {re.sub(r"\d+", "", each) for each in found} <= {re.sub(r"\d+", "", cause)} else ""
    return cause


Case = tuple[tuple[Any, ...], str, np.ndarray, np.ndarray, bool]


def _cases(exercise: Exercise) -> Iterator[Case]:
    """(arguments, output, right numbers, the function's numbers, whether these are right) of each case and output."""
    rng = np.random.default_rng(40)
    sizes = exercise.told_by or [exercise.typical, *exercise.sizes][:MOST_CASES]
    drawn = [exercise.arguments(rng, size) for size in sizes]
    with np.errstate(all="ignore"), repeated.alone():
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


def _score(mistake: Mistake, cases: Sequence[Case]) -> tuple[float, int]:
    """(minus the cases in which a mistake has other numbers than the function, those in which it has the same).

    Of the latter those are taken off in which the mistake would be right, and the function is wrong.

    NO_FIT if it is wrong where the function is right, or has the function's numbers in no more than half of the cases.
    Not in all: a mistake is modelled for plain launches, and rarely for every grid.
    """
    fitting = others = unexplained = 0
    for arguments, name, right, mine, is_right in cases:
        result = mistake.result(*arguments) if name == mistake.output else None
        if result is None:
            continue
        same = alike(mine, result)
        if is_right and not same and any(isinstance(each, np.ndarray) for each in arguments):
            return NO_FIT  # a function of one number may be wrong on one side of 0
        fitting += same and not is_right
        would_be_right = alike(right, result)
        unexplained += not same and would_be_right
        others += not same and not is_right and not would_be_right
    return (-others, fitting - unexplained) if fitting > others else NO_FIT
