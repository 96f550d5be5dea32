"""A cause is named only if it explains all that is known of a wrong answer.

In one case several mistakes can have the same numbers: a sum of one row is its last row, too. So before a cause is
told, the function is called with the exercise's other arguments. A mistake stays if it has the function's numbers in
all of these cases, those included in which the function is right. If it does not, or if another mistake fits as well,
the case alone is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.exercise import Exercise, checks_of
from groundup.course.checks.mistakes import general_cause, same_numbers
from groundup.course.checks.results import numbers, outputs
from shared.checks.tolerance import compare

MOST_CASES = 12

GENERAL = ("all zeros", "transposed", "wrong sign", "everything is")
"""How the causes begin that are recognised in every task, and are checked in all cases."""


def sure_checks(exercise: Exercise) -> list[Check]:
    """The checks of an exercise, which name only a cause that fits in all cases."""

    def surely(run: Callable[[Tally], None]) -> Callable[[Tally], None]:
        def check(tally: Tally) -> None:
            try:
                run(tally)
            except Wrong as wrong:
                by_numbers = {each.text for each in exercise.mistakes if not each.seen}
                if (wrong.cause in by_numbers and _fitting(exercise, by_numbers) != {wrong.cause}) or (
                    wrong.cause.startswith(GENERAL) and not _always(exercise, wrong.cause, tally.fresh)
                ):
                    wrong.cause = ""
                raise

        return check

    return [replace(each, run=surely(each.run)) for each in checks_of(exercise)]


def _cases(exercise: Exercise) -> Iterator[tuple[tuple[Any, ...], str, np.ndarray, np.ndarray, bool]]:
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


def _fitting(exercise: Exercise, texts: set[str]) -> set[str]:
    """The mistakes that have the function's numbers in every case."""
    left = set(texts)
    for arguments, name, _, mine, is_right in _cases(exercise):
        for text in sorted(left):
            told = [each for each in exercise.mistakes if each.text == text and each.output == name]
            results = [result for each in told if (result := each.result(*arguments)) is not None]
            fits = any(same_numbers(mine, result) for result in results) or (is_right and len(results) < len(told))
            if told and not fits:
                left.discard(text)
    return left


def _always(exercise: Exercise, cause: str, fresh: bool) -> bool:
    """Whether a general cause fits in every case in which the function is wrong."""
    found = {general_cause(mine, right, fresh) for _, _, right, mine, is_right in _cases(exercise) if not is_right}
    return {re.sub(r"\d+", "", each) for each in found} <= {re.sub(r"\d+", "", cause)}
