"""Week 22: how many times as fast Fourier's way is as im2col, by the count of multiplications and as measured."""

from __future__ import annotations

import json
from collections.abc import Callable

from convolution_sizes import RECORD, ratios
from matplotlib.figure import Figure
from style import BLUE, GROUND, INK, ORANGE, QUIET, figure, tidy

from shared.profile.multiplications import by_fourier, by_windows


def crossover() -> Figure:
    """A colour for each number of channels; the prediction dashed, the measurement with points."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    drawn = figure(3.7)
    axes = drawn.add_axes((0.1, 0.2, 0.87, 0.66), facecolor=GROUND)
    axes.axhline(1, color=INK, linewidth=1)
    looks = {"1 channel, 256 x 256": (BLUE, "o"), "64 channels, 32 x 32": (ORANGE, "^")}
    for name, (colour, marker) in looks.items():
        case = record["cases"][name]
        channels, side = case["channels"], case["side"]
        x = (case["images"], channels, side, side)
        measured = ratios(case)
        predicted = []
        for size in measured:
            weights, padding = (channels, channels, size, size), (size // 2, size // 2)
            predicted.append(by_windows(x, weights, padding) / by_fourier(x, weights, padding))
        axes.plot(list(measured), predicted, color=colour, linewidth=1.4, linestyle=(0, (4, 2)))
        axes.plot(
            list(measured),
            list(measured.values()),
            marker=marker,
            color=colour,
            linewidth=1.6,
            markersize=4.5,
            label=name,
        )
    axes.set_yscale("log")
    axes.set_yticks([0.03, 0.1, 0.3, 1, 3, 10, 30], ["0.03", "0.1", "0.3", "1", "3", "10", "30"])
    axes.minorticks_off()
    axes.set_xticks([1, 3, 5, 7, 9, 11, 13, 15, 19, 23, 27, 31])
    axes.set_xlabel("rows and columns of the kernel", color=INK, fontsize=9.5)
    title = "The count predicts Fourier's win for 1 channel, and not for 64"
    axes.set_title(
        f"{title}\n(times as fast as im2col; dashed: counted, points: measured)", color=INK, fontsize=10, loc="left"
    )
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower right")
    axes.annotate("im2col is faster", (15, 0.78), color=QUIET, fontsize=9, va="top")
    facts = record["environment"]
    where = f"Stage 2, float32, one thread of an {facts['cpu']}, {facts['date'][:10]}"
    drawn.text(0.1, 0.025, where, color=QUIET, fontsize=9)
    tidy(axes)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {"week22-crossover": crossover}
