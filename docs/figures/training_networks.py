"""The benchmarks' page: how the known networks learn on the full data sets, beside the accuracy that is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from style import BLUE, GREEN, GROUND, HERE, INK, ORANGE, QUIET, figure, tidy

BENCHMARKS = HERE.parent / "benchmarks"
ASKED = {"lenet5": 98.9, "residual_cnn": 99.0, "fashion_cnn": 91.0}
"""The test accuracy that each network is to reach at its last epoch, in percent."""

LOOKS = {
    "lenet5": ("LeNet-5", BLUE, "o"),
    "residual_cnn": ("residual CNN", GREEN, "s"),
    "fashion_cnn": ("Fashion CNN", ORANGE, "^"),
}


def path(model: str) -> Path:
    """The recorded training of a network."""
    return BENCHMARKS / f"{model.replace('_', '-')}-stage3.json"


def record(model: str) -> Any:
    """What `groundup train c --model MODEL --json` printed."""
    return json.loads(path(model).read_text(encoding="utf-8"))


def test_accuracies(model: str) -> list[float]:
    """Percent of the test images, epoch by epoch."""
    return [100 * epoch["test_accuracy"] for epoch in record(model)["epochs"]]


def known_networks() -> Figure:
    """Test accuracy against epochs, a panel for each data set of which there is a record."""
    drawn = figure(3.4)
    recorded = {model: test_accuracies(model) for model in ASKED if path(model).is_file()}
    panels = [("MNIST", ("lenet5", "residual_cnn")), ("Fashion-MNIST", ("fashion_cnn",))]
    panels = [(dataset, models) for dataset, models in panels if set(models) <= set(recorded)]
    for place, (dataset, models) in enumerate(panels):
        width = 0.88 / len(panels) - 0.05
        axes = drawn.add_axes((0.09 + place * (width + 0.09), 0.2, width - 0.02, 0.56), facecolor=GROUND)
        for model in models:
            name, colour, marker = LOOKS[model]
            found = recorded[model]
            epochs = range(1, len(found) + 1)
            axes.plot(epochs, found, marker=marker, color=colour, linewidth=1.6, markersize=4.5, label=name)
            axes.plot(epochs, [ASKED[model]] * len(found), color=colour, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xticks(range(1, 6))
        axes.set_xlabel("epoch", color=INK, fontsize=9.5)
        axes.set_title(f"{dataset}, test accuracy (%)", color=INK, fontsize=9.5, loc="left")
        axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower right")
        tidy(axes)
    reached = all(found[-1] >= ASKED[model] for model, found in recorded.items())
    ends = ", ".join(f"{LOOKS[model][0]} {found[-1]:.2f} %" for model, found in recorded.items())
    title = f"The known networks {'reach what is asked of them' if reached else 'end so'}:\n{ends}"
    drawn.text(0.09, 0.88, title, color=INK, fontsize=10)
    facts = record("lenet5")["environment"]
    where = f"Dashed: the accuracy asked for. Stage 3, float32, {facts['cpu']}, {facts['date'][:10]}"
    drawn.text(0.09, 0.025, where, color=QUIET, fontsize=9)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "training-networks": known_networks,
}
