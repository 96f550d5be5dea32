"""The roofline: does arithmetic or memory bound each rung? (Williams, Waterman, Patterson, 2009.)

A product of n by n matrices does n / 6 operations for every byte that it must move at least (in float32). Memory that
brings so many bytes a second allows so many operations a second, and the arithmetic units allow so many at most: two
roofs. Both were measured on this machine, none is taken from a data sheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from shared.bench.measuring.rows import BenchRow
from shared.bench.records.document import Results
from shared.bench.records.trust import steady
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import Label, label_column, log_axis
from shared.charts.drawing.colours import INK, QUIET, ROOF
from shared.charts.drawing.style import SMALL, Chart, house_style, new_figure, patch
from shared.charts.drawing.words import capital, listed, plural, share, size_of, three_digits

MOST_ROOFS = 4
MARKERS = "osD^vPX*<"
TOUCHING = 1.7
"""Two roofs nearer than this factor have no room for a line of text between them."""


class Roofs(NamedTuple):
    """peak: GFLOP/s; bandwidths: bytes of the working set -> GB/s, smallest set first; threads: that share them."""

    peak: float
    bandwidths: Mapping[int, float]
    threads: int


def roofline(results: Results, *, emulated: bool = False) -> Chart | None:
    """A panel for the CPU and one for a GPU: every rung of stages 2 to 4 at its arithmetic intensity under the roofs.

    The sizes of a rung are joined. None where a peak or the bandwidths or all rungs were not measured. Nothing
    emulated is drawn, whatever `emulated` says.
    """
    del emulated
    panels = {gpu: panel for gpu in (False, True) if (panel := _panel(results, gpu=gpu))}
    if not panels:
        return None
    peaks = {gpu: roofs.peak for gpu, (roofs, _) in panels.items()}
    sure = {gpu: [row for row in rungs if steady(row)] for gpu, (_, rungs) in panels.items()}
    title = who.claim(
        results, lambda: _headline(sure, peaks), "Every rung under the roofs of the machine", *sure.values()
    )
    with house_style():
        height = 0.7 + 4.0 * len(panels)
        figure = new_figure(title, who.footer(results, kind="ladder"), height=height)
        for axes, (gpu, (roofs, rungs)) in zip(
            figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels.items(), strict=True
        ):
            _draw(axes, roofs, rungs)
            cores = f"the CPU, {plural(roofs.threads, 'thread')}"
            axes.set_title(f"{'the GPU' if gpu else cores}, {rungs[0].dtype}", fontsize=9.5)
            axes.set_ylabel("GFLOP/s, log scale")
        axes.set_xlabel("operations per byte that must be moved, log scale")
    texts = []
    for gpu, (roofs, rungs) in panels.items():
        bands = listed([f"{three_digits(speed)} GB/s over {size_of(size)}" for size, speed in roofs.bandwidths.items()])
        ends = ", ".join(f"{row.name} {three_digits(row.gflops or 0.0)}" for row in _last(rungs))
        texts.append(
            f"{'GPU' if gpu else 'CPU'}: a measured peak of {three_digits(roofs.peak)} GFLOP/s and measured bandwidths "
            f"of {bands}; GFLOP/s of the rungs at {rungs[0].dtype} on their largest product: {ends}."
        )
    return Chart(
        "roofline",
        figure,
        title,
        " ".join(texts),
        "Each mark is one rung on one product; the lines join a rung's sizes, small products on the left. No program "
        "can be above the flat roof, the measured peak of the arithmetic units. A slanted roof is a measured "
        "bandwidth: a rung under it that reads every operand only once is as fast as that memory lets it be; one far "
        "below all roofs waits for something else. Orange is stage 2, green stage 3, pink stage 4.",
    )


def _panel(results: Results, *, gpu: bool) -> tuple[Roofs, list[BenchRow]] | None:
    """The roofs and the rungs, of float32 where there are any; None where one of them is missing."""

    def here(kind: str) -> list[BenchRow]:
        return [row for row in who.of_kind(results, kind) if (row.stage == who.GPU_STAGE) == gpu]

    rungs = [row for row in here("ladder") if row.stage != who.ORDER[0] and row.gflops and row.intensity]
    dtype = "float32" if any(row.dtype == "float32" for row in rungs) else "float64"
    rungs = [row for row in rungs if row.dtype == dtype]
    peaks = [row.peak for row in here("peak") if row.dtype == dtype and row.peak]
    bands = [row for row in here("bandwidth") if row.gigabytes]
    if not rungs or not peaks or not bands:
        return None
    threads = max(row.threads for row in bands)
    speeds = {row.shape[0]: row.gigabytes or 0.0 for row in bands if row.threads == threads}
    sizes = sorted(speeds)
    if len(sizes) > MOST_ROOFS:  # the ends and what lies evenly between them
        sizes = [sizes[round(i * (len(sizes) - 1) / (MOST_ROOFS - 1))] for i in range(MOST_ROOFS)]
    cores = 1 if gpu else max(row.threads for row in rungs)
    return Roofs(max(peaks) / 1e9 * cores, {size: speeds[size] for size in sizes}, cores), rungs


def _headline(rungs_of: Mapping[bool, Sequence[BenchRow]], peaks: Mapping[bool, float]) -> str:
    """peaks: GFLOP/s, for rows whose own rounds had no peak in them."""
    texts: list[str] = []
    for gpu, rungs in rungs_of.items():
        best = max(rungs, key=lambda row: row.gflops or 0.0)
        of_peak = best.share_of_peak or (best.gflops or 0.0) / peaks[gpu]
        reached = f"{share(of_peak)} of the {'GPU' if gpu else 'CPU'}'s"
        texts.append(
            f"{who.name(best.stage)} {reached}" if texts else f"{who.name(best.stage)} reaches {reached} measured peak"
        )
    return capital(", ".join(texts))


def _draw(axes: Axes, roofs: Roofs, rungs: Sequence[BenchRow]) -> None:
    intensities = [row.intensity or 1.0 for row in rungs]
    ridges = [roofs.peak / speed for speed in roofs.bandwidths.values()]
    low = min(min(intensities), *ridges) / 12  # room for the names along the slanted roofs
    high = max(max(intensities), *ridges) * 1.6
    speeds = [row.gflops or 1.0 for row in rungs]
    slowest = min(min(speeds), low * min(roofs.bandwidths.values()))
    log_axis(axes, "x", low, high, most=5)
    log_axis(axes, "y", slowest / 1.8, roofs.peak * 3.2, most=7)
    for speed in roofs.bandwidths.values():
        axes.plot([low, roofs.peak / speed], [low * speed, roofs.peak], color=ROOF, linewidth=1.3, zorder=2)
    axes.plot([min(ridges), high], [roofs.peak] * 2, color=INK, linewidth=1.8, zorder=2)
    axes.annotate(
        f"measured peak: {three_digits(roofs.peak)} GFLOP/s",
        (high, roofs.peak), (-2, 5), textcoords="offset points",
        ha="right", fontsize=SMALL, bbox=patch(), zorder=4,
    )  # fmt: skip
    labels = []
    for place, (stage, rung) in enumerate(dict.fromkeys((row.stage, row.name) for row in rungs)):
        mine = sorted(
            (row for row in rungs if (row.stage, row.name) == (stage, rung)), key=lambda row: row.intensity or 0
        )
        x, y = [row.intensity or 1.0 for row in mine], [row.gflops or 1.0 for row in mine]
        colour = who.colour(stage)
        axes.plot(
            x, y, color=colour, linewidth=0.9, marker=MARKERS[place % len(MARKERS)], markersize=5.5,
            markeredgecolor=INK, markeredgewidth=0.4, zorder=3,
        )  # fmt: skip
        labels.append(Label(x[-1], y[-1], rung, colour))
    label_column(axes, labels, size=8.0)
    _name_bandwidths(axes, roofs, low)


def _name_bandwidths(axes: Axes, roofs: Roofs, low: float) -> None:
    """Each slanted roof's bandwidth and working set, along the line at its lower end."""
    start, lift = (low * 1.15, 1.15)
    before, below = math.inf, False
    for size, speed in sorted(roofs.bandwidths.items(), key=lambda roof: -roof[1]):
        # Between two roofs that nearly touch is no room for text: the lower one's stands below it.
        below = speed * TOUCHING > before and not below
        before = speed
        height = speed * (0.9 / lift if below else lift)
        axes.text(
            start,
            start * height,
            f"{three_digits(speed)} GB/s, {size_of(size)}",
            rotation=math.degrees(math.atan2(height, 1.0)),  # of a line through here, in the data's own terms
            transform_rotates_text=True,
            rotation_mode="anchor",
            va="top" if below else "baseline",
            fontsize=7.5,
            color=QUIET,
            zorder=4,
        )


def _last(rungs: Sequence[BenchRow]) -> list[BenchRow]:
    """Each rung's row of its largest product."""
    last: dict[tuple[str, str], BenchRow] = {}
    for row in rungs:
        known = last.get((row.stage, row.name))
        if known is None or row.shape[0] > known.shape[0]:
            last[row.stage, row.name] = row
    return list(last.values())
