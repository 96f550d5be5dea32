"""The figure of the page on numerics: how far apart two sums of the same numbers are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from style import (
    BLUE,
    GREEN,
    GROUND,
    INK,
    ORANGE,
    QUIET,
    figure,
    tidy,
)


def rounding() -> Figure:
    """How far two float32 sums of the same products lie apart, against how many there are."""
    generator = np.random.default_rng(0)
    counts = 2 ** np.arange(1, 15)
    eps = float(np.finfo(np.float32).eps)
    apart: dict[tuple[int, bool], list[float]] = {}
    for k, positive in [(int(k), positive) for k in counts for positive in (False, True)]:
        for _ in range(40):
            products = generator.standard_normal(k).astype(np.float32) * generator.standard_normal(k).astype(np.float32)
            products = np.abs(products) if positive else products
            one = np.add.accumulate(products, dtype=np.float32)[-1]
            other = np.add.accumulate(generator.permutation(products), dtype=np.float32)[-1]
            scale = float(np.abs(products).sum(dtype=np.float64))
            apart.setdefault((k, positive), []).append(abs(float(one) - float(other)) / (eps * scale))
    drawn = figure(3.4)
    axes = drawn.add_axes((0.115, 0.16, 0.86, 0.72), facecolor=GROUND)
    for (k, positive), differences in apart.items():
        seen = [each for each in differences if each > 0]
        at, colour = (k * 1.12, GREEN) if positive else (k / 1.12, BLUE)
        axes.plot([at] * len(seen), seen, "o", color=colour, markersize=2.4, markeredgewidth=0)
    line = np.geomspace(1.6, 2e4, 50)
    axes.loglog(line, line, color=QUIET, linewidth=1.4)
    axes.loglog(line, 4 * np.sqrt(line), color=ORANGE, linewidth=1.8)
    axes.annotate("k: the worst case", (90, 90), (-8, 4), textcoords="offset points", color=QUIET, fontsize=9.5,
                  ha="right")  # fmt: skip
    axes.annotate("4 √k: the tolerance", (1.9, 40), color=ORANGE, fontsize=9.5)
    axes.annotate("terms of both signs", (1.9, 0.0016), color=BLUE, fontsize=9.5)
    axes.annotate("all positive", (100, 0.0016), color=GREEN, fontsize=9.5)
    axes.annotate("40 pairs of sums each", (17000, 0.0016), color=QUIET, fontsize=9.5, ha="right")
    axes.set_xscale("log", base=2)
    axes.set_ylim(0.001, 2e4)
    axes.set_xlim(1.6, 2e4)
    axes.set_xticks([2, 16, 128, 1024, 8192], ["2", "16", "128", "1,024", "8,192"])
    axes.set_yticks([0.01, 1, 100, 10000], ["0.01", "1", "100", "10,000"])
    axes.minorticks_off()
    axes.set_xlabel("k, how many products are summed", color=INK, fontsize=9.5)
    axes.set_title("Two float32 sums in different orders: difference / (eps · scale)", color=INK, fontsize=10,
                   loc="left")  # fmt: skip
    tidy(axes)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "numerics-rounding": rounding,
}
