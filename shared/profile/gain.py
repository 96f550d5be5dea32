"""Which operation of a step to mend first: not the slowest, nor the least efficient, but the one that gains most."""

from __future__ import annotations

from collections.abc import Sequence


def first_to_mend(seconds: Sequence[float], least: Sequence[float | None], step: float) -> tuple[int, float] | None:
    """(the number of the operation, the seconds of the step if it took no longer than its roof allows), or None.

    seconds: of each operation in a step, all its calls together; least: the time that its roof allows it, None where no
    roof was measured; step: the seconds of the whole step, which has more in it than the operations
    The operation is the one whose mending shortens the step most, the first of several. None where none would: each
    is at its roof, or has none.
    """
    gains = [taken - at_best if at_best is not None else 0.0 for taken, at_best in zip(seconds, least, strict=True)]
    largest = max(gains, default=0.0)
    return (gains.index(largest), step - largest) if largest > 0 else None
