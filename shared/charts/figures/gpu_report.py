"""The GPU report's figures: the ladder beside cuBLAS, steps of dense and of known networks beside PyTorch,
launch costs, training curves.

Each function takes rows of the report and returns a figure with its alternative text. No figure shows times of the
emulator: its training is drawn against epochs, and the figure says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator, PercentFormatter

from shared.bench.on_gpu.gpu_rules import OF_NETWORKS
from shared.charts.drawing.colours import CONTENDERS, INK, QUIET, RULE, VERMILION
from shared.charts.drawing.save import save
from shared.charts.drawing.style import house_style, new_figure, patch
from shared.charts.drawing.words import NO_BREAK, three_digits
from shared.terminal import attempt

Row = dict[str, Any]

OURS = CONTENDERS["stage4_numba_cuda"]
THEIRS = VERMILION
SHADES = ("#E9BFD6", OURS, "#8A3F6C")
"""Of stage 4's colour, for what grows from left to right: sizes, batches."""

THEIR_SHADES = ("#F2B48A", THEIRS, "#8A3C00")
MARKERS = "os^"
GOAL = 0.9
REFERENCE = "cuBLAS"


class Chart(NamedTuple):
    """name: of the files; alt: what it shows, in a sentence."""

    name: str
    figure: Figure
    alt: str


def draw(document: Row, out: Path) -> list[dict[str, str]]:
    """Draw all that was measured into the folder; for each chart its PNG's name, title and alternative text."""
    rows = {name: [row for row in part["rows"] if _has_numbers(name, row)] for name, part in document["parts"].items()}
    footer = footer_of(document)
    charts = []
    if not document["emulated"]:
        if any(row["rung"] != REFERENCE for row in rows.get("ladder", [])):
            charts.append(ladder(rows["ladder"], footer))
        if rows.get("steps"):
            charts.append(steps(rows["steps"], footer))
        known = [[row for row in rows.get(name, []) if row["kind"] == "step"] for name in OF_NETWORKS]
        if step_rows := next((measured for measured in known if measured), None):
            charts.append(known_networks(step_rows, footer))
        if rows.get("launches"):
            charts.append(launches(rows["launches"], footer))
    if epochs := rows.get("training"):
        charts.append(training(epochs, footer, emulated=bool(document["emulated"])))
    listed = []
    for chart in charts:
        name = f"gpu_{chart.name}"
        for path in attempt(f"the figure {name} was not drawn", partial(save, chart.figure, out / name)) or []:
            listed.append(
                {"file": path.name, "title": chart.figure.get_suptitle().replace("\n", " "), "alt": chart.alt}
            )
    return listed


def _has_numbers(part: str, row: Row) -> bool:
    """Whether a row has the numbers that its figure draws: JSON has "nan" and "inf" for others, and null for none."""
    if part == "launches":
        return isinstance(row["host"]["median"], int | float)
    if part == "training" and row["kind"] != "epoch":
        return False
    if part in OF_NETWORKS and row.get("kind") != "step":
        return False
    drawn = {
        "ladder": ("share_of_cublas", "tflops"),
        "steps": ("median",),
        **dict.fromkeys(OF_NETWORKS, ("median",)),
        "training": ("test_accuracy", "training_seconds"),
    }
    return all(isinstance(row[name], int | float) for name in drawn.get(part, ()))


def footer_of(document: Row) -> str:
    """Device, day, driver, versions; lines break between them only."""
    device, versions = document.get("device") or {}, document.get("versions") or {}
    cards = device.get("cards") or [{}]
    parts = [device.get("name", "unknown device")]
    parts += [f"driver {cards[0]['driver']}"] if "driver" in cards[0] else []
    parts += [f"{name} {versions[name]}" for name in ("numba", "numba-cuda", "torch") if name in versions]
    parts.insert(1, str(document["date"])[:10])
    return f"{NO_BREAK}· ".join(part.replace(" ", NO_BREAK) for part in parts)


