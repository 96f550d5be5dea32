"""The figure of the page on eight bits: the largest weight of each output, which a scale of its own would follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, GROUND, HERE, INK, ORANGE, QUIET, figure, tidy

from shared.training.checkpoints import load_checkpoint

SHIPPED = Path(HERE).parents[1] / "groundup" / "studio" / "digits" / "network.safetensors"


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


FIGURES: dict[str, Callable[[], Figure]] = {
    "eight-bits-ranges": ranges,
}
