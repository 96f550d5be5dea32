"""The time of an epoch on each stage: a staircase on a logarithmic axis, with the factor between neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from shared.bench.measuring.rows import LIBRARIES, BenchRow
from shared.bench.records.document import Results
from shared.bench.records.trust import steady
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import log_axis
from shared.charts.drawing.colours import INK, PAPER, QUIET, readable
from shared.charts.drawing.style import Chart, house_style, new_figure, patch
from shared.charts.drawing.words import as_fast, capital, duration, listed

HALF = 0.4
"""Half the width of a tread, where neighbours are 1 apart."""

LONG = 10.0
"""The factor from which on an arrow is so long that its words stand beside its middle."""


def staircase(results: Results, *, emulated: bool = False) -> Chart | None:
    """One tread for each stage at the time of its epoch, fewer seconds further down, with the factor beside each riser.

    The epochs are those of one case, the one that most stages trained. emulated: show the emulator's too, hatched and
    named, with no factor and no part in the headline. None where fewer than two stages trained the same.
    """
    rows = _case([row for row in who.of_kind(results, "epoch", emulated=emulated) if row.stage not in LIBRARIES])
    own = {stage: row for stage, row in rows.items() if not row.emulated}
    if len(rows) < 2 or not own:
        return None
    seconds = {stage: row.seconds or 0.0 for stage, row in rows.items()}
    title = _headline(own)
    some = next(iter(rows.values()))
    with house_style():
        figure = new_figure(title, who.footer(results, shown=list(rows.values()), kind="epoch"), height=4.1)
        axes = figure.subplots()
        low, high = min(seconds.values()) / 3.5, max(seconds.values()) * 2.6
        log_axis(axes, "y", low, high, text=duration, most=7)
        stages = list(rows)
        for place, stage in enumerate(stages):
            _tread(axes, place, rows[stage])
            if place and not rows[stage].emulated:
                before = [other for other in stages[:place] if other in own]
                if before:
                    _riser(axes, place, rows[before[-1]], rows[stage])
        axes.set_xlim(-0.6, len(stages) - 0.4)
        axes.set_xticks(range(len(stages)), [_below(rows[stage]) for stage in stages])
        axes.tick_params(axis="x", length=0)
        axes.grid(axis="x", visible=False)
        axes.set_ylabel("time of one epoch, log scale")
        axes.set_title(_trained(some), fontsize=9, color=QUIET)
    said = listed([f"{who.title(stage, emulated=rows[stage].emulated)} {duration(seconds[stage])}" for stage in rows])
    return Chart(
        "time_per_stage",
        figure,
        title,
        f"Time of one epoch of {_trained(some)}: {said}.",
        "Each tread is the median time of one epoch of the same training, evaluation left out; the axis is "
        "logarithmic, so equal heights are equal factors. Each step says how many times as fast it is as the last.",
    )


def _case(rows: Sequence[BenchRow]) -> dict[str, BenchRow]:
    """Stage -> row, of the training that most stages took part in; of several the longer one, then the later dtype."""
    groups: dict[tuple[str, str], list[BenchRow]] = {}
    for row in rows:
        groups.setdefault((row.name, row.dtype), []).append(row)
    best = max(groups.values(), key=lambda group: (len({row.stage for row in group}), group[0].samples), default=[])
    return who.fastest(best)


def _headline(rows: Mapping[str, BenchRow]) -> str:
    first = next(iter(rows))
    best = min(rows, key=lambda stage: rows[stage].seconds or 0.0)
    if best == first or not (steady(rows[first]) and steady(rows[best])):
        return f"{capital(who.name(best))} trains an epoch in {duration(rows[best].seconds or 0.0)}"
    factor = who.times_as_fast(rows[best], rows[first])
    return f"{capital(who.name(best))} trains {as_fast(factor)} as {who.name(first)}"


def _trained(row: BenchRow) -> str:
    return f"{row.name}, {row.dtype}"


def _tread(axes: Axes, place: int, row: BenchRow) -> None:
    # A band as high as a line is wide, on whatever scale: it can be hatched, which a line cannot.
    middle = row.seconds or 0.0
    low, high = axes.get_ylim()
    half = (high / low) ** 0.009
    colour = who.colour(row.stage)
    axes.bar(
        place,
        middle * half - middle / half,
        bottom=middle / half,
        width=2 * HALF,
        color=PAPER if row.emulated else colour,
        edgecolor=readable(colour),
        hatch="////" if row.emulated else None,
        linewidth=0.8,
        zorder=3,
    )
    axes.annotate(
        duration(middle), (place, middle * half), (0, 5), textcoords="offset points", ha="center", fontsize=10,
        fontweight="bold", bbox=patch(), zorder=4,
    )  # fmt: skip


def _riser(axes: Axes, place: int, upper: BenchRow, row: BenchRow) -> None:
    at, before, here = place - 0.5, upper.seconds or 0.0, row.seconds or 0.0
    axes.annotate(
        "", (at, here), (at, before), zorder=2,
        arrowprops={"arrowstyle": "-|>", "color": QUIET, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip
    faster = who.times_as_fast(row, upper)
    text = as_fast(faster).replace(" as ", "\nas ")
    # Under the higher tread, where no other one is: beside the middle of a long arrow, or the top of a short one.
    top, side = (before, -1) if faster >= 1 else (here, 1)
    is_long = max(faster, 1 / faster) >= LONG
    anchor, drop = ((at, math.sqrt(before * here)), 0) if is_long else ((at, top), -8)
    axes.annotate(
        text, anchor, (5 * side, drop), textcoords="offset points", ha="right" if side < 0 else "left",
        va="center" if is_long else "top", fontsize=9, color=INK, bbox=patch(), zorder=4,
    )  # fmt: skip


def _below(row: BenchRow) -> str:
    number, _, title = who.title(row.stage).partition(": ")
    if row.emulated:
        return f"{number}:\n{title},\nemulated"
    return f"{number}:\n{title}"