def ladder(rows: Sequence[Row], footer: str) -> Chart:
    """Each rung's share of cuBLAS's speed at each size; the tensor-core rungs below, each beside its own precision."""
    sizes = sorted({row["size"] for row in rows})
    rungs = list(dict.fromkeys((row["precision"], row["rung"]) for row in rows if row["rung"] != REFERENCE))
    precisions = list(dict.fromkeys(precision for precision, _ in rungs))
    rungs.sort(key=lambda rung: precisions.index(rung[0]))
    largest = {(row["precision"], row["rung"]): row for row in rows if row["size"] == sizes[-1]}
    drawn = [largest[rung] for rung in rungs if rung in largest] or [row for row in rows if row["rung"] != REFERENCE]
    plain = [row for row in drawn if row["precision"] == "float32"]
    best = max(plain or drawn, key=lambda row: row["share_of_cublas"])
    where = f"{best['size']:,}" if plain else f"{best['size']:,} in {best['precision']}"
    title = f"The rung {best['rung']} reaches {best['share_of_cublas']:.0%} of cuBLAS at {where}"
    with house_style():
        figure = new_figure(title, footer, height=1.7 + 0.33 * (len(rungs) + 1))
        axes = figure.subplots()
        names: list[tuple[float, str]] = []
        place, before = 0.0, "float32"
        most = max(1.0, *(row["share_of_cublas"] for row in rows))  # the speeds stand to the right of all lines
        for precision, rung in rungs:
            if names and precision != before and before == "float32":
                axes.axhline(place - 0.35, color=RULE, linewidth=0.8)
                place += 0.3
            before = precision
            mine = [row for row in rows if (row["precision"], row["rung"]) == (precision, rung)]
            points = [row["share_of_cublas"] for row in mine]
            axes.plot([min(points), max(points)], [place] * 2, color=RULE, linewidth=2.5, zorder=1)
            for row in mine:
                axes.plot(row["share_of_cublas"], place, **_dot(sizes.index(row["size"]), SHADES))
            last = max(mine, key=lambda row: row["size"])
            _beside(axes, most, place, f"{three_digits(last['tflops'])} TFLOP/s at {last['size']:,}")
            names.append((place, rung if precision == "float32" else f"{rung} {precision}"))
            place += 1.0
        for share, style in ((1.0, "-"), (GOAL, (0, (3, 2)))):
            axes.axvline(share, color=INK, linewidth=1.1, linestyle=style, zorder=0)
        axes.set_yticks([at for at, _ in names], [name for _, name in names])
        axes.set_ylim(place - 0.4, -0.6)
        axes.set_xlim(0, most + 0.55)
        axes.set_xticks([tick / 5 for tick in range(int(5 * most) + 1)])
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel("share of cuBLAS's speed in the same precision\nthe dashed line is at 90%")
        axes.grid(axis="y", visible=False)
        for i, size in enumerate(sizes):
            axes.plot([], [], label=f"{size:,} by {size:,}", **_dot(i, SHADES))
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=len(sizes), fontsize=8.5)
    listed = ", ".join(
        f"{name} {largest[rung]['share_of_cublas']:.1%}"
        for rung, (_, name) in zip(rungs, names, strict=True)
        if rung in largest
    )
    return Chart("ladder", figure, f"Share of cuBLAS's speed at {sizes[-1]:,} by {sizes[-1]:,}: {listed}.")


def steps(rows: Sequence[Row], footer: str) -> Chart:
    """Time of a training step of each contender at each batch size, a panel for each network, on log axes."""
    networks = list(dict.fromkeys(tuple(row["network"]) for row in rows))
    batches = sorted({row["batch"] for row in rows})
    who = [name for resident in (False, True) for name in _contenders(rows, resident)]
    best = _best(rows)
    fastest = min(rows, key=lambda row: row["median"])
    title = f"A training step takes {three_digits(fastest['median'] * 1e6)} µs at its fastest, by {fastest['who']}"
    if best:
        speeds = {"eager": "PyTorch's speed", "graph": "its graph's"}
        said = ", ".join(f"{three_digits(ratio)} times {speeds[way]}" for way, ratio in best["against"].items())
        where = ", data on the GPU" if best["resident"] else ""
        title = f"A training step of {'-'.join(map(str, best['network']))}, batch {best['batch']}{where}:\n{said}"
    with house_style():
        figure = new_figure(title, footer, height=1.8 + 0.33 * len(who), width=7.6)
        panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
        for axes, network in zip(panels, networks, strict=True):
            mine = [row for row in rows if tuple(row["network"]) == network]
            for row in mine:
                shades = THEIR_SHADES if _is_theirs(row["who"]) else SHADES
                at = row["median"] * 1e6, who.index(row["who"])
                place = batches.index(row["batch"])
                # the smallest batch has a number, so its dot lies above the others'
                axes.plot(*at, **{**_dot(place, shades), "zorder": 3 + (len(batches) - place) / len(batches)})
                if place == 0:
                    _above(axes, at, three_digits(at[0]))
            split = len(_contenders(rows, False)) - 0.5
            if 0 < split < len(who) - 1:
                axes.axhline(split, color=RULE, linewidth=0.8)
            drawn = {row["batch"] for row in mine}
            marks = "   ".join(
                f"{mark} {batch:,}" for mark, batch in zip("●■▲", batches, strict=False) if batch in drawn
            )
            label = f"µs per step, log scale\nbatch  {marks}"
            axes.set(title="-".join(map(str, network)), xlabel=label, xscale="log")
            _log_ticks(axes)
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(range(len(who)), who)
        panels[0].set_ylim(len(who) - 0.4, -0.8)
    listed = "; ".join(
        f"{row['who']} {three_digits(row['median'] * 1e6)} µs"
        for row in rows
        if tuple(row["network"]) == networks[0] and row["batch"] == batches[0]
    )
    first = f"{'-'.join(map(str, networks[0]))} at batch {batches[0]}"
    return Chart("steps", figure, f"Time of one training step of {first}: {listed}.")


