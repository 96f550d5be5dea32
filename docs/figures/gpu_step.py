"""The figures of the page about a training step on an H100: the rungs, and where the time of a step goes.

Their numbers are read from the record in docs/benchmarks/gpu: gpu_report.json, profile.txt, persistent_prototype.txt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from style import BLUE, GREEN, GROUND, HERE, INK, ORANGE, PANEL, PINK, QUIET, RULE, SAND, figure, text

from shared.bench.on_gpu.gpu_record import REPORT, load
from shared.numbers import three_digits

RECORD = HERE.parent / "benchmarks" / "gpu" / "nvidia-h100-80gb-hbm3-2026-11-22"
SOURCE = "784-128-10, float32 · NVIDIA H100 80GB HBM3 · 2026-11-22, revision aa8f7fd"
PAPER = {"facecolor": GROUND, "edgecolor": "none", "pad": 1.0}


def rungs() -> Figure:
    """Microseconds of a step on each rung at batch 64, on a log axis, with PyTorch's graph as a line."""
    rows = load(RECORD / REPORT)["parts"]["steps"]["rows"]
    mine = {row["who"]: row["median"] * 1e6 for row in rows if (row["network"], row["batch"]) == ([784, 128, 10], 64)}
    prototype = _number(r"persistent: ([\d.]+) us/step", (RECORD / "persistent_prototype.txt").read_text())
    bars = [
        ("op_by_op", "18 launches", mine["op_by_op"]),
        ("fused", "12 launches", mine["fused"]),
        ("few_kernels", "3 launches", mine["few_kernels"]),
        ("graph", "1 replay", mine["graph"]),
        ("resident", "1 replay, data on the GPU", mine["resident"]),
        ("prototype", "1 launch for an epoch", prototype),
    ]
    drawn = figure(3.9)
    axes = drawn.add_axes((0.36, 0.23, 0.6, 0.66))
    axes.set_xscale("log")
    axes.set_xlim(4, 9000)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    for place, (_, _, time) in enumerate(bars):
        colours = {"color": SAND, "markeredgecolor": ORANGE} if place == len(bars) - 1 else {"color": PINK}
        axes.plot([4, 9000], [place, place], color=RULE, linewidth=0.7, zorder=0)
        axes.plot(time, place, "o", markersize=9, **colours)
        axes.text(time * 1.28, place, f"{three_digits(time)} µs", va="center", color=INK, fontsize=9.5, bbox=PAPER)
    graph = mine["PyTorch graph, resident"]
    axes.axvline(graph, color=ORANGE, linewidth=1.2, linestyle=(0, (4, 2)), zorder=0)
    text(axes, graph * 1.15, len(bars) - 0.8, f"PyTorch's CUDA graph,\ndata on the GPU: {three_digits(graph)} µs",
         ORANGE, 9, ha="left", bbox=PAPER)  # fmt: skip
    axes.set_yticks(range(len(bars)), [""] * len(bars))
    for place, (name, launches, _) in enumerate(bars):
        axes.annotate(name, (0, place), (-8, 6), xycoords=("axes fraction", "data"), textcoords="offset points",
                      ha="right", va="center", color=INK, fontsize=10)  # fmt: skip
        axes.annotate(launches, (0, place), (-8, -6), xycoords=("axes fraction", "data"), textcoords="offset points",
                      ha="right", va="center", color=QUIET, fontsize=9)  # fmt: skip
    _framed(axes, "µs a step, batch 64, log scale", [10, 100, 1000])
    drawn.text(0.02, 0.95, "A step of training, from 1,730 µs to 7.63", color=INK, fontsize=11.5, va="center")
    drawn.text(0.02, 0.025, f"{SOURCE}\nthe last row is of a prototype", color=QUIET, fontsize=8.5)
    return drawn


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
