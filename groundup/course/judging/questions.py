"""What the examiner asks, and how a learner's results reach it: as numbers alone, in a file that is only read as such.

question_of    the Question of a task's checks
draw           arguments for its call
answer         the result of this call, by the learner's function, in its own process
wrong_in       the first output that is not right, in the examiner's process
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groundup.course.checks.check import Check, Question
from groundup.course.checks.results import numbers, outputs, shown
from shared.machine import strict_json

ROUGHLY = 1e-3
"""Of the largest number of a result. Whether it is right to the last digits is for the checks; the question is whether
the function has computed it at all."""

Answer = Mapping[str, np.ndarray]
"""The outputs of a call by name."""


def question_of(checks: Sequence[Check]) -> Question:
    """The question of a task. Raises ValueError if none of its checks has one: such a task could not be passed."""
    found = next((check.question for check in checks if check.question is not None), None)
    if found is None:
        raise ValueError(f"none of the checks {[check.name for check in checks]} has a question")
    return found


def draw(question: Question, rng: np.random.Generator) -> tuple[Any, ...]:
    """The arguments of a call."""
    return question.arguments(rng, question.size)


def right(question: Question, arguments: tuple[Any, ...]) -> Answer:
    """The right result of the call."""
    return _as_numbers(question.reference(*arguments))


def answer(question: Question, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The result of the call, as a value of JSON."""
    return {name: _packed(array) for name, array in _as_numbers(question.call(*arguments)).items()}


def answers_in(text: bytes) -> list[Answer]:
    """What `answer` returned for each question, from a file that holds it as JSON; ValueError for anything else."""
    try:
        return [{name: _unpacked(each) for name, each in one.items()} for one in strict_json.loads(text)]
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"these are no results: {error!r}") from None


def wrong_in(expected: Answer, got: Answer) -> tuple[str, str] | None:
    """(what is right, what came) as text, of the first output that is not right; None if all are."""
    for name, value in expected.items():
        found = got.get(name)
        if found is None or not _alike(value, found):
            return shown(value), "nothing" if found is None else shown(found)
    return None


def _as_numbers(result: Any) -> dict[str, np.ndarray]:
    return {str(name): numbers(value) for name, value in outputs(result).items() if value is not None}


def _alike(expected: np.ndarray, got: np.ndarray) -> bool:
    if expected.shape != got.shape:
        return False
    finite = np.isfinite(expected)
    allowed = ROUGHLY * np.max(np.abs(expected), where=finite, initial=0.0)
    with np.errstate(invalid="ignore"):
        near = np.abs(got - expected) <= allowed
    return bool(np.all(np.where(finite, near, (got == expected) | (np.isnan(got) & np.isnan(expected)))))


def _packed(array: np.ndarray) -> dict[str, Any]:
    data = np.ascontiguousarray(array, "<f8").tobytes()
    return {"shape": list(array.shape), "data": base64.b64encode(data).decode()}


def _unpacked(packed: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), "<f8").reshape([int(size) for size in packed["shape"]])
