"""The figures of the page about a training step on a GPU: the rungs, and where the time of a step goes.

Their numbers are read from the two records in docs/benchmarks/gpu: gpu_report.json of both, and of the first, of an
H100, profile.txt and persistent_prototype.txt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from style import BLUE, GREEN, GROUND, HERE, INK, ORANGE, PANEL, PINK, QUIET, RULE, SAND, figure, text

from shared.bench.on_gpu.gpu_record import REPORT, load
from shared.numbers import three_digits

RECORDS = HERE.parent / "benchmarks" / "gpu"
RECORD, NEWEST = RECORDS / "nvidia-h100-80gb-hbm3-2026-11-22", RECORDS / "nvidia-h200-2026-11-26"
SOURCE = "784-128-10, float32 · NVIDIA H100 80GB HBM3 · 2026-11-22, revision aa8f7fd"
RUNGS_SOURCE = (
    "784-128-10, float32 · dots: NVIDIA H200 · 2026-11-26, revision d0c3bb7\n"
    "circles: NVIDIA H100 80GB HBM3 · 2026-11-22, revision aa8f7fd"
)
PAPER = {"facecolor": GROUND, "edgecolor": "none", "pad": 1.0}


def rungs() -> Figure:
    """Microseconds of a step on each rung at batch 64, on a log axis: dots for the H200, circles for the H100, and
    PyTorch's graph and its compiled step on the H200 as lines."""
    old, new = (_steps(record, "steps") for record in (RECORD, NEWEST))
    prototype = _number(r"persistent: ([\d.]+) us/step", (RECORD / "persistent_prototype.txt").read_text())
    bars = [
        ("op_by_op", "18 launches", old["op_by_op"], new["op_by_op"]),
        ("fused", "12 launches", old["fused"], new["fused"]),
        ("few_kernels", "3 launches", old["few_kernels"], new["few_kernels"]),
        ("graph", "1 replay", old["graph"], new["graph"]),
        ("graph", "1 replay, data on the GPU", old["resident"], new["resident, graph"]),
        ("persistent", "1 launch for many steps", prototype, new["resident"]),
    ]
    drawn = figure(3.9)
    axes = drawn.add_axes((0.36, 0.23, 0.6, 0.66))
    axes.set_xscale("log")
    axes.set_xlim(4, 150_000)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    for place, (_, _, before, time) in enumerate(bars):
        axes.plot([4, 150_000], [place, place], color=RULE, linewidth=0.7, zorder=0)
        axes.plot(before, place, "o", markersize=9, color=SAND, markeredgecolor=ORANGE)
        axes.plot(time, place, "o", markersize=9, color=PINK)
        said = f"{three_digits(time)} µs, {'a prototype' if before == prototype else 'H100'} {three_digits(before)}"
        axes.text(max(time, before) * 1.35, place, said, va="center", color=INK, fontsize=9.5, bbox=PAPER)
    graph, compiled = new["PyTorch graph, resident"], _steps(NEWEST, "fastest_pytorch")["PyTorch compiled, resident"]
    for line in (graph, compiled):
        axes.axvline(line, color=ORANGE, linewidth=1.2, linestyle=(0, (4, 2)), zorder=0)
    said = f"PyTorch's\ngraph: {three_digits(graph)},\ncompiled:\n{three_digits(compiled)} µs"
    text(axes, compiled * 0.9, 0.75, said, ORANGE, 9, ha="right", bbox=PAPER)
    axes.set_yticks(range(len(bars)), [""] * len(bars))
    for place, (name, launches, _, _) in enumerate(bars):
        axes.annotate(name, (0, place), (-8, 6), xycoords=("axes fraction", "data"), textcoords="offset points",
                      ha="right", va="center", color=INK, fontsize=10)  # fmt: skip
        axes.annotate(launches, (0, place), (-8, -6), xycoords=("axes fraction", "data"), textcoords="offset points",
                      ha="right", va="center", color=QUIET, fontsize=9)  # fmt: skip
    _framed(axes, "µs a step, batch 64, log scale", [10, 100, 1000])
    said = f"A step of training, from {three_digits(new['op_by_op'])} µs to {three_digits(new['resident'])}"
    drawn.text(0.02, 0.95, said, color=INK, fontsize=11.5, va="center")
    drawn.text(0.02, 0.025, RUNGS_SOURCE, color=QUIET, fontsize=8.5)
    return drawn


