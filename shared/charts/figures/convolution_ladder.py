"""The convolution ladder of each stage: how fast each rung computes convolutions of the known networks.

A figure for each floor. A group for each convolution, a point for each rung, and PyTorch below them. The speeds spread
over two orders of magnitude, so the axis is logarithmic, where the length of a bar would mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from shared.bench.measuring.rows import LIBRARIES, BenchRow
from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import beside, guide, heading, log_axis, rows_axis
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import listed, share, three_digits, up_to
from shared.contract import STAGES

SHOWN = 4
"""Convolutions in a figure: those with the most work, and the one with the largest window."""


def convolution_ladder_1(results: Results, *, emulated: bool = False) -> Chart | None:
    """Stage 1's rungs. None where no convolution was measured on it."""
    return _ladder(results, STAGES[0])


def convolution_ladder_2(results: Results, *, emulated: bool = False) -> Chart | None:
    """Stage 2's rungs. None where no convolution was measured on it."""
    return _ladder(results, STAGES[1])


def convolution_ladder_3(results: Results, *, emulated: bool = False) -> Chart | None:
    """Stage 3's rungs. None where no convolution was measured on it."""
    return _ladder(results, STAGES[2])


def _ladder(results: Results, stage: str) -> Chart | None:
    rows = [row for row in who.of_kind(results, "convolution") if row.part == "forward" and row.gflops]
    dtype = "float64" if stage == STAGES[0] else "float32"
    mine = [row for row in rows if row.stage == stage and row.dtype == dtype]
    names = _chosen(mine)
    if not names:
        return None
    groups = {
        name: [row for row in mine if row.name == name]
        + [row for row in rows if row.name == name and row.dtype == dtype and row.stage == "pytorch"]
        for name in names
    }
    title = _headline(stage, mine)
    lines = sum(map(len, groups.values())) + 1.35 * len(groups)
    with house_style():
        figure = new_figure(title, who.footer(results), height=1.15 + 0.225 * lines)
        axes = figure.subplots()
        speeds = [row.gflops or 0.0 for group in groups.values() for row in group]
        low, high = min(speeds) / 2, max(speeds) * 14
        place, ticks = -1.35, []
        for name, group in groups.items():
            place += 1.35
            heading(axes, place, f"{name}, {dtype}")
            for row in group:
                place += 1.0
                _point(axes, place, row)
                ticks.append((place, row.variant or LIBRARIES.get(row.stage, row.contender)))
        rows_axis(axes, ticks, place)
        log_axis(axes, "x", low, high)
        axes.set_xlabel("GFLOP/s (share of the machine's peak), log scale")
    return Chart(
        f"convolution_ladder_{stage[5]}",
        figure,
        title,
        f"GFLOP/s of each rung of {who.name(stage)}'s convolution ladder. "
        + "; ".join(f"{name}: {listed([_told(row) for row in group])}" for name, group in groups.items())
        + ".",
        "Each point is one rung, the slowest first, and below them PyTorch where it was measured. Behind the number is "
        "the share of the machine's peak. The operations counted are the definition's: Winograd needs fewer, so that "
        "its share may exceed 100 %.",
    )


def _point(axes: Axes, place: float, row: BenchRow) -> None:
    guide(axes, place)
    speed = row.gflops or 0.0
    axes.plot(speed, place, **who.dot(row.stage))
    text = three_digits(speed)
    if row.share_of_peak:
        text += f" ({share(row.share_of_peak)})"
    beside(axes, speed, place, text, distance=8.0)


def _chosen(rows: Sequence[BenchRow]) -> list[str]:
    """The names of the convolutions to show, in the order they were measured in."""
    names = list(dict.fromkeys(row.name for row in rows))
    work = {row.name: row.flops for row in rows}
    window = {row.name: row.shape[5] * row.shape[6] for row in rows}
    most = sorted(names, key=lambda name: -work[name])[: SHOWN - 1]
    if names:
        most.append(max(names, key=lambda name: (window[name], work[name])))
    return [name for name in names if name in most]


def _headline(stage: str, rows: Sequence[BenchRow]) -> str:
    """How much the best rung is above the first, where both were measured."""
    factors = []
    for name in dict.fromkeys(row.name for row in rows):
        mine = [row for row in rows if row.name == name]
        best = max(mine, key=lambda row: row.gflops or 0.0)
        factors.append(((best.gflops or 0.0) / (mine[0].gflops or 1.0), best.variant, mine[0].variant, name))
    factor, best_rung, first, name = max(factors)
    return (
        f"{who.name(stage)[:1].upper()}{who.name(stage)[1:]}: {best_rung} is {up_to(factor)} as {first} "
        f"({name.partition(',')[0]})"
    )


def _told(row: BenchRow) -> str:
    return f"{row.variant or row.contender} {three_digits(row.gflops or 0.0)}"
