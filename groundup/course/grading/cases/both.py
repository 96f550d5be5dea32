"""Two checks as one."""

from __future__ import annotations

from collections.abc import Callable

from groundup.course.checks.check import Tally


def both(first: Callable[[Tally], None], second: Callable[[Tally], None]) -> Callable[[Tally], None]:
    """A check that makes the comparisons of both."""

    def check(tally: Tally) -> None:
        first(tally)
        second(tally)

    return check
