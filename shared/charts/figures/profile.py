"""A training step by its layers: how long each takes forward, backward and in the update, within the real step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from matplotlib.transforms import blended_transform_factory

from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import column, guide, rows_axis
from shared.charts.drawing.colours import DEEP_BLUE, GREEN, GREY, ORANGE, SKY, mixed
from shared.charts.drawing.style import WIDTH, Chart, house_style, new_figure
from shared.charts.drawing.words import NO_BREAK, capital, duration, plural, share
from shared.contract import STAGE_TITLES
from shared.machine.environment import describe
from shared.profile.operations import BACKWARD, BOTH, FORWARD, UPDATE
from shared.profile.step_profile import Profile, Timed

WAYS: dict[str, tuple[str, str | None, str]] = {
    FORWARD: (SKY, None, "forward"),
    BACKWARD: (DEEP_BLUE, None, "backward"),
    BOTH: (ORANGE, "//", "loss"),
    UPDATE: (GREEN, "xx", "update"),
    "between": (GREY, "..", "between the operations"),
}
"""Direction -> colour, hatch for print in greys, and its name."""


@dataclass
class _Line:
    """One row of the chart: the operations of some layers, or those of no layer."""

    layers: str
    name: str
    parts: list[tuple[str, float]] = field(default_factory=list)
    flops: int = 0

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.parts)

    @property
    def text(self) -> str:
        return f"{self.layers}{2 * NO_BREAK}{self.name}" if self.layers else self.name


def profile_chart(profile: Profile, facts: Mapping[str, Any]) -> Chart:
    """A bar for each layer of one stage's step; facts: `environment()` and "threads"."""
    lines, step = _lines(profile), profile.step.median
    largest = max(lines, key=lambda line: line.seconds)
    name = STAGE_TITLES[profile.stage].partition(": ")[2]
    where = _where(largest, lines)
    title = f"{capital(name)} spends {share(largest.seconds / step)} of a step of {profile.network} in {where}"
    if profile.emulated:
        title = f"Emulated on the CPU, {title[:1].lower() if name[1:2].islower() else title[:1]}{title[1:]}"
    peak = _peak(profile)
    with house_style():
        figure = new_figure(title, _footer(profile, facts), height=1.45 + 0.225 * (len(lines) + 1))
        axes = figure.subplots()
        for place, line in enumerate(lines):
            _bar(axes, place, line, step)
            guide(axes, place)
            column(axes, place, 44, duration(line.seconds))
            column(axes, place, 86, _share(line.seconds / step), fontweight="bold" if line is largest else "normal")
            if peak:
                column(axes, place, 126, _share(line.flops / line.seconds / peak) if line.flops else "")
        column(axes, -0.95, 44, "time")
        column(axes, -0.95, 86, "share")
        if peak:
            column(axes, -0.95, 126, "of peak")
        rows_axis(axes, [(place, line.text) for place, line in enumerate(lines)], len(lines) - 1)
        axes.set_xlim(0, 1.03 * largest.seconds / step)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=f"{NO_BREAK}%"))
        axes.set_xlabel(f"share of the plain step, {duration(step)}")
        _legend(axes, lines)
    return Chart(f"profile-{profile.stage}", figure, title, _alt(profile, lines), CAPTION)


CAPTION = (
    "Each bar is one layer of the network in the order of the step, or several that are computed at once; its pieces "
    "are the way forward, the way back and the update. The times are medians taken inside the real step. The column on "
    "the right says what share of the machine's measured peak the operations of the layer reach."
)


def _lines(profile: Profile) -> list[_Line]:
    lines: list[_Line] = []
    for each in profile.operations:
        line = _line_of(each, lines)
        line.parts.append((each.operation.direction, each.seconds))
        line.flops += each.operation.flops
    between = _Line("", "between the operations", [("between", profile.between.median)])
    # What belongs to no layer comes last, but for what prepares the images.
    first = [line for line in lines[:1] if not line.layers]
    layers = [line for line in lines if line.layers]
    return [*first, *layers, *(line for line in lines if not line.layers and line not in first), between]


