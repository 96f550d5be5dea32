"""A cause is named only if it explains all that is known of a wrong answer.

In one case several mistakes can have the same numbers: a sum of one row is its last row, too. So before a cause is
told, the function is called with the exercise's other arguments. A mistake that would be wrong where the function is
right, or that has other numbers in most cases, is not its cause: then the case alone is told.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundup.course.checks import repeated
from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.mistakes import Mistake, alike, general_cause
from groundup.course.checks.results import numbers, outputs
from shared.checks.tolerance import compare

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
    named = {mistake.output for mistake in exercise.mistakes if mistake.text == cause and not mistake.seen}
    mistakes = [mistake for mistake in exercise.mistakes if mistake.output in named and not mistake.seen]
    if mistakes:
        cases, models = list(_cases(exercise)), defaultdict[str, list[Mistake]](list)
        wrong = {name for _, name, _, _, is_right in cases if not is_right}
        for mistake in mistakes:
            if mistake.output in wrong:
                models[mistake.text].append(mistake)
        with np.errstate(all="ignore"):
            scores = {text: _score(of_text, cases) for text, of_text in models.items()}
        best = max(scores.values(), default=NO_FIT)
        fitting = [text for text, score in scores.items() if score == best > NO_FIT]
        return fitting[0] if len(fitting) == 1 else ""
    if cause.startswith(GENERAL):
        several = [case for case in _cases(exercise) if case[2].size > 1]  # of a single number less can be told
        causes = {general_cause(mine, right, fresh) for _, _, right, mine, is_right in several if not is_right}
        if cause.startswith(GENERAL[0]) and any(is_right and right.any() for _, _, right, _, is_right in several):
            return ""
        return cause if {re.sub(r"\d+", "", text) for text in causes} <= {re.sub(r"\d+", "", cause)} else ""
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


Score = tuple[float, float, float]

NO_FIT = (-math.inf, 0, 0)


def _score(models: Sequence[Mistake], cases: Sequence[Case]) -> Score:
    """Of a mistake: (minus the cases in which it has other numbers than the function, those in which it has the same,
    minus those in which it would be right and the function is wrong).

    models: of the mistake. Of those of one output the one that fits best counts
    NO_FIT if all are wrong where the function is right, or have its numbers in no more than half of the cases. Not in
    all: a mistake is modelled for plain launches, and rarely for every grid.
    """
    counted = {argument: [0, 0, 0] for argument in models}
    for arguments, name, right, mine, is_right in cases:
        told = {
            argument: result
            for argument in models
            if argument.output == name
            for result in [argument.result(*arguments)]
        }
        same = {argument: result is not None and alike(mine, result) for argument, result in told.items()}
        known = all(result is not None for result in told.values())
        # a function of one number may be wrong on one side of 0
        if told and is_right and known and not any(same.values()) and any(isinstance(a, np.ndarray) for a in arguments):
            return NO_FIT
        for argument, result in told.items():
            if result is not None and not is_right:
                fits_right = alike(right, result)
                counted[argument][0] -= not same[argument] and not fits_right
                counted[argument][1] += same[argument]
                counted[argument][2] -= not same[argument] and fits_right
    outputs_named = {argument.output for argument in models}
    best = [max(count for argument, count in counted.items() if argument.output == name) for name in outputs_named]
    others, fitting, unexplained = (sum(column) for column in zip(*best, strict=True))
    return (others, fitting, unexplained) if fitting > -others and 2 * fitting > -unexplained else NO_FIT
