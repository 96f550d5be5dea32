"""Images per second against the batch: what it costs to ask for one prediction at a time."""

from __future__ import annotations

from collections.abc import Mapping

from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import Label, label_column, log_axis, size_axis
from shared.charts.drawing.colours import INK
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import capital, listed, many, times

Speeds = Mapping[int, float]
"""Batch -> images per second."""


def inference(results: Results, *, emulated: bool = False) -> Chart | None:
    """A line for each contender on log axes: at each batch its fastest way. None if nothing was measured.
    Nothing emulated is drawn, whatever `emulated` says."""
    del emulated
    rows = [row for row in who.of_kind(results, "inference") if row.samples_per_second]
    lines: dict[str, dict[int, float]] = {}
    for stage in who.ordered(row.stage for row in rows):
        mine = [row for row in rows if row.stage == stage]
        mine = [row for row in mine if row.dtype == "float32"] or mine
        for row in sorted(mine, key=lambda row: row.samples):
            line = lines.setdefault(stage, {})
            line[row.samples] = max(line.get(row.samples, 0.0), row.samples_per_second or 0.0)
    if not lines:
        return None
    title = _headline(lines)
    speeds = [speed for line in lines.values() for speed in line.values()]
    with house_style():
        figure = new_figure(title, who.footer(results, kind="inference"), height=4.2)
        axes = figure.subplots()
        for stage, line in lines.items():
            axes.plot(
                list(line), list(line.values()), color=who.colour(stage), linestyle=who.dashes(stage),
                linewidth=1.8, marker=who.marker(stage), markersize=6.5, markeredgecolor=INK, markeredgewidth=0.5,
            )  # fmt: skip
        size_axis(axes, [batch for line in lines.values() for batch in line], margin=1.4, most=6)
        log_axis(axes, "y", min(speeds) / 2, max(speeds) * 2, text=many, most=7)
        axes.set_xlabel("images in a batch, log scale")
        axes.set_ylabel("images per second, log scale")
        labels = [
            Label(max(line), line[max(line)], who.name(stage), who.colour(stage)) for stage, line in lines.items()
        ]
        label_column(axes, labels)
    said = listed([f"{who.title(stage)} {_ends(line)}" for stage, line in lines.items()])
    return Chart(
        "inference",
        figure,
        title,
        f"Images per second of {rows[0].name.partition(',')[0]} by batch size: {said}.",
        "Each mark is the median speed of classifying batches of one size. A line rises where a larger batch spreads "
        "the cost of a call over more images and reads the weights once for all of them.",
    )


def _headline(lines: Mapping[str, Speeds]) -> str:
    best = max(lines, key=lambda stage: max(lines[stage].values()))
    line = lines[best]
    batch = max(line, key=lambda size: line[size])
    title = f"{capital(who.name(best))} classifies {many(line[batch])} images a second at batch {batch:,}"
    one = line.get(1)
    return f"{title}, {times(line[batch] / one)} as many as at batch 1" if one and line[batch] > 1.2 * one else title


def _ends(line: Speeds) -> str:
    small, large = min(line), max(line)
    return f"{many(line[small])} at {small:,} to {many(line[large])} at {large:,}"
