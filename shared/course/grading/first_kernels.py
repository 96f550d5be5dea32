"""The rungs of this phase."""

from __future__ import annotations

from collections.abc import Callable

from shared.course.rungs import Rung

GRADES: dict[str, Callable[[], list[Rung]]] = {}


def checkpoint() -> list[Rung]:
    """What ends the phase."""
    return []
