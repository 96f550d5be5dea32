"""The stages and libraries as every figure shows them: name, colour, marker and line style of each, in one order.

Greyscale print loses colours, so each has a marker and a line style of its own, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from shared.bench.measuring.rows import LIBRARIES, BenchRow, drawable
from shared.bench.records.document import Results
from shared.bench.records.trust import spoilt
from shared.charts.drawing.colours import CONTENDERS, INK, PAPER
from shared.contract import STAGE_TITLES, STAGES
from shared.machine.environment import busy, describe, slowed
from shared.numbers import plural

NUMPY_STAGE, C_STAGE, GPU_STAGE = STAGES[1], STAGES[2], STAGES[3]
ORDER = (*STAGES, *LIBRARIES)
_MARKERS = dict(zip(ORDER, "os^DvXP", strict=True))
_DASHES: dict[str, Any] = dict(
    zip(ORDER, ("-", "-", "-", "-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2))), strict=True)
)


def colour(who: str) -> str:
    """Colour of a stage or library."""
    return CONTENDERS[who]


def marker(who: str) -> str:
    """Marker of a stage or library."""
    return _MARKERS[who]


def dashes(who: str) -> Any:
    """Line style: solid for a stage, broken for a library."""
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
    """Short name: 'pure Python', 'NumPy', 'C', 'CUDA', 'PyTorch'."""
    return LIBRARIES.get(who) or STAGE_TITLES[who].partition(": ")[2]


def title(who: str, *, emulated: bool = False) -> str:
    """Full name: 'stage 3: C', 'PyTorch', 'stage 4: CUDA, emulated on the CPU'."""
    return LIBRARIES.get(who) or STAGE_TITLES[who] + (", emulated on the CPU" if emulated else "")


def ordered(whos: Iterable[str]) -> list[str]:
    """Each name once, in the order that all figures use: stages, then libraries."""
    found = set(whos)
    return [who for who in ORDER if who in found]


def of_kind(results: Results, kind: str, *, emulated: bool = False) -> list[BenchRow]:
    """The timed rows of a kind. emulated: include those of the emulator."""
    return [row for row in drawable(results.rows, emulated=emulated) if row.kind == kind]


def fastest(rows: Iterable[BenchRow]) -> dict[str, BenchRow]:
    """Each contender's fastest row, in order."""
    best: dict[str, BenchRow] = {}
    for row in rows:
        if row.seconds is not None and (row.stage not in best or row.seconds < (best[row.stage].seconds or 0.0)):
            best[row.stage] = row
    return {who: best[who] for who in ordered(best)}


def times_as_fast(row: BenchRow, other: BenchRow) -> float:
    """How many times as fast `row` is as `other`: as measured in the same rounds where they were, else from medians.

    Every figure and the page's cards ask here, so that they show one number.
    """
    if other.stage in row.against:
        return row.against[other.stage]
    if row.stage in other.against:
        return 1 / other.against[row.stage]
    return (other.seconds or 0.0) / (row.seconds or 1.0)


def claim(results: Results, said: Callable[[], str], subject: str, *rests_on: Collection[Any]) -> str:
    """The headline of a figure that compares with a library or with the machine's peak: what is `said`; but only the
    `subject` where something spoilt the run, or nothing of what a headline `rests_on` was steady enough for one."""
    return said() if all(rests_on) and not spoilt(results) else subject


def footer(results: Results, *, shown: Sequence[BenchRow] = (), kind: str = "") -> str:
    """The small print of a figure: machine, threads, day; whether the run was quick, spoilt or interrupted; a note on
    the emulator.

    shown: the rows of the figure; if some are emulated, the note says so. kind: the kind of rows that the figure is
    about; if rows of this kind were emulated and are not shown, the note says that.
    """
    facts = results.environment
    threads = facts.get("threads") or (kind == "ladder" and facts.get("ladder_threads"))
    parts = [describe(facts)]
    parts += [plural(threads, "thread")] if threads else []
    parts += ["quick run"] if results.quick else []
    parts += ["the machine was not idle"] if facts and busy(facts) else []
    parts += [f"with {', '.join(facts['slowing_variables'])}"] if facts and slowed(facts) else []
    parts += [] if results.complete else ["interrupted"]
    text = " · ".join(parts)
    if any(row.emulated for row in shown):
        return f"{text}\nemulated: CUDA kernels on the CPU, which says nothing about a GPU"
    if kind and any(row.kind == kind and row.emulated for row in results.rows):
        return f"{text}\nstage 4 is left out: it was emulated on the CPU"
    return text
