"""The network's products and its whole training step beside the libraries.

These times lie within one order of magnitude, so the figures have bars, on linear axes that start at zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shared.bench.measuring.rows import LIBRARIES, BenchRow
from shared.bench.records.document import Results
from shared.bench.records.trust import steady
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import beside, heading, rows_axis
from shared.charts.drawing.colours import INK
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import capital, duration, listed, share, up_to

SHOWN_NOISE = 0.5
"""The largest noise, as a share, that is drawn; a larger one is written. After two passes it may be any number."""


class Bar(NamedTuple):
    """One contender's time as a multiple of the reference's, and how far another run may find it, as a share."""

    row: BenchRow
    value: float
    noise: float | None


def products(results: Results, *, emulated: bool = False) -> Chart | None:
    """Time of every product on each contender as a multiple of NumPy's: shorter is faster.

    None where no product was measured beside NumPy. Nothing emulated is drawn, whatever `emulated` says.
    """
    del emulated
    mine = [row for row in who.of_kind(results, "product") if row.stage != "numpy" and row.ratio]
    groups = {
        _product(group[0]): [Bar(row, row.ratio or 0.0, row.ratio_noise) for row in group] for group in _by_name(mine)
    }
    if not groups:
        return None
    sure = _sure(groups)
    title = who.claim(results, lambda: _headline(sure, "NumPy", "products"), "Every product beside NumPy", sure)
    figure = _grouped(results, title, groups, "time, NumPy's a @ b = 1", "product")
    return Chart(
        "products",
        figure,
        title,
        f"Time of each product as a multiple of NumPy's a @ b. {_listed(groups)}.",
        "Each bar is the time of one contender divided by NumPy's in the same rounds; shorter is faster, and the line "
        "is NumPy. The thin lines at the bars' ends say how far another run may find the ratio (99 %).",
    )


def steps(results: Results, *, emulated: bool = False) -> Chart | None:
    """Time of a float32 training step on each contender as a multiple of stage 2's: shorter is faster.

    None where no step was measured on stage 2 and on another. Nothing emulated is drawn, whatever `emulated` says.
    """
    del emulated
    mine = [row for row in who.of_kind(results, "step") if row.dtype == "float32"]
    groups: dict[str, list[Bar]] = {}
    for group in _by_name(mine):
        reference = next((row.seconds for row in group if row.stage == who.NUMPY_STAGE), None)
        if reference and len(group) > 1:
            groups[f"{group[0].name}, float32"] = [_against(row, reference) for row in group]
    if not groups:
        return None
    sure = _sure(groups)
    title = who.claim(results, lambda: _headline(sure, "NumPy", "steps"), "Every training step beside NumPy", sure)
    figure = _grouped(results, title, groups, "time of one step, stage 2 (NumPy) = 1", "step")
    return Chart(
        "steps",
        figure,
        title,
        f"Time of one training step as a multiple of stage 2's. {_listed(groups)}.",
        "Each bar is the time of one training step, forward to update, divided by stage 2's; shorter is faster. Within "
        "a stage the bars are its ladder of steps. The thin lines at the bars' ends say how far another run may find "
        "the ratio (99 %).",
    )


def _against(row: BenchRow, reference: float) -> Bar:
    """The step as a multiple of stage 2's: measured in the same rounds if possible, else from both medians."""
    factor = row.against.get(who.NUMPY_STAGE)
    return Bar(row, 1 / factor if factor else (row.seconds or 0.0) / reference, row.against_noise.get(who.NUMPY_STAGE))


def _by_name(rows: Sequence[BenchRow]) -> list[list[BenchRow]]:
    known = sorted(rows, key=lambda row: who.ORDER.index(row.stage))
    return [[row for row in known if row.name == name] for name in dict.fromkeys(row.name for row in rows)]


def _grouped(results: Results, title: str, groups: dict[str, list[Bar]], label: str, kind: str) -> Figure:
    """Horizontal bars in groups, each group under its name, with a line at 1."""
    lines = sum(map(len, groups.values())) + 1.35 * len(groups)
    most = max(1.0, *(bar.value for bars in groups.values() for bar in bars))
    with house_style():
        figure = new_figure(title, who.footer(results, kind=kind), height=1.15 + 0.225 * lines)
        axes = figure.subplots()
        place, names = -1.35, []
        for name, bars in groups.items():
            place += 1.35
            heading(axes, place, name)
            threads = max(bar.row.threads for bar in bars)
            for bar in bars:
                place += 1.0
                _bar(axes, place, bar)
                alone = bar.row.threads < threads and bar.row.stage != who.GPU_STAGE
                fewer = ", 1 thread" if alone else ""
                names.append((place, bar.row.contender + fewer))
        axes.axvline(1, color=INK, linewidth=1.2, linestyle=(0, (3, 2)), zorder=3)
        rows_axis(axes, names, place)
        noisy = any((bar.noise or 0.0) > SHOWN_NOISE for bars in groups.values() for bar in bars)
        axes.set_xlim(0, most * (1.9 if noisy else 1.5))
        axes.set_xlabel(f"{label}: shorter is faster")
    return figure


def _bar(axes: Axes, place: float, bar: Bar) -> None:
    stage = bar.row.stage
    library = stage in LIBRARIES
    axes.barh(
        place, bar.value, height=0.76, color=who.colour(stage), hatch="//" if library else None,
        edgecolor=INK, linewidth=0.4, zorder=2,
    )  # fmt: skip
    text = f"{bar.value:.2f}  ({duration(bar.row.seconds or 0.0)})"
    end, noise = bar.value, bar.noise or 0.0
    if noise > SHOWN_NOISE:
        text += f" ± over {share(SHOWN_NOISE)}"
    elif noise:
        end = bar.value * (1 + noise)
        axes.plot([bar.value / (1 + noise), end], [place] * 2, color=INK, linewidth=1.6, zorder=4)
    beside(axes, end, place, text)


def _sure(groups: dict[str, list[Bar]]) -> dict[str, list[Bar]]:
    """The bars that a headline may rest on, in their groups."""
    found = {name: [bar for bar in group if steady(bar.row)] for name, group in groups.items()}
    return {name: group for name, group in found.items() if group}


def _headline(groups: dict[str, list[Bar]], reference: str, what: str) -> str:
    bars = [
        (bar, name)
        for name, group in groups.items()
        for bar in group
        if bar.row.stage not in (*LIBRARIES, who.NUMPY_STAGE)
    ]
    bars = bars or [(bar, name) for name, group in groups.items() for bar in group]
    best, name = min(bars, key=lambda found: found[0].value)
    if best.value > 0.98:
        return f"{capital(what)} beside {reference}: {best.row.contender} takes {best.value:.2f} of its time"
    faster = f"{up_to(1 / best.value)} as {reference}"
    return f"{capital(who.name(best.row.stage))} is {faster} ({name.partition(':')[0]})"


def _listed(groups: dict[str, list[Bar]]) -> str:
    return "; ".join(
        f"{name}: "
        + listed([f"{bar.row.contender} {bar.value:.2f} ({duration(bar.row.seconds or 0.0)})" for bar in bars])
        for name, bars in groups.items()
    )


def _product(row: BenchRow) -> str:
    m, k, n = row.shape
    return f"{row.name.split()[0]}: {m} by {k} times {k} by {n}"