def known_networks(rows: Sequence[Row], footer: str) -> Chart:
    """Time of a step of each contender at the batch that most networks have, a panel for each network, on log axes."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    batches = [row["batch"] for row in rows]
    batch = max(sorted(set(batches)), key=batches.count)
    rows = [row for row in rows if row["batch"] == batch]
    models = [model for model in models if any(row["model"] == model for row in rows)]
    who = sorted(dict.fromkeys(row["who"] for row in rows), key=lambda name: not _is_theirs(name))
    ratios = {model: ratio for model in models if (ratio := _beside_the_fastest(rows, model))}
    title = f"A training step of batch {batch}"
    if ratios:
        said = ", ".join(f"{model} {three_digits(ratio)}" for model, ratio in ratios.items())
        title += f", in times of PyTorch's speed at its fastest:\n{said}"
    with house_style():
        figure = new_figure(title, footer, height=1.8 + 0.33 * len(who), width=7.6)
        panels = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
        for axes, model in zip(panels, models, strict=True):
            for row in rows:
                if row["model"] == model:
                    at = row["median"] * 1e6, who.index(row["who"])
                    axes.plot(*at, **_dot(1, THEIR_SHADES if _is_theirs(row["who"]) else SHADES))
                    _above(axes, at, three_digits(at[0]))
            axes.set(title=model, xlabel="µs per step, log scale", xscale="log")
            split = sum(map(_is_theirs, who)) - 0.5
            if 0 < split < len(who) - 1:
                axes.axhline(split, color=RULE, linewidth=0.8)
            _log_ticks(axes)
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(range(len(who)), who)
        panels[0].set_ylim(len(who) - 0.4, -0.8)
    listed = "; ".join(
        f"{model}: "
        + ", ".join(f"{row['who']} {three_digits(row['median'] * 1e6)} µs" for row in rows if row["model"] == model)
        for model in models
    )
    return Chart("known_networks", figure, f"Time of one training step at batch {batch}. {listed}.")


def launches(rows: Sequence[Row], footer: str) -> Chart:
    """What a launch costs the host, for each kind of arguments."""
    with house_style():
        costs = {row["kind"]: row["host"]["median"] * 1e6 for row in rows}
        least, most = (choose(costs, key=lambda kind: costs[kind]) for choose in (min, max))
        title = "One launch: " + "; ".join(
            f"{three_digits(costs[kind])}{NO_BREAK}µs {_of_kind(kind)}" for kind in (most, least)
        )
        figure = new_figure(title, footer, height=1.5 + 0.36 * len(rows))
        axes = figure.subplots()
        for place, (kind, cost) in enumerate(costs.items()):
            axes.barh(place, cost, height=0.62, color=THEIR_SHADES[0] if "replay" in kind else OURS, zorder=2)
            _beside(axes, cost, place, f"{three_digits(cost)} µs")
        axes.set_yticks(range(len(costs)), [_kind_title(kind) for kind in costs])
        axes.set_ylim(len(costs) - 0.4, -0.6)
        axes.set_xlim(0, 1.2 * max(costs.values()))
        axes.set_xlabel("µs of the host's time for each launch, median")
        axes.grid(axis="y", visible=False)
    listed = ", ".join(f"{_kind_title(kind)} {three_digits(cost)} µs" for kind, cost in costs.items())
    return Chart("launches", figure, f"Host time of one launch: {listed}.")


def training(rows: Sequence[Row], footer: str, *, emulated: bool) -> Chart:
    """Test accuracy against seconds of training; on the emulator against epochs, whose seconds are no GPU's."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    last = {name: [row for row in rows if row["dataset"] == name][-1] for name in names}
    lead = last[names[0]]
    said = f"{names[0]}: {lead['test_accuracy']:.1%} after {lead['epoch']} epoch{'' if lead['epoch'] == 1 else 's'}"
    title = said if emulated else f"{said} and {three_digits(lead['training_seconds'])} s of training"
    note = "\nemulated on the CPU: no times are shown, because they would be the CPU's" if emulated else ""
    with house_style():
        figure = new_figure(title, footer + note, height=3.6)
        axes = figure.subplots()
        for name, colour, marker in zip(names, (OURS, CONTENDERS["stage1_pure_python"], QUIET), MARKERS, strict=False):
            mine = [row for row in rows if row["dataset"] == name]
            x = [row["epoch"] if emulated else row["training_seconds"] for row in mine]
            label = f"{name}, emulated on the CPU" if emulated else name
            axes.plot(x, [100 * row["test_accuracy"] for row in mine], color=colour, marker=marker, label=label)
        if not emulated:
            axes.axhline(97, color=INK, linewidth=1.0, linestyle=(0, (3, 2)), zorder=0)
            axes.annotate("97 %", (0, 97), (4, 3), xycoords=axes.get_yaxis_transform(), ha="left",
                          textcoords="offset points", fontsize=8.5)  # fmt: skip
            axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=emulated, nbins=8, steps=[1, 2, 5, 10]))
        axes.set(xlabel="epoch" if emulated else "seconds of training, evaluation left out",
                 ylabel="test images classified rightly (%)")  # fmt: skip
        axes.legend(loc="lower right")
    listed = "; ".join(f"{name} ends at {row['test_accuracy']:.2%}" for name, row in last.items())
    against = "epochs, emulated on the CPU" if emulated else "seconds of training"
    return Chart("training", figure, f"Test accuracy against {against}: {listed}.")


