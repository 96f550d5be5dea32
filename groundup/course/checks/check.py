"""One check of an answer, and what it reports.

    Check       a name, and a function that compares and raises Wrong
    Question    a call whose right result another process knows: judging/examiner.py asks it when all checks have passed
    Tally       counts the comparisons of a check, and reports what is being tried
    Wrong       the first thing that is not right, in the learner's words

A task has the checks that make sense for it, in the order of ORDER; the first that fails ends the grading. A check that
compared nothing fails, too: a test that tests nothing must not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from groundup.course.checks.mistakes import Mistake, likely_cause
from groundup.course.checks.picture import picture
from groundup.course.checks.results import difference_shown, numbers, shown
from shared.checks.tolerance import compare, failed, in_tolerances, tolerance

ORDER = ("shape", "values", "gradient", "agreement", "sizes", "again", "memory", "types", "way", "speed")


class Wrong(Exception):
    """The first thing that is not right, as the learner reads it.

    what: a sentence
    expected, got: the two values as text, "" where the sentence compares none
    cause: the likely cause, "" where it is not known
    line: the line of the cause in the learner's assembled file, None where it has none
    file: that assembled file; "" if only one is graded, as in every task
    called_from: (file, line) of the calls that led to the line, if it is in a function that the learner's calls; one of
        them in the learner's function is shown in its place
    by_hand: the arguments and both results as matrices, to be recomputed on paper; "" where they are too large
    picture: both results as numbers to be drawn, as checks/picture.py has them; None where none are compared
    """

    def __init__(
        self,
        what: str,
        *,
        expected: str = "",
        got: str = "",
        cause: str = "",
        line: int | None = None,
        file: str = "",
    ) -> None:
        super().__init__(what)
        self.what, self.expected, self.got, self.cause, self.line = what, expected, got, cause, line
        self.file = file
        self.by_hand = ""
        self.picture: dict[str, Any] | None = None
        self.called_from: Sequence[tuple[str, int]] = ()


class Tally:
    """Counts the comparisons of a check, and reports what is being tried to the function `tell`."""

    def __init__(self, tell: Callable[[str, str], None] = lambda event, text: None) -> None:
        self._tell = tell
        self.count = 0
        self.fresh = False  # as Exercise.fresh

    _last: ClassVar[tuple[Any, str]] = (lambda event, text: None, "")

    def trying(self, case: str) -> None:
        """Report what is tried next. If the process crashes while it runs, the verdict names this case."""
        Tally._last = (self._tell, case)
        self._tell("trying", case)

    @staticmethod
    @contextmanager
    def trying_also(addition: str) -> Iterator[None]:
        """Within this block the case that was tried last is reported with an addition."""
        tell, case = Tally._last
        tell("trying", case + addition)
        yield
        tell("trying", case)

    def note(self, text: str) -> None:
        """Report something that is worth knowing after a pass, such as a measured time."""
        self._tell("note", text)

    def looks_at(self, kernel: Any, launch: Any, arguments: Sequence[Any]) -> None:
        """Called with the launch that the check `memory` looks at, before it does. `groundup learn lens` traces it."""

    def holds(
        self, holds: Any, sentence: str, *, expected: str = "", got: str = "", cause: str = "", line: int | None = None
    ) -> None:
        """Count one comparison. Raises Wrong(what, …) if `holds` is not true."""
        self.count += 1
        if not holds:
            raise Wrong(sentence, expected=expected, got=got, cause=cause, line=line)

    def finding(self, finding: Any, cause: str = "") -> None:
        """Count one finding of cuda_emulator.lens.checks. Raises Wrong if it has not passed."""
        self.holds(finding.passed, finding.message, cause=cause, line=finding.line)

    def equal(
        self,
        got: Any,
        expected: Any,
        *,
        case: str,
        name: str = "",
        dtype: str = "float64",
        terms: float = 16,
        scale: Any = None,
        mistakes: Sequence[Mistake] = (),
        arguments: Sequence[Any] = (),
    ) -> None:
        """Count one comparison of two arrays. Raises Wrong if they differ by more than rounding explains.

        case: how the call reads in a message; name: which of several outputs is compared
        dtype: the dtype in which `got` was computed
        terms, scale: as shared.checks.tolerance takes k and scale
        mistakes, arguments: the known mistakes, and the arguments of the call, from which they compute their results
        """
        self.count += 1
        of = f"{name} of {case}" if name else case
        expected = np.asarray(expected, np.float64)
        if got is None:
            raise Wrong(f"{of}: nothing came back", expected=shown(expected), got="None", cause="no return?")
        try:
            values = numbers(got)
        except (TypeError, ValueError):
            raise Wrong(f"{of}: expected numbers", expected=shown(expected), got=shown(got)) from None
        if values.shape != expected.shape:
            wrong = Wrong(
                f"{of}: the shape is not right",
                expected=str(expected.shape),
                got=str(values.shape),
                cause=likely_cause(values, expected, name, mistakes, arguments, self.fresh),
            )
            wrong.picture = picture(expected, values)
            raise wrong
        comparison = compare(of, values, expected, dtype, max(terms, 1), scale=scale)
        if not comparison.ok:
            at = f" at index {list(comparison.index)}" if comparison.index else ""
            by_how_much, wanted, had = difference_shown(comparison)
            wrong = Wrong(
                f"{of}: wrong{at}{by_how_much}",
                expected=wanted,
                got=had,
                cause=likely_cause(values, expected, name, mistakes, arguments, self.fresh),
            )
            if scale is None:
                scale = np.max(np.abs(expected), where=np.isfinite(expected), initial=0.0)
            allowed = tolerance(dtype, max(terms, 1), scale)
            wrong.picture = picture(expected, values, in_tolerances(values, expected, allowed))
            raise wrong


@dataclass(frozen=True)
class Question:
    """A call of the learner's function with arguments that are drawn when it is asked, and the right result.

    call, reference, arguments: as an Exercise has them; the arguments must be of kinds that pickle can write
    size: what the arguments are made of; the result must depend on what is drawn
    """

    call: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: Callable[[np.random.Generator, Any], tuple[Any, ...]]
    size: Any


@dataclass(frozen=True)
class Check:
    """One step of grading.

    name: one of ORDER; run: compares, counts on the tally it is given, and raises Wrong
    question: of the task; at least one of its checks has it
    """

    name: str
    run: Callable[[Tally], None]
    question: Question | None = None


def unchanged(tally: Tally, before: Sequence[Any], after: Sequence[Any], names: Sequence[str]) -> None:
    """Raises Wrong if a function has changed one of its arguments."""
    for name, old, new in zip(names, before, after, strict=True):
        found = compare(name, new, old, "float64", 1) if np.shape(old) == np.shape(new) else failed(name, "reshaped")
        tally.holds(
            found.ok,
            f"{name} was changed by the call",
            cause=f"write into a new array, not into {name}: the caller still needs it",
        )


def both(*runs: Callable[[Tally], None]) -> Callable[[Tally], None]:
    """A check's comparisons, one after the other."""

    def run(tally: Tally) -> None:
        for each in runs:
            each(tally)

    return run


def and_then(checks: Sequence[Check], name: str, more: Callable[[Tally], None]) -> list[Check]:
    """The checks; the check of this name makes the comparisons of `more` after its own."""
    return [replace(check, run=both(check.run, more)) if check.name == name else check for check in checks]
