"""The figures of the page on several processes: an all-reduce by rounds of pairs, and around a ring."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from style import BLUE, GREEN, INK, MINT, ORANGE, PANEL, QUIET, RULE, SAND, SKY, arrow, box, canvas, text

RANKS = 4
FILLS = {1: (PANEL, RULE), 2: (SKY, BLUE), 3: (SAND, ORANGE), 4: (MINT, GREEN)}
ROUNDS = {1: (PANEL, RULE), 2: (SKY, BLUE), 4: (SAND, ORANGE), 8: (MINT, GREEN)}
"""How many ranks' numbers a piece contains -> how it is drawn, around the ring and in the rounds."""

COUNTS = "A number: of how many ranks it is the sum."


def tree() -> Figure:
    """Eight ranks in three rounds: in each one, pairs exchange everything they have."""
    drawn, axes = canvas(3.3)
    text(axes, 0.15, 3.1, "Three rounds for eight ranks; in each one a rank sends all its numbers", ha="left", size=10)
    holds = [1] * 8
    for row in range(4):
        y = 2.4 - row * 0.68
        words = "at first" if row == 0 else f"round {row}"
        text(axes, 0.15, y + 0.16, words, QUIET, 9, ha="left")
        for rank in range(8):
            x = 1.0 + rank * 0.56
            fill, edge = ROUNDS[holds[rank]]
            box(axes, x, y, 0.4, 0.32, fill, edge)
            text(axes, x + 0.2, y + 0.16, str(holds[rank]), INK, 9.5)
            if row == 0:
                text(axes, x + 0.2, y + 0.48, f"rank {rank}" if rank == 0 else str(rank), QUIET, 9)
            if row < 3:
                partner = rank ^ (1 << row)
                arrow(axes, (x + 0.2, y - 0.03), (1.2 + partner * 0.56, y - 0.33), QUIET)
        holds = [2 * each for each in holds]
    text(axes, 0.15, 0.13, COUNTS, QUIET, 9, ha="left")
    return drawn


def ring() -> Figure:
    """Four ranks, each number cut into four pieces: three steps that add, then three that copy."""
    drawn, axes = canvas(4.3)
    title = "Six steps for four ranks; in each one a rank sends a quarter of its numbers"
    text(axes, 0.15, 4.1, title, ha="left", size=10)
    states = ring_states()
    for top, shown in ((3.4, states[:RANKS]), (1.55, states[RANKS - 1 :])):
        for column, (name, holds, taken) in enumerate(shown):
            x = 0.78 + column * 1.27
            text(axes, x + 0.42, top + 0.42, name, QUIET, 9)
            for rank in range(RANKS):
                y = top - rank * 0.36
                if column == 0:
                    text(axes, 0.15, y + 0.14, f"rank {rank}", QUIET, 9, ha="left")
                else:
                    left = top - (rank - 1) % RANKS * 0.36
                    arrow(axes, (x - 0.4, left + 0.14), (x - 0.04, y + 0.14), QUIET)
                for piece, count in enumerate(holds[rank]):
                    fill, edge = FILLS[count]
                    came = column > 0 and piece == taken[rank]
                    box(axes, x + piece * 0.215, y, 0.185, 0.28, fill, INK if came else edge)
                    text(axes, x + piece * 0.215 + 0.0925, y + 0.14, str(count), INK, 9)
    text(axes, 0.15, 0.13, COUNTS + " Dark edge: the piece that has just come.", QUIET, 9, ha="left")
    return drawn


def ring_states() -> list[tuple[str, list[list[int]], list[int]]]:
    """(name, of how many ranks each rank's pieces are the sum, the piece that each rank has got) after each step."""
    holds = [[1] * RANKS for _ in range(RANKS)]
    states = [("at first", holds, [-1] * RANKS)]
    for step in range(2 * (RANKS - 1)):
        taken = [(rank - step - 1) % RANKS for rank in range(RANKS)]
        adds = step < RANKS - 1
        before, holds = holds, [list(pieces) for pieces in holds]
        for rank, piece in enumerate(taken):
            holds[rank][piece] = before[rank - 1][piece] + (before[rank][piece] if adds else 0)
        states.append((f"add {step + 1}" if adds else f"copy {step - RANKS + 2}", holds, taken))
    return states


FIGURES: dict[str, Callable[[], Figure]] = {"all-reduce-tree": tree, "all-reduce-ring": ring}
