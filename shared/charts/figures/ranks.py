"""How training scales over ranks: measured on one machine, and by a model up to 1,024; batch against all-reduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.charts.drawing.axes import Label, label_column, log_axis
from shared.charts.drawing.colours import BLUE, GREEN, INK, ORANGE, PINK, QUIET, RULE
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import three_digits
from shared.numbers import plural

COLOURS = (BLUE, ORANGE, GREEN, PINK)


def draw(results: Mapping[str, Any], curves: Sequence[Any], footer: str) -> list[Chart]:
    """Both charts; none where only one rank was measured. curves: of groundup.scaling"""
    return [efficiencies(results, curves, footer), steps(results, footer)] if curves else []


def efficiencies(results: Mapping[str, Any], curves: Sequence[Any], footer: str) -> Chart:
    """Efficiency over the number of ranks, a line for each network, a panel for a small and a large batch."""
    chosen = [min(each.batch for each in curves), max(each.batch for each in curves)]
    first, last = (next(each for each in curves if each.batch == batch) for batch in chosen)
    small = "gains nothing by ranks" if first.best == 1 else f"is fastest on {first.best:,} ranks"
    large = "nothing" if last.best == 1 else f"it is fastest on {last.best:,}"
    title = f"At batch {first.batch}, {first.network} {small}; at {last.batch:,}, {large}"
    with house_style():
        figure = new_figure(title, f"model with this machine's constants; {footer}", height=4.4)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, batch in zip(panels, chosen, strict=True):
            shown = [each for each in curves if each.batch == batch]
            most = max(ranks for ranks, _ in shown[0].points)
            log_axis(axes, "x", 1, most, text=lambda value: f"{value:,.0f}", ticks=_powers_of_4(most))
            axes.set_ylim(0, 1.05)
            for curve, colour in zip(shown, COLOURS, strict=False):
                axes.plot(*zip(*curve.points, strict=True), color=colour)
                axes.plot(curve.best, curve.at(curve.best), "o", color=colour, clip_on=False)
            axes.set_title(f"batch {batch:,} (dots: fastest)", fontsize=9, color=QUIET)
            axes.set_xlabel("ranks")
        panels[0].set_ylabel("efficiency")
        ends = [each for each in curves if each.batch == chosen[1]]
        label_column(
            panels[1],
            [
                Label(float(each.points[-1][0]), each.points[-1][1], each.network, colour)
                for each, colour in zip(ends, COLOURS, strict=False)
            ],
        )
    alt = "; ".join(f"{each.network} at batch {each.batch:,}: best on {plural(each.best, 'rank')}" for each in curves)
    caption = (
        "Time of a step on one rank, divided by that on so many ranks and by their number. A dot: the number of ranks "
        "beyond which a step becomes no shorter. A rank has a core, and its links the latency and bandwidth that two "
        "ranks of this machine have."
    )
    return Chart("ranks-efficiency", figure, title, alt, caption)


def steps(results: Mapping[str, Any], footer: str) -> Chart:
    """Seconds of the rows of a step over their number, beside those of the all-reduce of two ranks."""
    machine, networks = results["machine"], results["networks"]
    crossings = {
        each["name"]: (machine["latency"] + 4 * each["parameters"] * machine["byte"]) / each["row"]
        for each in networks
        if each["row"]
    }
    dearest = max(crossings, key=lambda name: crossings[name])
    title = f"An all-reduce of {dearest} takes as long as {crossings[dearest]:,.0f} of its rows"
    rows = [2**i for i in range(11)]
    with house_style():
        figure = new_figure(title, footer, height=4.4)
        axes = figure.subplots()
        milliseconds = []
        for each, colour in zip(networks, COLOURS, strict=False):
            line = [1e3 * each["row"] * count for count in rows]
            sent = 1e3 * (machine["latency"] + 4 * each["parameters"] * machine["byte"])
            axes.plot(rows, line, color=colour)
            axes.axhline(sent, color=colour, linestyle="--", linewidth=1)
            milliseconds += [*line, sent]
        low, high = min(each for each in milliseconds if each > 0) / 1.5, 1.5 * max(milliseconds)
        log_axis(axes, "x", 1, rows[-1], text=lambda value: f"{value:,.0f}", ticks=_powers_of_4(rows[-1]))
        log_axis(axes, "y", low, high)
        axes.grid(color=RULE, linewidth=0.5)
        axes.set(xlabel="rows of a rank in a step", ylabel="milliseconds")
        labels = [
            Label(rows[-1], 1e3 * each["row"] * rows[-1], each["name"], colour)
            for each, colour in zip(networks, COLOURS, strict=False)
            if each["row"]
        ]
        label_column(axes, labels)
        axes.plot([], [], color=INK, label="forward and backward")
        axes.plot([], [], color=INK, linestyle="--", label="all-reduce of two ranks")
        axes.legend(loc="upper left", frameon=False)
    alt = "; ".join(f"{name}: as long as {three_digits(count)} rows" for name, count in crossings.items())
    caption = (
        "Solid: the time of forward and backward pass. Dashed: that of the all-reduce of the gradients, which does not "
        "depend on the rows. Left of where they meet, a rank waits longer than it computes."
    )
    return Chart("ranks-all-reduce", figure, title, alt, caption)


def _powers_of_4(most: int) -> list[float]:
    """1, 4, 16, … up to `most`."""
    return [4.0**i for i in range((most.bit_length() + 1) // 2)]
