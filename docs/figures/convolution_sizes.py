"""The guide to convolution: from which size of the kernel on Fourier transforms are faster than im2col, as measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from style import BLUE, GREEN, GROUND, HERE, INK, ORANGE, QUIET, figure, tidy

RECORD = HERE.parent / "benchmarks" / "convolution-kernel-sizes.json"
"""Written by scripts/measure_kernel_sizes.py."""


def ratios(case: Any) -> dict[int, float]:
    """Size of the kernel -> how many times as fast as the faster im2col the Fourier rung was."""
    return {
        row["size"]: min(row["seconds"]["im2col"], row["seconds"]["im2col_in_cache"]) / row["seconds"]["fourier"]
        for row in case["sizes"]
    }


def crossing(case: Any) -> int:
    """The smallest kernel from which on Fourier was faster at every size measured."""
    found = ratios(case)
    return min(size for size in found if all(ratio > 1 for larger, ratio in found.items() if larger >= size))


def kernel_sizes() -> Figure:
    """Ratios against the size of the kernel, a line for each number of channels."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    drawn = figure(3.7)
    axes = drawn.add_axes((0.1, 0.2, 0.87, 0.66), facecolor=GROUND)
    axes.axhline(1, color=INK, linewidth=1)
    looks = zip(record["cases"].items(), (BLUE, GREEN, ORANGE), ("o", "s", "^"), strict=True)
    for (name, case), colour, marker in looks:
        found = ratios(case)
        axes.plot(
            list(found), list(found.values()), marker=marker, color=colour, linewidth=1.6, markersize=4.5, label=name
        )
    first = [crossing(case) for case in record["cases"].values()]
    axes.set_yscale("log")
    axes.set_yticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])
    axes.minorticks_off()
    axes.set_xticks([1, 3, 5, 7, 9, 11, 13, 15, 19, 23, 27, 31])
    axes.set_xlabel("rows and columns of the kernel", color=INK, fontsize=9.5)
    sizes = f"{min(first)} x {min(first)}" + (f" to {max(first)} x {max(first)}" if max(first) > min(first) else "")
    title = f"Fourier is faster than im2col from kernels of {sizes} on"
    axes.set_title(f"{title}\n(how many times as fast, log axis)", color=INK, fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower right")
    axes.annotate("im2col is faster", (19, 0.78), color=QUIET, fontsize=9, va="top")
    facts = record["environment"]
    where = f"Stage 2, float32, one thread of an {facts['cpu']}, {facts['date'][:10]}"
    drawn.text(0.1, 0.025, where, color=QUIET, fontsize=9)
    tidy(axes)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "convolution-sizes": kernel_sizes,
}
