"""The most memory that a training holds, above what its process held before. Bytes start at zero, so these are bars."""

from __future__ import annotations

from typing import Any

from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import beside, rows_axis
from shared.charts.drawing.colours import INK, QUIET
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import capital, listed, three_digits, times

MIB = 2**20


def memory(results: Results, *, emulated: bool = False) -> Chart | None:
    """A bar for each contender, of the case that most were measured on. emulated: show the emulator's too, hatched
    and named. None where nothing was measured."""
    rows = [
        row
        for row in results.rows
        if row.kind == "memory" and not row.part and row.memory and (emulated or not row.emulated)
    ]
    names = [row.name for row in rows]
    mine = {row.contender: row for row in rows if row.name == max(names, key=names.count)}
    if not mine:
        return None
    order = who.ordered(row.stage for row in mine.values())
    shown = sorted(mine.values(), key=lambda row: order.index(row.stage))
    sizes = {row.contender: (row.memory or 0) / MIB for row in shown}
    own = {row.contender: sizes[row.contender] for row in shown if not row.emulated}
    if not own:
        return None
    least, most = min(own, key=lambda name: own[name]), max(own, key=lambda name: own[name])
    labels = {row.contender: who.name(row.stage) + (f" {row.variant}" if row.variant else "") for row in shown}
    title = f"{capital(labels[least])} trains in {three_digits(own[least])} MiB"
    if most != least:
        title += f", {labels[most]} takes {times(own[most] / own[least])} as much"
    with house_style():
        figure = new_figure(title, who.footer(results, shown=shown, kind="memory"), height=1.3 + 0.36 * len(shown))
        axes = figure.subplots()
        for place, row in enumerate(shown):
            size = sizes[row.contender]
            colour = who.colour(row.stage)
            marks: dict[str, Any] = {"color": colour, "edgecolor": INK, "linewidth": 0.5}
            if row.emulated:
                marks = {"color": "none", "edgecolor": colour, "hatch": "////"}
            axes.barh(place, size, height=0.62, zorder=2, **marks)
            beside(axes, size, place, three_digits(size))
        text = [
            f"{labels[row.contender]}\nemulated" if row.emulated else f"{who.title(row.stage)} {row.variant}".rstrip()
            for row in shown
        ]
        rows_axis(axes, [(float(place), name) for place, name in enumerate(text)], len(shown) - 1)
        axes.set_xlim(0, 1.16 * max(sizes.values()))
        axes.set_xlabel("MiB more than before training")
        axes.set_title(shown[0].name, fontsize=9, color=QUIET)
    said = listed([f"{row.contender} {three_digits(sizes[row.contender])} MiB" for row in shown])
    return Chart(
        "memory",
        figure,
        title,
        f"The most memory held while training {shown[0].name}: {said}.",
        "Each bar is the highest that a process's memory rose, while it trained, above what it held before. On a GPU "
        "it is the device's memory.",
    )