def _contenders(rows: Sequence[Row], resident: bool) -> list[str]:
    return list(dict.fromkeys(row["who"] for row in rows if row["resident"] is resident))


def _best(rows: Sequence[Row]) -> Row | None:
    """Our fastest row beside PyTorch on the first network and batch, of those whose data lie on the device."""
    mine = [row for row in rows if row["against"] and not row["who"].startswith("PyTorch")]
    first = [row for row in mine if (row["network"], row["batch"]) == (mine[0]["network"], mine[0]["batch"])]
    return min(first, key=lambda row: row["median"], default=None)


def _is_theirs(who: str) -> bool:
    return who.startswith("PyTorch")


def _beside_the_fastest(rows: Sequence[Row], model: str) -> float | None:
    """How many times as fast as PyTorch's fastest step ours is, both in float32; None where one of them is missing."""
    mine = [row for row in rows if (row["model"], row["precision"]) == (model, "float32")]
    ours, theirs = ([row["median"] for row in mine if _is_theirs(row["who"]) is side] for side in (False, True))
    return min(theirs) / min(ours) if ours and theirs else None


def _kind_title(kind: str) -> str:
    return {
        "looked up": "six arrays, [grid, block] each time",
        "replay": "graph of one",
    }.get(kind, kind.replace("replay of", "graph of"))


def _of_kind(kind: str) -> str:
    if kind == "empty":
        return "without arguments"
    if kind == "looked up":
        return "with six arrays"
    return f"{'in a' if 'replay' in kind else 'with'} {_kind_title(kind)}"


def _dot(place: int, shades: Sequence[str]) -> dict[str, Any]:
    return {
        "marker": MARKERS[place % len(MARKERS)],
        "color": shades[place % len(shades)],
        "linestyle": "none",
        "markersize": 7.5,
        "markeredgecolor": INK,
        "markeredgewidth": 0.5,
        "zorder": 3,
    }


def _beside(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(text, (x, y), (9, 0), textcoords="offset points", va="center", fontsize=8.5, bbox=patch(), zorder=4)


def _above(axes: Axes, at: tuple[float, float], text: str) -> None:
    """A number above its dot, where no other dot of the row lies."""
    axes.annotate(text, at, (0, 5.5), textcoords="offset points", ha="center", va="bottom", fontsize=8.5, bbox=patch())


def _log_ticks(axes: Axes) -> None:
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.4, high * 1.4)  # room for half a number beside the points
    axes.xaxis.set_major_locator(LogLocator(base=10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_locator(NullLocator())
