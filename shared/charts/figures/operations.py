"""Every operation, forward and backward, on every stage: its time as a multiple of NumPy's, one row each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.lines import Line2D

from shared.bench.measuring.rows import BenchRow
from shared.bench.records.document import Results
from shared.bench.records.trust import steady
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import guide, log_axis, rows_axis
from shared.charts.drawing.colours import INK, RULE
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import capital, times, two_digits

Values = Mapping[str, float]
"""Contender -> time as a multiple of stage 2's."""


def operations(results: Results, *, emulated: bool = False) -> Chart | None:
    """One row for each part of each operation, a point for each contender, on a log axis with NumPy at 1.

    Every contender stands beside stage 2 in its own dtype: float32, or float64 where it has nothing else. Of several
    shapes the one that most contenders computed. None where no operation was measured on stage 2 and another.
    Nothing emulated is drawn, whatever `emulated` says.
    """
    del emulated
    lines = _lines(who.of_kind(results, "op"))
    if not lines:
        return None
    stages = who.ordered(stage for values in lines.values() for stage in values)
    sure = _lines([row for row in who.of_kind(results, "op") if steady(row)])
    title = who.claim(results, lambda: _headline(sure, stages), "Every operation beside NumPy", sure)
    ratios = [value for values in lines.values() for value in values.values()]
    with house_style():
        figure = new_figure(title, who.footer(results, kind="op"), height=1.65 + 0.2 * len(lines))
        axes = figure.subplots()
        names = []
        for place, ((operation, part), values) in enumerate(lines.items()):
            guide(axes, place)
            axes.plot(
                [min(*values.values(), 1.0), max(*values.values(), 1.0)],
                [place] * 2,
                color=RULE,
                linewidth=3,
                zorder=1,
            )
            for stage, value in values.items():
                axes.plot(value, place, **who.dot(stage, size=6.5), zorder=3)
            names.append((float(place), _name(operation, part)))
        axes.axvline(1, color=INK, linewidth=1.2, zorder=2)
        rows_axis(axes, names, len(lines) - 1)
        log_axis(axes, "x", min(1.0, *ratios) / 1.8, max(1.0, *ratios) * 1.8, most=6)
        axes.set_xlabel("time as a multiple of NumPy's (stage 2), log scale")
        handles = [Line2D([], [], **who.dot(stage, size=6.5), label=who.name(stage)) for stage in stages]
        axes.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(-0.2, 1.0),
            ncols=4, handletextpad=0.2, columnspacing=1.2,
        )  # fmt: skip
    said = "; ".join(
        f"{operation} {part}: " + ", ".join(f"{who.name(stage)} {two_digits(value)}" for stage, value in values.items())
        for (operation, part), values in lines.items()
    )
    return Chart(
        "operations",
        figure,
        title,
        f"Time of each operation as a multiple of NumPy's. {said}.",
        "Each row is one operation in one direction; each mark is one contender's time divided by stage 2's for the "
        "same numbers. Left of the line is faster than NumPy, right of it slower.",
    )


def _lines(rows: Sequence[BenchRow]) -> dict[tuple[str, str], dict[str, float]]:
    """(operation, part) -> multiples of stage 2's time, in the order in which they were measured."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    shape = _shape(rows)
    at = [row for row in rows if tuple(row.shape[:2]) == shape]
    numpy = {(row.name, row.part, row.dtype): row.seconds for row in at if row.stage == who.NUMPY_STAGE}
    for row in sorted(at, key=lambda row: row.dtype, reverse=True):  # float32 last, so that it stays
        reference = numpy.get((row.name, row.part, row.dtype)) or numpy.get((row.name, row.part, "float32"))
        if row.stage != who.NUMPY_STAGE and reference and row.seconds:
            found.setdefault((row.name, row.part), {})[row.stage] = row.seconds / reference
    order = dict.fromkeys((row.name, row.part) for row in at)
    return {key: {stage: found[key][stage] for stage in who.ordered(found[key])} for key in order if key in found}


def _shape(rows: Sequence[BenchRow]) -> tuple[int, ...]:
    """(rows, columns) on which most contenders were measured; of several the largest."""
    who_at: dict[tuple[int, ...], set[str]] = {}
    for row in rows:
        who_at.setdefault(tuple(row.shape[:2]), set()).add(row.stage)
    return max(who_at, key=lambda shape: (len(who_at[shape]), shape), default=())


def _headline(lines: Mapping[tuple[str, str], Values], stages: Sequence[str]) -> str:
    stage = who.C_STAGE if who.C_STAGE in stages else stages[-1]
    mine = [(values[stage], " ".join(key)) for key, values in lines.items() if stage in values]
    faster = sum(value < 1 for value, _ in mine)
    best, what = min(mine)
    who_is = capital(who.name(stage))
    if not faster:
        return f"{who_is} takes {times(median(value for value, _ in mine))} as long as NumPy in the median operation"
    most = f"{times(1 / best)} ({what.replace('_', ' ')})"
    return f"{who_is} beats NumPy in {faster} of {len(mine)} operations, by up to {most}"


def _name(operation: str, part: str) -> str:
    short = {
        "softmax_cross_entropy": "softmax loss",
        "sigmoid_cross_entropy": "sigmoid loss",
        "mean_squared_error": "squared error",
    }
    return f"{short.get(operation, operation.replace('_', ' '))} {part}"
