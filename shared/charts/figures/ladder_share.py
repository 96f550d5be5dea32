"""Every rung of every ladder as a share of the best library that multiplies the same matrices on the same machine.

The shares spread over four orders of magnitude, so the axis is logarithmic. It carries points, not bars: on a
logarithmic axis the length of a bar means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes

from shared.bench.measuring.rows import LIBRARIES, BenchRow
from shared.bench.records.document import Results
from shared.bench.records.trust import same_reference, spoilt, steady
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import column, guide, heading, log_axis, rows_axis
from shared.charts.drawing.colours import INK, PAPER
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import capital, listed, share, three_digits

NAMES = {"numpy": "NumPy a @ b", "pytorch": "PyTorch", "cublas": "cuBLAS"}

SHARES_AT, SPEEDS_AT = 42, 88
"""Where the columns beside the rows stand, in points from the axes."""


class Line(NamedTuple):
    """One row of the figure. speeds: dtype -> GFLOP/s; shares: dtype -> share of the best library; steady: whether a
    headline may rest on it."""

    stage: str
    rung: str
    speeds: Mapping[str, float]
    shares: Mapping[str, float]
    steady: bool = True

    @property
    def dtype(self) -> str:
        """The dtype of the numbers beside the points: float32 if it was measured."""
        return "float32" if "float32" in self.speeds else next(iter(self.speeds))

    @property
    def share(self) -> float:
        """Share of the best library in `dtype`."""
        return self.shares[self.dtype]

    @property
    def speed(self) -> float:
        """GFLOP/s in `dtype`."""
        return self.speeds[self.dtype]


def ladder_share(results: Results, *, emulated: bool = False) -> Chart | None:
    """One row for each rung, grouped by stage: its share of the best library's speed, and its GFLOP/s.

    Filled points are float32, hollow ones float64. The CPU's stages compute one product, the largest that all of them
    were measured on; a GPU has its own group, on its own largest product, beside cuBLAS. None where no rung was
    measured beside a library. Nothing emulated is drawn, whatever `emulated` says.
    """
    del emulated
    groups = _groups(results)
    if not groups:
        return None
    lines = [line for group in groups.values() for line in group]
    own = [line for line in lines if line.stage not in LIBRARIES]
    tops = {
        stage: max(_of(own, stage), key=lambda line: line.share) for stage in who.ordered(line.stage for line in own)
    }
    sure = all(line.steady for line in tops.values()) and not spoilt(results)
    title = _headline(tops) if sure else "Every rung beside the best library"
    most = max(value for line in lines for value in line.shares.values())
    both = len({dtype for line in own for dtype in line.speeds}) > 1
    rows = len(lines) + 1.2 * len(groups)
    with house_style():
        figure = new_figure(title, who.footer(results, kind="ladder"), height=1.3 + 0.2 * rows)
        axes = figure.subplots()
        _draw_rows(axes, groups)
        axes.axvline(1, color=INK, linewidth=1.2, zorder=1)
        least = min(value for line in lines for value in line.shares.values())
        log_axis(axes, "x", 0.55 * least, 1.9 * max(1.0, most), text=share, most=5)
        axes.set_xlabel("share of the best library's speed, log scale")
        if both:
            for hollow, label in ((False, "float32"), (True, "float64")):
                face = PAPER if hollow else INK
                axes.plot([], [], "o", markersize=6, color=INK, markerfacecolor=face, label=label)
            axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, fontsize=8.5, handletextpad=0.2)
    said = listed(
        [
            f"{who.title(stage)} {share(line.share)} ({line.rung}, {three_digits(line.speed)} GFLOP/s)"
            for stage, line in tops.items()
        ]
    )  # fmt: skip
    caption = (
        "Each point is one way to multiply two square matrices. The line at 100 % is the fastest library that "
        "multiplied the same matrices on the same machine: NumPy's BLAS or PyTorch on the CPU, cuBLAS on a GPU."
    )
    if both:
        caption += " Filled points are float32, hollow ones float64; the numbers are float32's where it was measured."
    alt = f"Speed of each rung as a share of the best library on the same product. The fastest of each stage: {said}."
    return Chart("ladder_share", figure, title, alt, caption)


def _draw_rows(axes: Axes, groups: Mapping[str, Sequence[Line]]) -> None:
    """A row for each rung under the name of its group: its points, and beside them its share and its speed."""
    place, names = 0.0, []
    for text, group in groups.items():
        heading(axes, place, text)
        for line in group:
            place += 1.0
            _draw(axes, place, line)
            names.append((place, line.rung))
            column(axes, place, SHARES_AT, share(line.share))
            column(axes, place, SPEEDS_AT, three_digits(line.speed))
        place += 1.2
    column(axes, -1, SHARES_AT, "share")
    column(axes, -1, SPEEDS_AT, "GFLOP/s")
    rows_axis(axes, names, names[-1][0], first=-1)


def common_size(rows: Sequence[BenchRow]) -> int | None:
    """The largest matrix size at which every stage among the measured rows has a rung; None where there is none."""
    stages = {row.stage for row in rows}
    common = [n for n in {row.shape[0] for row in rows} if {row.stage for row in rows if row.shape[0] == n} == stages]
    return max(common, default=None)


def library_speeds(results: Results, rungs: Sequence[BenchRow], dtype: str) -> dict[str, float]:
    """GFLOP/s of each library on the product of these rungs: the median of what it did beside each of them, and of the
    products that it was measured on itself."""
    mine = [row for row in rungs if row.dtype == dtype]
    beside: dict[str, list[float]] = {}
    for row in mine:
        beside.setdefault(_reference(row), []).append((row.gflops or 0.0) * (row.ratio or 0.0))
        for opponent, factor in row.against.items():
            if opponent in LIBRARIES:
                beside.setdefault(opponent, []).append((row.gflops or 0.0) / factor)
    speeds = {library: median(found) for library, found in beside.items()}
    if mine and "cublas" not in speeds:
        for row in who.of_kind(results, "product"):
            if row.stage in LIBRARIES and row.dtype == dtype and row.shape == mine[0].shape and row.gflops:
                speeds.setdefault(row.stage, row.gflops)
    return speeds


def _groups(results: Results) -> dict[str, list[Line]]:
    """Heading -> the lines under it: the CPU's stages, their libraries, the GPU with its own."""
    rungs = [row for row in who.of_kind(results, "ladder") if row.ratio and row.gflops]
    groups: dict[str, list[Line]] = {}
    for gpu in (False, True):
        mine = [row for row in rungs if (row.stage == who.GPU_STAGE) == gpu]
        size = common_size(mine)
        mine = [row for row in mine if row.shape[0] == size]
        if not mine:
            continue
        product = f"{size:,} by {size:,}"
        speeds = {dtype: library_speeds(results, mine, dtype) for dtype in {row.dtype for row in mine}}
        best = {dtype: max(by_library.values()) for dtype, by_library in speeds.items()}
        for stage in who.ordered(row.stage for row in mine):
            own = [row for row in mine if row.stage == stage]
            groups[f"{who.title(stage)}, {product}"] = [
                _rung([row for row in own if row.name == rung], speeds, same_reference(own))
                for rung in dict.fromkeys(row.name for row in own)
            ]
        libraries = [
            _line(library, NAMES[library], {dtype: of[library] for dtype, of in speeds.items() if library in of}, best)
            for library in who.ordered(library for by_library in speeds.values() for library in by_library)
        ]
        if gpu:
            groups[next(reversed(groups))] += libraries
        else:
            groups[f"libraries, {product}"] = libraries
    return groups


