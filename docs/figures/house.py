"""The house: its rooms, and which of them may import which. The figure of docs/architecture.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from style import GREEN, MINT, PANEL, QUIET, SAND, SKY, arrow, box, canvas, text

LEFT, INNER = 0.12, 5.36
STAGES = {"stage 1": "pure Python", "stage 2": "NumPy", "stage 3": "C", "stage 4": "CUDA"}
ROOMS = ("arrays", "matmul", "activations", "losses", "dense", "network", "optimizers")
IMAGE_ROOMS = ("convolution", "pooling", "batch_norm")
"""What convolutional networks need in addition."""
UP = 0.54
"""Inches that these rooms need."""


def storey(axes: Any, bottom: float, height: float, fill: str, name: str, says: str) -> None:
    """A storey from wall to wall with its name in the upper left corner."""
    box(axes, LEFT, bottom, INNER, height, fill)
    text(axes, LEFT + 0.12, bottom + height - 0.19, name, ha="left", weight="bold")
    text(axes, LEFT + 0.12 + 0.11 * len(name), bottom + height - 0.2, says, QUIET, 9, ha="left")


def row(axes: Any, bottom: float, names: tuple[str, ...]) -> None:
    """Rooms of one size beside each other."""
    gap = 0.08
    width = (INNER - 0.24 - gap * (len(names) - 1)) / len(names)
    for i, name in enumerate(names):
        left = LEFT + 0.12 + i * (width + gap)
        box(axes, left, bottom, width, 0.29)
        text(axes, left + width / 2, bottom + 0.14, name, size=9.5)


def house() -> Figure:
    """The program above what the floors share, that above the floors, and the emulator under the last floor."""
    drawn, axes = canvas(6.1 + UP)

    storey(axes, 4.86 + UP, 1.14, SKY, "groundup", "the program, and the tools around the floors")
    row(axes, 5.3 + UP, ("commands", "course", "studio", "compiling", "kernels", "doctor"))
    text(axes, LEFT + 0.12, 5.07 + UP, "gpu_report    cli    race    inside    live", QUIET, 9, ha="left")

    storey(axes, 2.86 + UP, 1.66, MINT, "shared", "feeds, trains, compares and times the floors")
    row(axes, 3.84 + UP, ("charts", "bench"))
    row(axes, 3.46 + UP, ("training", "checks", "data", "machine"))
    box(axes, LEFT + 0.12, 2.98 + UP, INNER - 0.24, 0.33, PANEL, GREEN)
    text(axes, LEFT + INNER / 2, 3.14 + UP, "contract: load_stage and load_part, the only way to a floor", size=9.5)

    width = (INNER - 0.3) / 4
    for i, (name, built_with) in enumerate(STAGES.items()):
        left = LEFT + i * (width + 0.1)
        middle = left + width / 2
        box(axes, left, 0.72, width, 1.8 + UP, SAND)
        text(axes, middle, 2.35 + UP, name, weight="bold")
        text(axes, middle, 2.17 + UP, built_with, QUIET, 9)
        for k, room in enumerate((*ROOMS[:5], *IMAGE_ROOMS, *ROOMS[5:])):
            text(axes, middle, 1.96 + UP - 0.18 * k, room, size=9)
        arrow(axes, (middle, 2.98 + UP), (middle, 2.52 + UP), GREEN)
    box(axes, LEFT, 0.1, INNER, 0.34)
    text(axes, LEFT + 0.12, 0.27, "cuda_emulator", ha="left", weight="bold")
    text(axes, LEFT + 1.4, 0.26, "runs stage 4's kernels on the CPU; imports nothing of ours", QUIET, 9, ha="left")
    arrow(axes, (LEFT + INNER - width / 2, 0.72), (LEFT + INNER - width / 2, 0.44))
    arrow(axes, (LEFT + INNER / 2, 4.86 + UP), (LEFT + INNER / 2, 4.52 + UP))
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {"house": house}
