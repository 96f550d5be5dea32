"""What a larger matrix does to each rung: a panel for each stage, a line for each of its rungs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from shared.bench.measuring.rows import BenchRow
from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import Label, label_column, log_axis, size_axis
from shared.charts.drawing.colours import BAND
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import as_fast
from shared.charts.figures.sizes import Speeds, end_of, of_main_dtype, range_of

_RUNG_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
_RUNG_MARKERS = "osD^vPX*<"


def ladder_sizes(results: Results, *, emulated: bool = False) -> Chart | None:
    """A panel for each stage, a line for each of its rungs, with the library that they were measured beside as a broad
    band. None where no rung was measured at two sizes. Nothing emulated is drawn, whatever `emulated` says."""
    del emulated
    rows = [row for row in who.of_kind(results, "ladder") if row.gflops]
    panels = {
        stage: of_main_dtype([row for row in rows if row.stage == stage])
        for stage in who.ordered(row.stage for row in rows)
    }
    panels = {stage: mine for stage, mine in panels.items() if len({row.shape[0] for row in mine}) > 1}
    if not panels:
        return None
    steepest = max(
        ((_growth(mine, rung), stage, rung) for stage, mine in panels.items() for rung in _rungs(mine)),
        key=lambda candidate: candidate[0][0],
    )
    (factor, small, large), stage, rung = steepest
    title = f"Larger matrices: {rung} ({who.name(stage)}) is {as_fast(factor)} at {large:,} as at {small:,}"
    across = min(2, len(panels))
    down = math.ceil(len(panels) / across)
    speeds = [row.gflops or 0.0 for mine in panels.values() for row in mine]
    speeds += [speed for mine in panels.values() for speed in _reference(mine).values()]
    with house_style():
        figure = new_figure(
            title, who.footer(results, kind="ladder"), height=1.0 + (2.6 if across == 1 else 2.75) * down
        )
        columns: list[tuple[Axes, list[Label]]] = []
        grid_of = figure.subplots(down, across, sharey=True, squeeze=False)
        for axes in grid_of.flat[len(panels) :]:
            axes.set_visible(False)
        for axes, (stage, mine) in zip(grid_of.flat, panels.items(), strict=False):
            columns.append((axes, _panel(axes, stage, mine, speeds)))
        figure.supylabel("GFLOP/s, log scale", fontsize=9)
        for axes in grid_of.flat[max(0, len(panels) - across) : len(panels)]:
            axes.set_xlabel("rows = columns")
        for place, (axes, labels) in enumerate(columns):
            label_column(axes, labels, gap=12, size=7.5 if len(labels) > 8 else 8.0, settled=place > 0)
    said = "; ".join(
        f"{who.title(stage)}: " + ", ".join(f"{rung} {range_of(_line(mine, rung))}" for rung in _rungs(mine))
        for stage, mine in panels.items()
    )
    return Chart(
        "ladder_sizes",
        figure,
        title,
        f"GFLOP/s of every rung against the matrix size. {said}.",
        "One panel for each stage, one line for each rung, the same vertical axis in all. The broad grey line is the "
        "library that was measured in the same rounds. Where a line falls, its matrices no longer fit into a cache.",
    )


def _panel(axes: Axes, stage: str, rows: Sequence[BenchRow], speeds: Sequence[float]) -> list[Label]:
    """Draw the rungs of one stage, and the library beside them: the labels of their lines. speeds: of all panels"""
    labels = []
    reference = _reference(rows)
    axes.plot(list(reference), list(reference.values()), color=BAND, linewidth=6, zorder=1, solid_capstyle="round")
    if reference:
        labels.append(end_of(reference, "cuBLAS" if rows[0].reference.startswith("cuBLAS") else "NumPy a @ b"))
    for place, rung in enumerate(_rungs(rows)):
        line = _line(rows, rung)
        axes.plot(
            list(line), list(line.values()), color=who.colour(stage), linewidth=1.4,
            marker=_RUNG_MARKERS[place % len(_RUNG_MARKERS)], markersize=5,
            linestyle=_RUNG_DASHES[place % len(_RUNG_DASHES)],
        )  # fmt: skip
        labels.append(end_of(line, rung))
    axes.set_title(f"{who.title(stage)}, {rows[0].dtype}")
    size_axis(axes, [row.shape[0] for row in rows], most=3)
    axes.tick_params(axis="x", labelsize=8.5)
    log_axis(axes, "y", min(speeds) / 2, max(speeds) * 2, most=6)
    axes.tick_params(labelleft=True)
    return labels


def _line(rows: Sequence[BenchRow], rung: str) -> Speeds:
    """The speed of a rung at each size."""
    return {row.shape[0]: row.gflops or 0.0 for row in rows if row.name == rung}


def _reference(rows: Sequence[BenchRow]) -> Speeds:
    return {row.shape[0]: row.gflops * row.ratio for row in rows if row.gflops and row.ratio}


def _growth(rows: Sequence[BenchRow], rung: str) -> tuple[float, int, int]:
    """(factor, smallest size, largest size) between the ends of a rung's line, whichever way it goes."""
    line = _line(rows, rung)
    small, large = min(line), max(line)
    return line[large] / line[small], small, large


def _rungs(rows: Sequence[BenchRow]) -> list[str]:
    return list(dict.fromkeys(row.name for row in rows))
