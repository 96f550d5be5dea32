"""The figures: how the stages learn, how long they take, and how fast each rung of each ladder is.

Every function takes plain measured values and returns a matplotlib Figure; `shared.charts_style.save` writes it as
PNG and SVG. Speeds and times spread over four orders of magnitude, so their axes are logarithmic, and logarithmic
axes carry points, not bars: the length of a bar on them would mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from shared.benchmark import BenchRow, drawable
from shared.charts_style import INK, QUIET, STAGE_COLOURS, house_style, new_figure, three_digits
from shared.contract import STAGE_TITLES, display_title, is_emulated

_MARKERS = "osD^vPX*"
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))


class Curve(NamedTuple):
    """One stage's training, one value per epoch: epoch numbers from 1, mean training loss, test accuracy in [0, 1]."""

    epochs: Sequence[int]
    loss: Sequence[float]
    accuracy: Sequence[float]


def training_curves(curves: Mapping[str, Curve], footer: str, *, agree: bool) -> Figure:
    """Loss and test accuracy of every stage over each other, the first one widest, so that all are seen.

    curves: stage name -> Curve. agree: whether the equivalence check passed, which is what the headline says.
    """
    names = [display_title(stage) for stage in curves]
    if len(names) == 1:
        title = f"Training {names[0]}"
    elif agree:
        title = f"{_count(len(names))} stages, one curve: they are the same network"
    else:
        title = f"{_count(len(names))} stages that should lie on each other and do not"
    with house_style():
        figure = new_figure(title, footer, height=3.9)
        left, right = figure.subplots(1, 2)
        for place, (stage, curve) in enumerate(curves.items()):
            style = _overlay(stage, place, len(curves))
            left.plot(curve.epochs, curve.loss, label=_in_lines(stage), **style)
            right.plot(curve.epochs, [100 * value for value in curve.accuracy], label=_in_lines(stage), **style)
        left.set(title="Training loss", xlabel="epoch", ylabel="cross-entropy, mean of the epoch (nats)")
        right.set(title="Test accuracy", xlabel="epoch", ylabel="test images classified rightly (%)")
        left.set_ylim(bottom=0)
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.margins(x=0.06)
        right.legend(loc="lower right", handlelength=3.2)
    return figure


def time_per_stage(seconds: Mapping[str, float], footer: str, *, network: str) -> Figure:
    """Seconds per epoch of each stage on a log axis, each with its factor to the first.

    seconds: stage name -> seconds per epoch. network: what was trained, for the axis label. An emulated stage says so
    beside its point, which is hatched, and has no part in the headline: the time is the CPU's.
    """
    stages = list(seconds)
    first = seconds[stages[0]]
    own = [stage for stage in stages if not is_emulated(stage)] or stages
    fastest = min(own, key=lambda stage: seconds[stage])
    title = "Seconds per epoch"
    if fastest != stages[0]:
        title = f"{STAGE_TITLES[fastest].partition(': ')[2]} trains {_factor(first / seconds[fastest])} as fast"
        title += f" as {STAGE_TITLES[stages[0]].partition(': ')[2]}"
    with house_style():
        figure = new_figure(title, footer, height=1.75 + 0.55 * len(stages))
        axes = figure.subplots()
        for row, stage in enumerate(stages):
            here, colour = seconds[stage], STAGE_COLOURS[stage]
            emulated = is_emulated(stage)
            if row:
                axes.annotate(
                    "",
                    (here, row),
                    (first, row),
                    arrowprops={"arrowstyle": "-|>", "color": QUIET, "shrinkA": 0, "shrinkB": 6},
                )
                middle = (here * first) ** 0.5  # half-way on a log axis
                axes.annotate(
                    f"{_factor(first / here)} as fast", (middle, row), (0, 4), textcoords="offset points", ha="center"
                )
            axes.scatter(
                here,
                row,
                s=121,
                zorder=3,
                facecolor="white" if emulated else colour,
                edgecolor=colour if emulated else INK,
                hatch="//////" if emulated else None,
                linewidth=0.6,
            )
            axes.annotate(
                _seconds(here),
                (here, row),
                (0, -17),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )
        if len(stages) > 1:
            axes.axvline(first, color=STAGE_COLOURS[stages[0]], linewidth=1, linestyle=":", zorder=0)
        axes.set_yticks(range(len(stages)), [_in_lines(stage) for stage in stages])
        axes.set_ylim(len(stages) - 0.35, -0.5)
        axes.set_xlabel(f"seconds per epoch, log scale ({network})")
        _log_x(axes, list(seconds.values()), margin=2.0, suffix=" s")
        axes.grid(axis="y", visible=False)
    return figure


