"""Speed against the size of the matrices, and where one contender overtakes another.

Both axes are logarithmic: sizes are powers of two, and speeds spread over five powers of ten.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from shared.bench.measuring.rows import LIBRARIES, BenchRow
from shared.bench.records.document import Results
from shared.bench.records.trust import steady
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import Label, label_column, log_axis, size_axis
from shared.charts.drawing.colours import INK, PAPER
from shared.charts.drawing.style import Chart, house_style, new_figure, patch
from shared.charts.drawing.words import capital, listed, three_digits
from shared.charts.figures.ladder_share import NAMES, library_speeds

Speeds = dict[int, float]
"""Size -> GFLOP/s."""

COPIES = "with copies"


class Crossing(NamedTuple):
    """Where one contender overtakes another: at which size, at what GFLOP/s.

    inside: whether both were measured on either side of it; otherwise it was ahead at the smallest common size already.
    """

    size: float
    speed: float
    inside: bool


def speed_against_size(results: Results, *, emulated: bool = False) -> Chart | None:
    """The fastest rung of each stage at each size, and the libraries, with the size from which the GPU wins; without a
    GPU, the size from which C is faster than NumPy. None where nothing was measured at two sizes. Nothing emulated is
    drawn, whatever `emulated` says."""
    del emulated
    rows = [row for row in who.of_kind(results, "ladder") if row.gflops]
    lines = best_speeds(rows)
    libraries = _library_lines(results, rows)
    if not any(len(line) > 1 for line in lines.values()):
        return None
    with_copies = gpu_with_copies(results)
    crossings = _crossings(rows, lines, libraries, with_copies)
    sure = [row for row in rows if steady(row)]
    title = who.claim(results, lambda: _headline(crossings, lines), "The fastest rungs against the matrix size", sure)
    everything = [*lines.values(), *libraries.values(), *([with_copies] if with_copies else [])]
    sizes = [size for line in everything for size in line]
    speeds = [speed for line in everything for speed in line.values()]
    with house_style():
        figure = new_figure(title, who.footer(results, kind="ladder"), height=4.3)
        axes = figure.subplots()
        with_float32 = {row.stage for row in rows if row.dtype == "float32"}
        labels = _draw_lines(axes, lines, libraries, with_copies, with_float32)
        size_axis(axes, sizes, most=6)
        log_axis(axes, "y", min(speeds) / 2, max(speeds) * 2.2, most=7)
        axes.set_xlabel("rows = columns of the matrices, log scale")
        axes.set_ylabel("GFLOP/s, log scale")
        for crossing in crossings.values():
            if crossing.inside:
                _mark(axes, crossing)
        label_column(axes, labels)
    said = listed([f"{who.title(stage)} {range_of(line)}" for stage, line in lines.items()])
    beside = listed([f"{NAMES[library]} {range_of(line)}" for library, line in libraries.items()])
    overtakes = " ".join(f"{capital(text)} {_where(crossing)}." for text, crossing in crossings.items())
    return Chart(
        "speed_against_size",
        figure,
        title,
        f"GFLOP/s of each stage's fastest rung against the matrix size: {said}. "
        f"Libraries: {beside or 'none'}. {overtakes}".rstrip(),
        "Each solid line is the fastest rung of a stage at each size, each broken line a library; float32, where a "
        "stage has it. Where two lines cross, one overtakes the other; a ring marks it. "
        + (
            "The hollow points of the GPU count the copies of the matrices to it and of the result back."
            if with_copies
            else ""
        ),
    )


def _draw_lines(
    axes: Axes,
    lines: Mapping[str, Speeds],
    libraries: Mapping[str, Speeds],
    with_copies: Speeds,
    with_float32: Collection[str],
) -> list[Label]:
    """Draw the lines of the libraries, the stages, and the GPU with its copies: their labels."""
    labels = []
    for library, line in libraries.items():
        axes.plot(
            list(line), list(line.values()), color=who.colour(library), linestyle=who.dashes(library),
            linewidth=2.2, marker=who.marker(library), markersize=5, zorder=2,
        )  # fmt: skip
        labels.append(end_of(line, NAMES[library], who.colour(library)))
    for stage, line in lines.items():
        axes.plot(
            list(line), list(line.values()), color=who.colour(stage), linewidth=1.8, marker=who.marker(stage),
            markersize=6.5, markeredgecolor=INK, markeredgewidth=0.5, zorder=3,
        )  # fmt: skip
        text = who.name(stage)
        labels.append(end_of(line, text if stage in with_float32 else f"{text},\nfloat64", who.colour(stage)))
    if with_copies:
        axes.plot(
            list(with_copies), list(with_copies.values()), color=who.colour(who.GPU_STAGE), linewidth=1.4,
            linestyle=(0, (2, 2)), marker=who.marker(who.GPU_STAGE), markersize=6, markerfacecolor=PAPER,
            zorder=3,
        )  # fmt: skip
        labels.append(end_of(with_copies, "CUDA,\nwith copies", who.colour(who.GPU_STAGE)))
    return labels


def best_speeds(rows: Sequence[BenchRow]) -> dict[str, Speeds]:
    """Stage -> the speed of its fastest rung at each size, in float32 where it has that."""
    found: dict[str, Speeds] = {}
    for stage in who.ordered(row.stage for row in rows):
        line: Speeds = {}
        for row in of_main_dtype([row for row in rows if row.stage == stage]):
            line[row.shape[0]] = max(line.get(row.shape[0], 0.0), row.gflops or 0.0)
        found[stage] = dict(sorted(line.items()))
    return found


def gpu_with_copies(results: Results) -> Speeds:
    """The GPU's speed, copies of the matrices to it and of the result back included, at each size at which the phases
    of a product were measured."""
    speeds: Speeds = {}
    rows = [row for row in who.of_kind(results, "phase") if row.stage == who.GPU_STAGE and len(row.shape) == 3]
    for shape in sorted({row.shape for row in rows}):
        parts = {row.part: row.seconds or 0.0 for row in rows if row.shape == shape}
        if {"copy in", "compute", "copy out"} <= parts.keys():
            m, k, n = shape
            seconds = parts["copy in"] + parts["compute"] + parts["copy out"]
            speeds[m] = 2 * m * k * n / seconds / 1e9
    return speeds


def overtaking(mine: Speeds, others: Sequence[Speeds]) -> Crossing | None:
    """Where `mine` gets ahead of the best of the others and stays there, interpolated on logarithms between the sizes
    that were measured on both sides; None where it does not."""
    sizes = sorted(size for size in mine if any(size in other for other in others))
    ahead = {size: math.log(mine[size] / max(other[size] for other in others if size in other)) for size in sizes}
    if not sizes or ahead[sizes[-1]] <= 0:
        return None
    behind = [size for size in sizes if ahead[size] <= 0]
    if not behind:
        return Crossing(sizes[0], mine[sizes[0]], False)
    before = behind[-1]
    after = sizes[sizes.index(before) + 1]
    part = -ahead[before] / (ahead[after] - ahead[before])
    size = math.exp(math.log(before) + part * math.log(after / before))
    return Crossing(size, math.exp(math.log(mine[before]) + part * math.log(mine[after] / mine[before])), True)


def _crossings(
    rows: Sequence[BenchRow], lines: Mapping[str, Speeds], libraries: Mapping[str, Speeds], with_copies: Speeds
) -> dict[str, Crossing]:
    """Sentence such as 'the GPU wins' -> where. C, which ends near NumPy, must be ahead by more than the noise."""
    cpu = [line for stage, line in lines.items() if stage != who.GPU_STAGE]
    cpu += [line for library, line in libraries.items() if library != "cublas"]
    found: dict[str, Crossing | None] = {}
    if who.GPU_STAGE in lines and cpu:
        found["the GPU wins"] = overtaking(lines[who.GPU_STAGE], cpu)
        found[f"the GPU wins {COPIES}"] = overtaking(with_copies, cpu)
    elif "numpy" in libraries and any(_surely_ahead(row) for row in rows if row.stage == who.C_STAGE):
        found["C overtakes NumPy"] = overtaking(lines[who.C_STAGE], [libraries["numpy"]])
    return {text: crossing for text, crossing in found.items() if crossing}


def _surely_ahead(row: BenchRow) -> bool:
    return row.ratio is not None and row.ratio * (1 + (row.ratio_noise or 0.0)) < 1


def _headline(crossings: Mapping[str, Crossing], lines: Mapping[str, Speeds]) -> str:
    for text, crossing in crossings.items():
        if COPIES not in text:
            return f"{capital(text)} {_where(crossing)}"
    best = max(lines, key=lambda stage: max(lines[stage].values()))
    speed = max(lines[best].values())
    size = next(size for size, each in lines[best].items() if each == speed)
    return f"{capital(who.name(best))} is fastest at {size:,}: {three_digits(speed)} GFLOP/s"


def _where(crossing: Crossing) -> str:
    return (
        f"from {crossing.size:,.0f} by {crossing.size:,.0f} on"
        if crossing.inside
        else f"already at {crossing.size:,.0f}"
    )


def _mark(axes: Axes, crossing: Crossing) -> None:
    axes.plot(
        crossing.size, crossing.speed, "o", markersize=13, markerfacecolor="none", markeredgecolor=INK,
        markeredgewidth=1.4, zorder=5,
    )  # fmt: skip
    axes.annotate(
        f"{crossing.size:,.0f}", (crossing.size, crossing.speed), (-8, 10), textcoords="offset points", ha="right",
        fontsize=9.5, fontweight="bold", bbox=patch(), zorder=6,
    )  # fmt: skip


def end_of(line: Speeds, text: str, colour: str | None = None) -> Label:
    """A label for the end of a line."""
    size = max(line)
    return Label(size, line[size], text, colour)


def _library_lines(results: Results, rows: Sequence[BenchRow]) -> dict[str, Speeds]:
    """Each library's speed at each size, in float32 where there is that."""
    found: dict[str, Speeds] = {}
    for gpu in (False, True):
        here = [row for row in rows if row.ratio and (row.stage == who.GPU_STAGE) == gpu]
        here = of_main_dtype(here)
        for size in sorted({row.shape[0] for row in here}):
            mine = [row for row in here if row.shape[0] == size]
            for library, speed in library_speeds(results, mine, mine[0].dtype).items():
                found.setdefault(library, {})[size] = speed
    for row in who.of_kind(results, "product"):
        if row.stage in LIBRARIES and row.gflops and len(set(row.shape)) == 1 and row.stage in found:
            found[row.stage].setdefault(row.shape[0], row.gflops)
    return {library: dict(sorted(found[library].items())) for library in who.ordered(found)}


def of_main_dtype(rows: Sequence[BenchRow]) -> list[BenchRow]:
    """The float32 rows, or all where there are none."""
    return [row for row in rows if row.dtype == "float32"] or list(rows)


def range_of(line: Speeds) -> str:
    """'58.3 at 64 to 222 at 512'."""
    small, large = min(line), max(line)
    return f"{three_digits(line[small])} at {small:,} to {three_digits(line[large])} at {large:,}"