def _steps(record: Path, part: str) -> dict[str, float]:
    """Contender -> microseconds of a step of 784-128-10 at batch 64."""
    rows = load(record / REPORT)["parts"][part]["rows"]
    mine = [row for row in rows if (row.get("network"), row["batch"]) == ([784, 128, 10], 64)]
    return {row["who"]: row["median"] * 1e6 for row in mine}


def profile() -> Figure:
    """Where the time of a resident step goes at each batch: three kernels, and what lies between them."""
    found = steps_of_profile((RECORD / "profile.txt").read_text())
    batches = [found[f"(784, 128, 10) b{batch}"] for batch in (64, 256, 1024)]
    parts = [("make_forward", "forward", BLUE), ("head", "head", GREEN), ("make_update", "update", PINK)]
    drawn = figure(2.9)
    axes = drawn.add_axes((0.17, 0.33, 0.79, 0.43))
    axes.set_xlim(0, 172)
    axes.set_ylim(2.5, -0.5)
    for place, step in enumerate(batches):
        left = 0.0
        for key, _, colour in parts:
            width = step["kernels"][key]
            axes.barh(place, width, left=left, height=0.62, color=colour, edgecolor=colour)
            left += width
        axes.barh(place, step["wall"] - left, left=left, height=0.62, color=PANEL, edgecolor=RULE, hatch="////")
        axes.text(step["wall"] + 2, place, f"{three_digits(step['wall'])} µs", va="center", color=INK, fontsize=9.5)
    axes.set_yticks(range(3), ["batch 64", "256", "1,024"], fontsize=10, color=INK)
    _framed(axes, "µs a step", [0, 50, 100, 150])
    first = batches[0]
    said = f"At batch 64 the kernels work {sum(first['kernels'].values()):.0f} of {first['wall']:.0f} µs"
    drawn.text(0.02, 0.93, said, color=INK, fontsize=11.5)
    key = [*((f"■ {name}", colour) for _, name, colour in parts), ("▨ between", QUIET)]
    for place, (words, colour) in enumerate(key):
        drawn.text(0.17 + 0.16 * place, 0.81, words, color=colour, fontsize=9.5)
    drawn.text(0.02, 0.03, f"{SOURCE}\nkernels by PyTorch's profiler, 64 steps", color=QUIET, fontsize=8.5)
    return drawn


def steps_of_profile(words: str) -> dict[str, dict[str, Any]]:
    """Title of each step in profile.txt -> {"wall": µs, "kernels": {name: µs of a step}}."""
    found: dict[str, dict[str, Any]] = {}
    for block in words.split("## ")[1:]:
        title, _, rest = block.partition(": wall ")
        kernels = {
            name: _number(rf"{name}[^\n]*sum/64 ([\d.]+)", rest)
            for name in ("make_forward", "head", "make_update")
            if re.search(rf"{name}[^\n]*sum/64", rest)
        }
        found[title] = {"wall": float(rest.split()[0]), "kernels": kernels}
    return found


def _framed(axes: Any, label: str, ticks: list[int]) -> None:
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(label, fontsize=9.5, color=INK)
    axes.tick_params(colors=QUIET, labelsize=9, length=0)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.grid(axis="x", color=RULE, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "left")
        spine.set_color(QUIET)


def _number(pattern: str, words: str) -> float:
    found = re.search(pattern, words)
    if found is None:
        raise ValueError(f"the record has no {pattern!r}")
    return float(found[1])


FIGURES: dict[str, Callable[[], Figure]] = {"gpu-step-rungs": rungs, "gpu-step-profile": profile}