def ladders(rows: Sequence[BenchRow], footer: str) -> Figure:
    """Speed of every rung of every stage on one product: the largest size at which every stage was measured.

    Filled points are float64, hollow ones float32; the vertical lines are NumPy's `a @ b`. Emulated rungs are left out,
    as from every chart of speeds. Raises ValueError where no size was measured on every stage.
    """
    measured = [row for row in drawable(rows) if row.kind == "ladder"]
    size = common_size(measured)
    if size is None:
        raise ValueError(
            "ladders: no matrix size was measured on every stage, so there is no common product to compare"
        )
    here = [row for row in measured if row.shape[0] == size]
    rungs = list(dict.fromkeys((row.stage, row.name) for row in here))
    speeds = [speed for row in here if (speed := row.gflops)]
    span = max(speeds) / min(speeds)
    with house_style():
        title = f"A {size} by {size} product: {_factor(span)} from the slowest rung to the fastest"
        figure = new_figure(title, footer, height=1.5 + 0.34 * len(rungs))
        axes = figure.subplots()
        references = {row.dtype: row.gflops * row.ratio for row in here if row.gflops and row.ratio and _by_numpy(row)}
        for dtype, speed in references.items():
            axes.axvline(
                speed, color=INK, linewidth=1.2, linestyle="-" if dtype == "float64" else (0, (3, 2)), zorder=1
            )
        for place, (stage, rung) in enumerate(rungs):
            if place and stage != rungs[place - 1][0]:
                axes.axhline(place - 0.5, color="#DDDDDD", linewidth=0.7, zorder=0)
            mine = {row.dtype: row.gflops for row in here if (row.stage, row.name) == (stage, rung) and row.gflops}
            colour = STAGE_COLOURS[stage]
            axes.plot(list(mine.values()), [place] * len(mine), color=colour, linewidth=2.5, zorder=2)
            for dtype, speed in mine.items():
                face = colour if dtype == "float64" else "white"
                axes.plot(
                    speed, place, "o", markersize=8, color=colour, markerfacecolor=face, markeredgewidth=2, zorder=3
                )
            axes.annotate(
                " to ".join(dict.fromkeys(three_digits(speed) for speed in sorted(mine.values()))),
                (min(mine.values()), place),
                (-9, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=8.5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            )
        axes.set_yticks(range(len(rungs)), [f"{STAGE_TITLES[stage].split(':')[0]}  {rung}" for stage, rung in rungs])
        axes.set_ylim(len(rungs) - 0.4, -0.6)
        axes.set_xlabel("10⁹ floating-point operations per second (GFLOP/s), log scale")
        _log_x(axes, [*speeds, *references.values()], margin=2.2, left=5.0)
        axes.grid(axis="y", visible=False)
        handles = [
            axes.plot([], [], "o", color=QUIET, markeredgewidth=2, label="float64")[0],
            axes.plot([], [], "o", color=QUIET, markerfacecolor="white", markeredgewidth=2, label="float32")[0],
        ]
        handles += [
            axes.plot(
                [],
                [],
                color=INK,
                linewidth=1.2,
                linestyle="-" if dtype == "float64" else (0, (3, 2)),
                label=f"NumPy a @ b, {dtype}",
            )[0]
            for dtype in references
        ]
        axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4, fontsize=8.5)
    return figure


