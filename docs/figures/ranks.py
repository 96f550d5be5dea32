"""The figures of the page on several processes: an all-reduce by rounds of pairs, and around a ring."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from style import BLUE, GREEN, INK, MINT, ORANGE, PANEL, QUIET, RULE, SAND, SKY, arrow, box, canvas, text

RANKS = 4
FILLS = {1: (PANEL, RULE), 2: (SKY, BLUE), 3: (SAND, ORANGE), 4: (MINT, GREEN), 8: (MINT, GREEN)}
"""How many ranks' numbers a piece contains -> how it is drawn."""


def tree() -> Figure:
    """Eight ranks in three rounds: in each one, pairs exchange everything they have."""
    drawn, axes = canvas(3.15)
    text(axes, 0.15, 2.95, "Three rounds for eight ranks; every one sends all numbers", ha="left", size=10)
    holds = [1] * 8
    for row in range(4):
        y = 2.25 - row * 0.68
        words = "at first" if row == 0 else f"round {row}"
        text(axes, 0.15, y + 0.16, words, QUIET, 9, ha="left")
        for rank in range(8):
            x = 1.0 + rank * 0.56
            fill, edge = {1: (PANEL, RULE), 2: (SKY, BLUE), 4: (SAND, ORANGE), 8: (MINT, GREEN)}[holds[rank]]
            box(axes, x, y, 0.4, 0.32, fill, edge)
            text(axes, x + 0.2, y + 0.16, str(holds[rank]), INK, 9.5)
            if row == 0:
                text(axes, x + 0.2, y + 0.48, f"rank {rank}" if rank == 0 else str(rank), QUIET, 9)
            if row < 3:
                partner = rank ^ (1 << row)
                arrow(axes, (x + 0.2, y - 0.03), (1.2 + partner * 0.56, y - 0.33), QUIET)
        holds = [2 * each for each in holds]
    return drawn


def ring() -> Figure:
    """Four ranks, each number cut into four pieces: three steps that add, three that copy."""
    drawn, axes = canvas(2.75)
    text(axes, 0.15, 2.55, "Six steps for four ranks; every one sends a quarter of the numbers", ha="left", size=10)
    holds = [[1] * RANKS for _ in range(RANKS)]
    for step in range(2 * RANKS - 1):
        x = 0.62 + step * 0.72
        name = "at first" if step == 0 else f"add {step}" if step < RANKS else f"copy {step - RANKS + 1}"
        text(axes, x + 0.26, 2.2, name, QUIET, 9)
        for rank in range(RANKS):
            y = 1.65 - rank * 0.4
            if step == 0:
                text(axes, 0.15, y + 0.14, f"rank {rank}" if rank == 0 else f"{rank}", QUIET, 9, ha="left")
            for piece in range(RANKS):
                fill, edge = FILLS[holds[rank][piece]]
                box(axes, x + piece * 0.135, y, 0.115, 0.28, fill, edge)
                text(axes, x + piece * 0.135 + 0.058, y + 0.14, str(holds[rank][piece]), INK, 6.5)
        arrived = [((rank - step - 1) % RANKS, holds[rank - 1][(rank - step - 1) % RANKS]) for rank in range(RANKS)]
        for rank, (piece, count) in enumerate(arrived):
            holds[rank][piece] = holds[rank][piece] + count if step < RANKS - 1 else count
    text(axes, 0.15, 0.12, "a number: of how many ranks a piece is the sum", QUIET, 9, ha="left")
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {"all-reduce-tree": tree, "all-reduce-ring": ring}