def _rung(rows: Sequence[BenchRow], speeds: Mapping[str, Mapping[str, float]], same: bool) -> Line:
    """The line of one rung. rows: one a dtype; speeds: dtype -> library -> GFLOP/s; same: whether the library was as
    fast beside each rung.

    Its share is the one that was measured in the same rounds, where the best library took part in them.
    """
    shares = {}
    for row in rows:
        best = max(speeds[row.dtype], key=lambda library: speeds[row.dtype][library])
        beside = {**row.against, _reference(row): 1 / (row.ratio or 1.0)}
        shares[row.dtype] = beside.get(best, (row.gflops or 0.0) / speeds[row.dtype][best])
    gflops = {row.dtype: row.gflops or 0.0 for row in rows}
    return Line(rows[0].stage, rows[0].name, gflops, shares, same and all(steady(row) for row in rows))


def _reference(row: BenchRow) -> str:
    return "cublas" if row.reference.startswith("cuBLAS") else "numpy"


def _line(stage: str, rung: str, speeds: Mapping[str, float], best: Mapping[str, float]) -> Line:
    return Line(stage, rung, speeds, {dtype: speed / best[dtype] for dtype, speed in speeds.items()})


def _of(lines: Sequence[Line], stage: str) -> list[Line]:
    return [line for line in lines if line.stage == stage]


def _headline(tops: Mapping[str, Line]) -> str:
    first, last = next(iter(tops)), max(tops, key=lambda stage: tops[stage].share)
    library = "cuBLAS" if last == who.GPU_STAGE else "the best library"
    title = f"{capital(who.name(last))} reaches {share(tops[last].share)} of {library}"
    other = first if first != last else list(tops)[-1]
    return title if other == last else f"{title}, {who.name(other)} {share(tops[other].share)}"


def _draw(axes: Axes, place: float, line: Line) -> None:
    guide(axes, place)
    ends = [min(line.shares.values()), max(line.shares.values())]
    if line.stage not in LIBRARIES:
        axes.plot(ends, [place] * 2, color=who.colour(line.stage), linewidth=2, zorder=2)
    for dtype in sorted(line.shares, reverse=True):  # float32 last, on top
        if dtype == line.dtype or line.stage not in LIBRARIES:
            hollow = dtype == "float64"
            axes.plot(line.shares[dtype], place, **who.dot(line.stage, hollow=hollow), zorder=2.9 + 0.1 * (not hollow))
