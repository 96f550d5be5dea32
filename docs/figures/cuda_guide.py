"""The figures of the CUDA guide: threads, memories, divergence, occupancy, the roofline."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from style import (
    BLUE,
    GREEN,
    GROUND,
    HERE,
    INK,
    MINT,
    ORANGE,
    PANEL,
    QUIET,
    RULE,
    SAND,
    SKY,
    WIDTH,
    arrow,
    box,
    canvas,
    figure,
    text,
    tidy,
)


def hierarchy() -> Figure:
    """A grid of blocks, a block of warps, a warp of threads."""
    drawn, axes = canvas(3.7)
    text(axes, 0.1, 3.52, "grid: one launch", ha="left", size=10.5)
    for row in range(2):
        for column in range(4):
            chosen = (row, column) == (0, 3)
            box(axes, 0.1 + column * 0.62, 2.84 - row * 0.52, 0.56, 0.46, SKY if chosen else PANEL, BLUE)
            text(axes, 0.38 + column * 0.62, 3.07 - row * 0.52, f"{column}, {row}", QUIET if not chosen else INK, 9)
    text(axes, 0.1, 2.1, "8 blocks; in any order,\non any multiprocessor", QUIET, 9, ha="left", va="top")
    arrow(axes, (2.6, 3.07), (2.98, 3.07), BLUE)

    text(axes, 3.06, 3.52, "block: 128 threads", ha="left", size=10.5)
    box(axes, 3.06, 1.72, 2.44, 1.6, SKY, BLUE)
    for warp in range(4):
        chosen = warp == 3
        fill = SAND if chosen else GROUND
        box(axes, 3.14, 2.94 - warp * 0.32, 2.28, 0.27, fill, ORANGE)
        text(axes, 4.28, 3.075 - warp * 0.32, f"warp {warp}: threads {warp * 32} to {warp * 32 + 31}", size=9)
    text(axes, 4.28, 1.84, "shared memory, syncthreads", size=9)
    arrow(axes, (4.28, 1.66), (4.28, 1.3), ORANGE)

    text(axes, 0.1, 1.2, "warp: 32 threads, one instruction at a time", ha="left", size=10.5)
    for lane in range(32):
        edge = {"facecolor": SAND, "edgecolor": ORANGE, "linewidth": 0.8}
        axes.add_patch(Rectangle((0.1 + lane * 0.169, 0.55), 0.15, 0.42, **edge))
    text(axes, 0.175, 0.38, "0", QUIET, 9)
    text(axes, 0.175 + 31 * 0.169, 0.38, "31", QUIET, 9)
    text(axes, WIDTH / 2, 0.2, "each a thread, with registers of its own", QUIET, 9)
    return drawn


def memory() -> Figure:
    """Who sees which memory, and how much of it there is."""
    drawn, axes = canvas(3.7)
    rows = [
        ("registers", "one thread", "65,536 on each multiprocessor, 255 a thread", 1.6, SKY, BLUE),
        ("shared memory", "one block", "48 KB a block unless asked for more", 2.6, MINT, GREEN),
        ("L2 cache", "everyone", "some tens of MB on a large GPU", 3.6, SAND, ORANGE),
        ("global memory", "everyone", "GBs; every array that a kernel is given", 5.4, PANEL, QUIET),
    ]
    for number, (name, whose, much, wide, fill, edge) in enumerate(rows):
        y = 2.98 - number * 0.8
        box(axes, (WIDTH - wide) / 2, y, wide, 0.34, fill, edge)
        text(axes, WIDTH / 2, y + 0.17, name)
        text(axes, WIDTH / 2, y - 0.13, f"{whose}: {much}", QUIET, 9)
    text(axes, 0.1, 3.52, "near, fast, little", QUIET, 9, ha="left")
    text(axes, WIDTH - 0.1, 0.16, "far, slow, plenty", QUIET, 9, ha="right")
    return drawn


def divergence() -> Figure:
    """A warp whose lanes disagree goes both ways, one after the other."""
    drawn, axes = canvas(3.1)
    lanes, cell = 16, 0.22
    left = 1.7
    steps = [
        ("if lane % 2:", "both", "all"),
        ("    a = f(x)", "odd", "odd"),
        ("else:", "both", "none"),
        ("    a = g(x)", "even", "even"),
        ("y = a + 1", "both", "all"),
    ]
    text(axes, left + lanes * cell / 2, 2.9, "lanes of a warp (16 of 32 drawn)", QUIET, 9)
    for row, (line, _, who) in enumerate(steps):
        y = 2.4 - row * 0.4
        text(axes, 0.1, y + 0.13, line.replace(" ", "\u00a0"), ha="left", family="DejaVu Sans Mono", size=9.5)
        for lane in range(lanes):
            works = who == "all" or (who == "odd" and lane % 2) or (who == "even" and not lane % 2)
            if who == "none":
                continue
            face = BLUE if works else GROUND
            place = (left + lane * cell, y)
            axes.add_patch(Rectangle(place, cell - 0.04, 0.26, facecolor=face, edgecolor=RULE, linewidth=0.8))
    arrow(axes, (5.42, 2.66), (5.42, 0.75), QUIET)
    text(axes, 5.3, 0.62, "time", QUIET, 9)
    text(axes, WIDTH / 2, 0.3, "Empty lanes wait: f and g together cost what both cost.", QUIET, 9)
    return drawn


def roofline() -> Figure:
    """What an H100 could make of each rung of the matmul ladder, by its data sheet and the lens's flops per byte."""
    from cuda_emulator.inspection import device

    page = (HERE.parent / "lens.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| (\w+) \| [\d.]+ \| [\d.-]+ \| [^|]+ \| ([\d.]+) \|", page, re.MULTILINE)
    rungs = {name: float(intensity) for name, intensity in found}
    h100 = device("H100")
    peak, bandwidth = h100.peak("float32") / 1e12, h100.bandwidth / 1e12

    drawn = figure(3.6)
    axes = drawn.add_axes((0.115, 0.15, 0.86, 0.73), facecolor=GROUND)
    intensity = np.geomspace(0.06, 100, 200)
    axes.loglog(intensity, np.minimum(peak, intensity * bandwidth), color=INK, linewidth=1.8)
    shown = {"naive": (8, -5), "coalesced": (8, -5), "tiled_16": (8, -5), "tiled_32": (8, -5), "warp_tiled": (-8, -19)}
    for name, offset in shown.items():
        place = (rungs[name], min(peak, rungs[name] * bandwidth))
        axes.plot(*place, "o", color=ORANGE, markersize=7)
        axes.annotate(name, place, offset, textcoords="offset points", color=INK, fontsize=9.5)
    axes.annotate("memory: 3.35 TB/s", (0.5, 3.0), (-6, 0), textcoords="offset points", color=BLUE, fontsize=9.5,
                  ha="right", va="bottom")  # fmt: skip
    axes.annotate("arithmetic: 66.9 TFLOP/s", (0.25, peak), (0, 5), textcoords="offset points", color=BLUE,
                  fontsize=9.5)  # fmt: skip
    axes.axhline(peak, color=RULE, linewidth=1, zorder=0)
    axes.set_ylim(0.1, 200)
    axes.set_xlim(0.06, 100)
    axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.set_xlabel("floating-point operations per byte of global memory", color=INK, fontsize=9.5)
    axes.set_title("TFLOP/s at most: an estimate from an H100's data sheet", color=INK, fontsize=10, loc="left")
    tidy(axes)
    return drawn


