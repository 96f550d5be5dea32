"""The figures that compare within one order of magnitude, where a bar's length may stand for its number.

`stage3_ladder` shows how near each rung comes to what the machine can do at all; `products` and `steps` show the time
of each contender as a multiple of NumPy's. All axes are linear and start at zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator, PercentFormatter

from shared.benchmark import BenchRow, drawable
from shared.charts_style import INK, STAGE_COLOURS, house_style, new_figure, three_digits

COLOURS = STAGE_COLOURS | {"numpy": "#999999", "pytorch": "#D55E00"}
STAGE3 = "stage3_c"
NUMPY_STAGE = "stage2_numpy"


def peak_ladder_size(rows: Sequence[BenchRow], dtype: str = "float32") -> int | None:
    """The largest size at which the most rungs of stage 3 were measured beside the peak; None where none was."""
    sizes = [row.shape[0] for row in _peak_ladder(rows, dtype)]
    return max(sizes, key=lambda size: (sizes.count(size), size), default=None)


def stage3_ladder(rows: Sequence[BenchRow], footer: str, *, dtype: str = "float32") -> Figure:
    """Stage 3's rungs and NumPy's `a @ b` as shares of the peak of one core, so that two threads may reach 200 %.

    Beside each bar its share of what the cores that it uses could do, and its speed as a multiple of NumPy's, which is
    that of OpenBLAS or whatever NumPy was built with. Raises ValueError where no rung was measured beside the peak.
    """
    size = peak_ladder_size(rows, dtype)
    if size is None:
        raise ValueError(f"stage3_ladder: no {dtype} rung of stage 3 was measured beside the machine's peak")
    rungs = [row for row in _peak_ladder(rows, dtype) if row.shape[0] == size]
    threads = max(row.threads for row in rungs)
    last = rungs[-1]
    core = (last.peak or 0.0) / last.threads / 1e9
    shares = [(row.gflops or 0.0) / core for row in rungs]
    reference = (last.gflops or 0.0) * (last.ratio or 0.0) / core  # of NumPy, from the same rounds
    with house_style():
        best = max(rungs, key=lambda row: row.gflops or 0.0)
        reached = f"{_share(shares[0])} of one core's peak to {_share(best.share_of_peak)}"
        title = f"Stage 3's ladder: from {reached}" + ("" if best.threads == 1 else f" of {best.threads} cores'")
        figure = new_figure(title, footer, height=1.6 + 0.34 * (len(rungs) + 1))
        axes = figure.subplots()
        for place, (row, share) in enumerate(zip(rungs, shares, strict=True)):
            axes.barh(place, share, height=0.66, color=COLOURS[STAGE3], zorder=2)
            _columns(axes, place, _share(row.share_of_peak), three_digits(1 / (row.ratio or 1.0)))
        axes.barh(len(rungs), reference, height=0.66, color=COLOURS["numpy"], zorder=2)
        _columns(axes, len(rungs), _share(reference / threads), "1")
        _columns(axes, -1, "share of\nthe peak" if threads == 1 else "share of its\ncores' peak", "speed,\nNumPy = 1")
        for count in sorted({1, threads}):
            axes.axvline(count, color=INK, linewidth=1.2, linestyle=(0, (3, 2)), zorder=3)
            label = f"peak of {'one core' if count == 1 else f'{count} cores'}: {three_digits(count * core)} GFLOP/s"
            axes.annotate(
                label, (count, -1), (-5, 0), textcoords="offset points", ha="right", va="center", fontsize=8.5
            )
        axes.set_yticks(range(len(rungs) + 1), [*(_rung_title(row, threads) for row in rungs), "NumPy a @ b"])
        axes.set_ylim(len(rungs) + 0.6, -1.5)
        axes.set_xlim(0, max(1.02 * threads, 1.02 * max(shares), 1.02 * reference))
        axes.xaxis.set_major_locator(MultipleLocator(0.2 if threads == 1 else 0.5))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel(f"share of one core's peak ({size} by {size} product, {dtype})")
        axes.grid(axis="y", visible=False)
    return figure


def products(rows: Sequence[BenchRow], footer: str) -> Figure:
    """Time of every product on each contender as a multiple of NumPy's: shorter is faster.

    Raises ValueError where no product was measured.
    """
    mine = [row for row in drawable(rows) if row.kind == "product" and row.stage != "numpy"]
    if not mine:
        raise ValueError("products: no product was measured beside NumPy")
    title = "The network's products and two large ones: time beside NumPy's"
    groups = [[row for row in mine if row.name == name] for name in dict.fromkeys(row.name for row in mine)]
    names = [_product_title(group[0]) for group in groups]
    values = [[row.ratio or 0.0 for row in group] for group in groups]
    label = f"time as a multiple of NumPy's a @ b, {mine[0].dtype}: shorter is faster"
    return _grouped(title, footer, groups, names, values, label)


def step_cases(rows: Sequence[BenchRow]) -> list[tuple[str, str]]:
    """(name, dtype) of the float32 steps that were measured on stage 2 and on another, so that it can be set beside."""
    mine = _steps(rows)
    cases = dict.fromkeys((row.name, row.dtype) for row in mine)
    return [case for case in cases if len({row.contender for row in mine if (row.name, row.dtype) == case}) > 1]


def steps(rows: Sequence[BenchRow], footer: str) -> Figure:
    """Time of a float32 training step on each contender as a multiple of stage 2's: shorter is faster.

    Raises ValueError where no step was measured on stage 2 and on another.
    """
    cases = step_cases(rows)
    if not cases:
        raise ValueError("steps: no step was measured on stage 2 and on another contender to set beside it")
    mine = _steps(rows)
    groups = [[row for row in mine if (row.name, row.dtype) == case] for case in cases]
    values = [[1 / row.against.get(NUMPY_STAGE, 1.0) for row in group] for group in groups]
    names = [f"{name}, {dtype}" for name, dtype in cases]
    label = "time of one step as a multiple of stage 2's (NumPy): shorter is faster"
    return _grouped("One training step, forward to update: time beside NumPy's", footer, groups, names, values, label)


def _grouped(
    title: str,
    footer: str,
    groups: Sequence[Sequence[BenchRow]],
    names: Sequence[str],
    values: Sequence[Sequence[float]],
    label: str,
) -> Figure:
    """Horizontal bars in groups, each group under its name, with a line at 1."""
    lines = sum(map(len, groups)) + 1.4 * len(groups)
    with house_style():
        figure = new_figure(title, footer, height=1.35 + 0.245 * lines)
        axes = figure.subplots()
        place = 0.0
        ticks: list[tuple[float, str]] = []
        for group, name, numbers in zip(groups, names, values, strict=True):
            axes.annotate(
                name,
                (0, place),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontweight="bold",
                fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                zorder=4,
            )
            place += 1.0
            for row, value in zip(group, numbers, strict=True):
                axes.barh(place, value, height=0.8, color=COLOURS[row.stage], zorder=2)
                _beside(axes, value, place, f"{three_digits(value)}  ({_time(row)})")
                fewer = row.threads < max(each.threads for each in group)
                ticks.append((place, row.contender + (", 1 thread" if fewer else "")))
                place += 1.0
            place += 0.4
        axes.axvline(1, color=INK, linewidth=1.2, linestyle=(0, (3, 2)), zorder=3)
        axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
        axes.set_ylim(place - 0.6, -0.8)
        axes.set_xlim(0, 1.25 * max(1.0, *(max(numbers) for numbers in values)))
        axes.set_xlabel(label)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
    return figure


def _beside(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(
        text,
        (x, y),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        zorder=4,
    )


def _columns(axes: Axes, y: float, *texts: str) -> None:
    """The texts right of the axes, at height y of the data, in columns of their own."""
    # Distances in points: as shares of the axes they would move while the layout makes room for them.
    for distance, text in zip((62, 122), texts, strict=True):
        axes.annotate(
            text,
            (1, y),
            (distance, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8.5,
        )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}" if value < 0.1 else f"{value:.0%}"


def _rung_title(row: BenchRow, most: int) -> str:
    return row.name if row.threads == 1 or most == 1 else f"{row.name} ({row.threads})"


def _peak_ladder(rows: Sequence[BenchRow], dtype: str) -> list[BenchRow]:
    return [
        row
        for row in rows
        if row.kind == "ladder" and row.stage == STAGE3 and row.dtype == dtype and row.measurement and row.peak
    ]


def _steps(rows: Sequence[BenchRow]) -> list[BenchRow]:
    """The float32 steps, which stage 1 takes no part in, of the cases that stage 2 took."""
    measured = [row for row in drawable(rows) if row.kind == "step" and row.dtype == "float32"]
    cases = {(row.name, row.dtype) for row in measured if row.stage == NUMPY_STAGE}
    return [row for row in measured if (row.name, row.dtype) in cases]


def _product_title(row: BenchRow) -> str:
    m, k, n = row.shape
    return f"{row.name.split()[0]}: {m} by {k} times {k} by {n}"


def _time(row: BenchRow) -> str:
    seconds = row.measurement.median if row.measurement else 0.0
    return f"{three_digits(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{three_digits(seconds * 1e6)} µs"
