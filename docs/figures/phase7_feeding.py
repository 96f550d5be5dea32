"""Week 24: what is sent while kernels run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from style import BLUE, INK, MINT, ORANGE, PANEL, QUIET, SAND, SKY, arrow, box, canvas, text

HIGH = 0.34
"""Inches: the height of a lane."""


def streams() -> Figure:
    """An epoch's end and the next one's beginning: with one stream, and with a stream of its own for the copies."""
    drawn, axes = canvas(3.5)
    text(axes, 0.12, 3.33, "in one stream the kernels wait for the copy", size=10.5, ha="left")
    lane(axes, 2.75, "stream", [("epoch 1", 1.7, SKY, BLUE), ("copy", 0.85, SAND, ORANGE), ("epoch 2", 1.7, SKY, BLUE)])
    text(axes, 0.12, 2.35, "in a stream of its own the copy costs no time", size=10.5, ha="left")
    lane(
        axes,
        1.8,
        "copies",
        [("", 0.55, "", ""), ("order 2", 0.85, SAND, ORANGE), ("", 0.85, "", ""), ("order 3", 0.85, SAND, ORANGE)],
    )
    lane(axes, 1.25, "kernels", [("epoch 1 reads a", 1.7, SKY, BLUE), ("epoch 2 reads b", 1.7, MINT, QUIET)])
    lane(axes, 0.7, "arrays", [("a read, b filled", 1.7, PANEL, QUIET), ("b read, a filled", 1.7, PANEL, QUIET)])
    arrow(axes, (0.8 + 1.4, 1.78), (0.8 + 1.7, 1.25 + HIGH), ORANGE)
    text(axes, 4.25, 1.42, "the one wait: for\nthe copy, before b\nis read", ORANGE, 9.5, ha="left")
    text(axes, 0.12, 0.3, "time →", QUIET, 9.5, ha="left")
    return drawn


def lane(axes: Any, bottom: float, name: str, parts: list[tuple[str, float, str, str]]) -> None:
    """Boxes one after the other: (words, width, fill, edge); without a fill, nothing."""
    text(axes, 0.12, bottom + HIGH / 2, name, QUIET, 9.5, ha="left")
    left = 0.8
    for words, width, fill, edge in parts:
        if fill:
            box(axes, left, bottom, width - 0.03, HIGH, fill, edge)
            text(axes, left + width / 2, bottom + HIGH / 2, words, INK, 9.5)
        left += width


FIGURES: dict[str, Callable[[], Figure]] = {"week24-streams": streams}
