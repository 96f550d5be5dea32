"""Times of what surrounds a computation: importing, compiling, copying to a device and back.

They go from a millisecond to seconds: the axis is logarithmic, so these are points and not bars.
"""

from __future__ import annotations

from shared.bench.measuring.rows import BenchRow
from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import column, guide, heading, log_axis, rows_axis
from shared.charts.drawing.colours import QUIET
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import capital, duration, listed, times

ORDER = ("import", "compile", "copy in", "compute", "copy out")
ONCE = ("import", "compile")
"""Phases that happen once in a program; the others happen once for every product."""


def phases(results: Results, *, emulated: bool = False) -> Chart | None:
    """One row for each phase of each contender, grouped by contender, with its time in words. None where nothing was
    measured. emulated: show the emulator's too, hollow and named."""
    groups = _groups(who.of_kind(results, "phase", emulated=emulated))
    own = [rows for rows in groups.values() if not rows[0].emulated]
    if not own:
        return None
    shown = [row for rows in groups.values() for row in rows]
    title = _headline(own)
    with house_style():
        lines = len(shown) + 1.1 * len(groups)
        figure = new_figure(title, who.footer(results, shown=shown, kind="phase"), height=1.2 + 0.205 * lines)
        axes = figure.subplots()
        place, names = -1.1, []
        for stage, rows in groups.items():
            place += 1.1
            heading(axes, place, who.title(stage, emulated=rows[0].emulated))
            for row in rows:
                place += 1.0
                guide(axes, place)
                axes.plot(row.seconds or 0.0, place, **who.dot(stage, hollow=row.emulated), zorder=3)
                column(axes, place, 48, duration(row.seconds or 0.0))
                names.append((place, row.part))
        seconds = [row.seconds or 0.0 for row in shown]
        rows_axis(axes, names, place)
        log_axis(axes, "x", min(seconds) / 2, max(seconds) * 2, text=duration, most=6)
        axes.set_xlabel("time, log scale")
        axes.set_title(shown[0].name, fontsize=9, color=QUIET)
    said = "; ".join(
        f"{who.title(stage, emulated=rows[0].emulated)}: "
        + listed([f"{row.part} {duration(row.seconds or 0.0)}" for row in rows])
        for stage, rows in groups.items()
    )
    return Chart(
        "phases",
        figure,
        title,
        f"Phases of {shown[0].name}. {said}.",
        "Importing and compiling are paid once for a whole program, compiling only until its result is cached; the "
        "copies and the computation once for every product. A stage that computes in main memory copies nothing.",
    )


def _groups(rows: list[BenchRow]) -> dict[str, list[BenchRow]]:
    """Contender -> its phases in order, of the product that most contenders have with most of their phases; of several
    the largest."""
    products: dict[str, list[BenchRow]] = {}
    for row in rows:
        products.setdefault(row.name, []).append(row)

    def told(name: str) -> tuple[int, int, int]:
        mine = products[name]
        return len({row.stage for row in mine}), len(mine), max(max(row.shape, default=0) for row in mine)

    best = max(products, key=told, default=None)
    groups = {
        stage: [row for row in rows if row.stage == stage and row.name == best]
        for stage in who.ordered(row.stage for row in rows)
    }
    rank = {part: place for place, part in enumerate(ORDER)}
    return {stage: sorted(mine, key=lambda row: rank.get(row.part, 9)) for stage, mine in groups.items() if mine}


def _headline(groups: list[list[BenchRow]]) -> str:
    """The copies of a stage that computes on a device; without one, the longest import or compilation."""
    for rows in groups:
        parts = {row.part: row.seconds or 0.0 for row in rows}
        if {"copy in", "compute", "copy out"} <= parts.keys():
            copies = parts["copy in"] + parts["copy out"]
            longer = times(copies / parts["compute"])
            return f"{capital(who.name(rows[0].stage))}'s copies take {longer} as long as its product"
    once = [row for rows in groups for row in rows if row.part in ONCE]
    if once:
        row = max(once, key=lambda row: row.seconds or 0.0)
        verb = {"import": "importing", "compile": "compiling"}[row.part]
        return f"Before the first product: {duration(row.seconds or 0.0)} of {verb} ({who.name(row.stage)})"
    rows = groups[0]
    return f"{capital(who.name(rows[0].stage))} computes the product in {duration(rows[0].seconds or 0.0)}"