def _where(largest: _Line, lines: list[_Line]) -> str:
    """What a headline calls a line: its layer, or its operation where other lines are about the same layers, too."""
    if not largest.layers:
        return largest.name
    own = set(largest.layers.split(", "))
    layers = f"layer{'s' if len(own) > 1 else ''}{NO_BREAK}{largest.layers}"
    if any(own & set(line.layers.split(", ")) for line in lines if line is not largest):
        return f"the operation {largest.name} of {layers}"
    return f"{layers}, {largest.name}"


def _line_of(each: Timed, lines: list[_Line]) -> _Line:
    """The line of an operation: that of its layers or, without any, of its name, where there is one already.

    An operation on more layers than a line has gets a line of its own, and so does another kernel on the same layers:
    its time belongs to none of them alone.
    """
    operation = each.operation
    name = "loss" if operation.kind == "loss" else operation.name.replace(" + bias", "").partition(":")[0]
    wanted, words = set(operation.layer.split(", ")), set(name.split(" + "))
    for line in lines:
        if operation.layer:
            same = wanted <= set(line.layers.split(", ")) and (len(wanted) == 1 or words & set(line.name.split(" + ")))
        else:
            same = (line.layers, line.name) == ("", name)
        if same:
            return line
    lines.append(_Line(operation.layer, name))
    return lines[-1]


def _bar(axes: Axes, place: int, line: _Line, step: float) -> None:
    start = 0.0
    for way, seconds in line.parts:
        colour, hatch, _ = WAYS[way]
        axes.barh(
            place, seconds / step, left=start, height=0.68, color=colour, hatch=hatch,
            edgecolor=mixed(colour, "#000000", 0.45), linewidth=0.0, zorder=2,
        )  # fmt: skip
        start += seconds / step


def _legend(axes: Axes, lines: Sequence[_Line]) -> None:
    shown = {way for line in lines for way, _ in line.parts}
    entries = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=mixed(colour, "#000000", 0.45), linewidth=0, label=text)
        for way, (colour, hatch, text) in WAYS.items()
        if way in shown and way != "between"
    ]
    left = blended_transform_factory(axes.figure.transFigure, axes.transAxes)
    legend = axes.legend(
        handles=entries, loc="lower left", bbox_to_anchor=(0.07 / WIDTH, 1.0), bbox_transform=left, ncols=4,
        handlelength=1.0, handletextpad=0.4, columnspacing=1.0, borderpad=0.0, borderaxespad=0.35,
    )  # fmt: skip
    legend.set_in_layout(False)  # it stands beside the heads of the columns, for which there is room


def _share(value: float) -> str:
    """A share for a narrow column."""
    return share(value) if value >= 0.001 else f"<{NO_BREAK}0.1{NO_BREAK}%"


def _peak(profile: Profile) -> float | None:
    """Operations a second at the measured peak, from any operation that has a share of it."""
    for each in profile.operations:
        if each.share_of_peak and each.seconds:
            return each.operation.flops / each.seconds / each.share_of_peak
    return None


def _footer(profile: Profile, facts: Mapping[str, Any]) -> str:
    about = f"batch {profile.batch} · {profile.dtype} · {plural(profile.threads, 'thread')}"
    text = f"{describe(facts)} · {about}"
    return f"{text}\nemulated: CUDA kernels on the CPU, which says nothing about a GPU" if profile.emulated else text


def _alt(profile: Profile, lines: Sequence[_Line]) -> str:
    parts = ", ".join(
        f"{line.text.replace(NO_BREAK, ' ')} {share(line.seconds / profile.step.median)}" for line in lines
    )
    return (
        f"Shares of one training step of {profile.network}, batch {profile.batch}, on "
        f"{who.title(profile.stage, emulated=profile.emulated)}, {duration(profile.step.median)}: {parts}."
    )