def ladder_sizes(rows: Sequence[BenchRow], footer: str, *, dtype: str = "float64") -> Figure:
    """Speed against matrix size, one panel per stage, one line per rung, with NumPy's `a @ b` in each panel.

    Raises ValueError where nothing of this dtype was measured.
    """
    measured = [row for row in drawable(rows) if row.kind == "ladder" and row.dtype == dtype]
    if not measured:
        raise ValueError(f"ladder_sizes: no {dtype} rung was measured")
    stages = list(dict.fromkeys(row.stage for row in measured))
    with house_style():
        figure = new_figure(
            f"What a larger matrix does to each rung ({dtype})",
            footer,
            width=max(7.6, 0.8 + 3.3 * len(stages)),
            height=4.6,
        )
        panels = figure.subplots(1, len(stages), sharey=True, squeeze=False)[0]
        for axes, stage in zip(panels, stages, strict=True):
            mine = [row for row in measured if row.stage == stage]
            for place, rung in enumerate(dict.fromkeys(row.name for row in mine)):
                points = [(row.shape[0], row.gflops) for row in mine if row.name == rung]
                axes.plot(
                    *zip(*points, strict=True),
                    color=STAGE_COLOURS[stage],
                    marker=_MARKERS[place % len(_MARKERS)],
                    linestyle=_DASHES[place % len(_DASHES)],
                    label=rung,
                )
            reference = {row.shape[0]: row.gflops * row.ratio for row in mine if row.gflops and row.ratio}
            label = "NumPy a @ b" if _by_numpy(mine[0]) else "cuBLAS"
            axes.plot(list(reference), list(reference.values()), color="#BBBBBB", linewidth=6, zorder=1, label=label)
            axes.set(title=STAGE_TITLES[stage], xscale="log", yscale="log", xlabel="rows = columns, log scale")
            axes.set_xticks(sorted(reference), [str(size) for size in sorted(reference)])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, fontsize=8)
        panels[0].set_ylabel("GFLOP/s, log scale")
    return figure


def _overlay(stage: str, place: int, count: int) -> dict[str, object]:
    width = 9.0 - 7.0 * place / max(count - 1, 1)
    solid = place == 0 or place < count - 1
    return {
        "color": _lighter(STAGE_COLOURS[stage]) if place == 0 and count > 1 else STAGE_COLOURS[stage],
        "linewidth": width,
        "linestyle": "-" if solid else (0, (3, 1.5)),
        "solid_capstyle": "round",
        "marker": "o",
        "markersize": width + 3,
    }


def _lighter(colour: str) -> tuple[float, ...]:
    # A lighter colour and not transparency, under which a marker would darken its own line.
    return tuple(1 - 0.6 * (1 - channel) for channel in to_rgb(colour))


def common_size(rows: Sequence[BenchRow]) -> int | None:
    """The largest matrix size at which every stage among the measured rows has a rung; None where there is none."""
    stages = {row.stage for row in rows}
    common = [n for n in {row.shape[0] for row in rows} if {row.stage for row in rows if row.shape[0] == n} == stages]
    return max(common, default=None)


def _in_lines(stage: str) -> str:
    """The stage's title where there is room for a short line: 'stage 4: CUDA,' above 'emulated on the CPU'."""
    return display_title(stage).replace(", ", ",\n")


def _by_numpy(row: BenchRow) -> bool:
    return row.reference.startswith("NumPy")


def _log_x(axes: Axes, values: Sequence[float], *, margin: float, left: float | None = None, suffix: str = "") -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(values) / (left or margin), max(values) * margin)
    axes.xaxis.set_major_locator(LogLocator(base=10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{suffix}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _count(number: int) -> str:
    return {2: "Two", 3: "Three", 4: "Four"}[number]


def _factor(value: float) -> str:
    return f"{three_digits(value)} times"


def _seconds(value: float) -> str:
    return f"{three_digits(value)} s" if value >= 1 else f"{three_digits(value * 1e3)} ms"
