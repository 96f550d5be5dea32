"""The figures of the page on eight bits: the largest weight of each output, which a scale of its own would follow, and
the numbers that each step of a network gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, GROUND, HERE, INK, ORANGE, QUIET, figure, tidy

from shared.training.checkpoints import load_checkpoint

SHIPPED = Path(HERE).parents[1] / "groundup" / "studio" / "digits" / "network.safetensors"

RECORD = Path(HERE).parents[1] / "docs" / "benchmarks" / "eight-bits.json"
"""Written by scripts/measure_eight_bits.py."""

LEFT, WIDE = 0.42, 0.44
"""Where the bars begin, and how wide they may be, as shares of the figure."""


def ranges() -> Figure:
    """The largest weight of each output, sorted, beside that of the whole layer: a panel for each layer."""
    drawn = figure(3.0)
    layers = load_checkpoint(SHIPPED).parameters[::2]
    for number, weights in enumerate(layers):
        own = np.sort(np.abs(weights).max(axis=0))
        axes = drawn.add_axes((0.1 + number * 0.47, 0.25, 0.4, 0.52), facecolor=GROUND)
        axes.stairs(own, np.arange(len(own) + 1) + 0.5, fill=True, color=BLUE, linewidth=0)
        axes.axhline(own[-1], color=ORANGE, linewidth=1.8)
        axes.set_xticks([1, len(own)])
        axes.set_ylim(0, 1.12)
        axes.set_xlabel("outputs, sorted", color=INK, fontsize=9.5)
        axes.set_title(
            f"layer {number + 1}: {' to '.join(map(str, weights.shape))}", color=INK, fontsize=9.5, loc="left"
        )
        tidy(axes)
    first = np.abs(layers[0]).max(axis=0)
    title = (
        f"{np.sum(first < first.max() / 2)} of {len(first)} outputs of the first layer need less than half of the scale"
    )
    drawn.text(0.1, 0.9, title, color=INK, fontsize=10)
    drawn.text(0.1, 0.02, "largest |w| of each output", color=BLUE, fontsize=9)
    drawn.text(0.42, 0.02, "of the layer", color=ORANGE, fontsize=9)
    drawn.text(0.66, 0.02, "784-128-10, as shipped", color=QUIET, fontsize=9)
    return drawn


def layers() -> Figure:
    """The range of the numbers of each step, the reach of its scale, and how far eight bits are off by then."""
    networks = json.loads(RECORD.read_text(encoding="utf-8"))["networks"]
    chosen = {"LeNet-5, MNIST": networks["lenet5"]["steps"], "Residual CNN, MNIST": networks["residual"]["steps"]}
    rows = sum(len(steps) for steps in chosen.values())
    drawn = figure(2.0 + 0.2 * rows)
    high, top = drawn.get_figheight(), 0.62
    for name, steps in chosen.items():
        bottom = top + 0.2 + 0.2 * len(steps)
        axes = drawn.add_axes((LEFT, 1 - bottom / high, WIDE, 0.2 * len(steps) / high), facecolor=GROUND)
        for row, step in enumerate(steps):
            axes.barh(row, step["largest"] - step["smallest"], left=step["smallest"], height=0.55, color=BLUE)
            if step["reach"] is not None:
                for end in (-step["reach"], step["reach"]):
                    axes.plot([end, end], [row - 0.42, row + 0.42], color=ORANGE, linewidth=1.8)
            own = axes.get_yaxis_transform()
            axes.text(-0.02, row, step["step"], transform=own, ha="right", va="center", color=INK, fontsize=9)
            axes.text(1.16, row, f"{step['error']:.1%}", transform=own, ha="right", va="center", color=INK, fontsize=9)
        axes.set_ylim(len(steps) - 0.5, -0.5)
        axes.set_yticks([])
        tidy(axes)
        drawn.text(0.03, 1 - (top + 0.12) / high, name, color=QUIET, fontsize=9)
        top = bottom + 0.34
    drawn.text(
        0.03,
        1 - 0.28 / high,
        f"Every step has a range of its own; the error stays {_errors(chosen)}",
        color=INK,
        fontsize=10,
    )
    drawn.text(0.03, 0.1 / high, "numbers of 1,000 test images", color=BLUE, fontsize=9)
    drawn.text(0.4, 0.1 / high, "reach of ±127", color=ORANGE, fontsize=9)
    drawn.text(0.97, 0.1 / high, "error, after all roundings so far", color=INK, fontsize=9, ha="right")
    return drawn


def _errors(networks: dict[str, list[dict[str, float]]]) -> str:
    """'below 3 %'."""
    largest = max(step["error"] for steps in networks.values() for step in steps)
    return f"below {int(100 * largest) + 1} %"


FIGURES: dict[str, Callable[[], Figure]] = {
    "eight-bits-ranges": ranges,
    "eight-bits-layers": layers,
}