def occupancy() -> Figure:
    """How much of a multiprocessor is filled, against the shared memory that a block takes."""
    from cuda_emulator.inspection import occupancy as filled

    drawn = figure(3.0)
    axes = drawn.add_axes((0.115, 0.18, 0.86, 0.68), facecolor=GROUND)
    kilobytes = np.arange(0, 49)
    for threads, colour in ((128, BLUE), (256, ORANGE), (512, GREEN)):
        share = [100 * filled((9, 0), threads, 32, int(size) * 1024).share for size in kilobytes]
        axes.step(kilobytes, share, where="post", color=colour, linewidth=1.8)
        place, align = {128: ((22, 66), "left"), 256: ((47.5, 84), "right"), 512: ((47.5, 104), "right")}[threads]
        axes.annotate(f"{threads} threads a block", place, color=colour, fontsize=9.5, ha=align)
    axes.set_ylim(0, 112)
    axes.set_xlim(0, 48)
    axes.set_xticks([0, 8, 16, 24, 32, 40, 48])
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])
    axes.set_xlabel("shared memory of a block, KB", color=INK, fontsize=9.5)
    axes.set_title("Occupancy of a multiprocessor, compute capability 9.0, 32 registers", color=INK, fontsize=10,
                   loc="left")  # fmt: skip
    tidy(axes)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "cuda-hierarchy": hierarchy,
    "cuda-memory": memory,
    "cuda-divergence": divergence,
    "cuda-occupancy": occupancy,
    "cuda-roofline": roofline,
}
