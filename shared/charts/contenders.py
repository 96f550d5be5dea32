"""Who is who in every figure: a name, a colour, a marker and a dash for each stage and library, in one order.

Colours alone are lost in greyscale print, so whoever has a colour has a marker and a dash of its own too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shared.bench.document import Results
from shared.bench.rows import LIBRARIES, BenchRow, drawable
from shared.charts.colours import CONTENDERS, INK, PAPER
from shared.contract import STAGE_TITLES, STAGES
from shared.machine.environment import describe
from shared.numbers import plural

NUMPY_STAGE, C_STAGE, GPU_STAGE = STAGES[1], STAGES[2], STAGES[3]
ORDER = (*STAGES, *LIBRARIES)
_MARKERS = dict(zip(ORDER, "os^DvXP", strict=True))
_DASHES: dict[str, Any] = dict(
    zip(ORDER, ("-", "-", "-", "-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2))), strict=True)
)


def colour(who: str) -> str:
    """Of a stage or library."""
    return CONTENDERS[who]


def marker(who: str) -> str:
    """Of a stage or library."""
    return _MARKERS[who]


def dashes(who: str) -> Any:
    """Line style of a stage (solid) or library (broken)."""
    return _DASHES[who]


def dot(who: str, *, hollow: bool = False, size: float = 7.0) -> dict[str, Any]:
    """`plot` settings for single points: coloured, with an edge that shows on any paper."""
    return {
        "marker": marker(who),
        "linestyle": "none",
        "markersize": size,
        "color": colour(who),
        "markerfacecolor": PAPER if hollow else colour(who),
        "markeredgecolor": colour(who) if hollow else INK,
        "markeredgewidth": 1.6 if hollow else 0.5,
    }


def name(who: str) -> str:
    """The shortest: 'pure Python', 'NumPy', 'C', 'CUDA', 'PyTorch'."""
    return LIBRARIES.get(who) or STAGE_TITLES[who].partition(": ")[2]


def title(who: str, *, emulated: bool = False) -> str:
    """For a label: 'stage 3: C', 'PyTorch', 'stage 4: CUDA, emulated on the CPU'."""
    return LIBRARIES.get(who) or STAGE_TITLES[who] + (", emulated on the CPU" if emulated else "")


def ordered(whos: Iterable[str]) -> list[str]:
    """Each once, in the order of every figure: stages, then libraries."""
    found = set(whos)
    return [who for who in ORDER if who in found]


def of_kind(results: Results, kind: str, *, emulated: bool = False) -> list[BenchRow]:
    """The timed rows of a kind; those of the emulator only where asked for."""
    return [row for row in drawable(results.rows, emulated=emulated) if row.kind == kind]


def fastest(rows: Iterable[BenchRow]) -> dict[str, BenchRow]:
    """Each contender's fastest row, in order."""
    best: dict[str, BenchRow] = {}
    for row in rows:
        if row.seconds is not None and (row.stage not in best or row.seconds < (best[row.stage].seconds or 0.0)):
            best[row.stage] = row
    return {who: best[who] for who in ordered(best)}


def footer(results: Results, *, shown: Sequence[BenchRow] = (), kind: str = "") -> str:
    """The small print: machine, threads, day; what the run was, where it was not whole; what became of the emulator.

    shown: the rows of the figure. kind: of which a row of the emulator was left out, which is then said.
    """
    facts = results.environment
    threads = facts.get("threads")
    parts = [describe(facts)]
    parts += [plural(threads, "thread")] if threads else []
    parts += ["quick run"] if results.quick else []
    parts += [] if results.complete else ["interrupted"]
    text = " · ".join(parts)
    if any(row.emulated for row in shown):
        return f"{text}\nemulated: CUDA kernels on the CPU, which says nothing about a GPU"
    if kind and any(row.kind == kind and row.emulated for row in results.rows):
        return f"{text}\nstage 4 is left out: it was emulated on the CPU"
    return text
