"""Draws the figures of the guides.

    python docs/figures/draw.py             all of them, into docs/figures
    python docs/figures/draw.py roofline    those with this in their name

Each is an SVG that carries its ground and two palettes: it is light on a light screen and dark on a dark one, in the
book and wherever else it is shown. Wide enough for a page, with letters that can still be read on a phone. Numbers in a
figure are computed here, by the project's own code, or come from the data sheets in groundup/lens/devices.py.

    from draw import figure, save           for scripts beside this one, with figures of their own
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

PALETTE = {
    "ink": ("#222222", "#e8e8e6"),
    "quiet": ("#5c5c5c", "#a8a8a4"),
    "rule": ("#d0d0ce", "#484846"),
    "ground": ("#ffffff", "#191918"),
    "panel": ("#f1f1ee", "#262625"),
    "blue": ("#0072b2", "#56b4e9"),
    "sky": ("#cfe4f2", "#1d3a4a"),
    "orange": ("#b35900", "#f0a03c"),
    "sand": ("#f8ddaa", "#5e481c"),
    "green": ("#00684b", "#4fd0a5"),
    "mint": ("#c9ebdf", "#17443a"),
    "pink": ("#a8457f", "#dd9cc0"),
}
"""Name -> what it is on a light screen and on a dark one. Okabe and Ito's colours, with text dark or light enough."""

INK, QUIET, RULE, GROUND, PANEL = (PALETTE[name][0] for name in ("ink", "quiet", "rule", "ground", "panel"))
BLUE, SKY, ORANGE, SAND = (PALETTE[name][0] for name in ("blue", "sky", "orange", "sand"))
GREEN, MINT, PINK = (PALETTE[name][0] for name in ("green", "mint", "pink"))
"""What figures are drawn with; `save` puts both palettes behind the names."""

WIDTH = 5.6
"""Inches. On a phone a figure shrinks to some 3.6, so text is drawn at 9 points or more."""


def figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure in the house style. Sizes in inches."""
    drawn = Figure(figsize=(width, height), facecolor=GROUND)
    FigureCanvasSVG(drawn)
    return drawn


def canvas(height: float, width: float = WIDTH) -> tuple[Figure, Any]:
    """A figure with one field from edge to edge, measured in inches from the lower left corner."""
    drawn = figure(height, width)
    axes = drawn.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    return drawn, axes


def save(drawn: Figure, name: str, folder: Path = HERE) -> Path:
    """Write NAME.svg with both palettes in it. The same figure gives the same file, byte for byte."""
    text = StringIO()
    settings = {"svg.hashsalt": name, "svg.fonttype": "path", "font.family": "DejaVu Sans"}
    with matplotlib.rc_context(settings):
        drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, facecolor=GROUND)
    svg = text.getvalue()
    for variable, (light, _) in PALETTE.items():
        svg = re.sub(light, f"var(--{variable})", svg, flags=re.IGNORECASE)
    left = sorted(set(re.findall(r"#[0-9a-f]{6}(?=[;\"])", svg)))
    if left:
        raise ValueError(f"{name}: drawn in {', '.join(left)}, which PALETTE does not have")
    light, dark = (";".join(f"--{variable}:{both[look]}" for variable, both in PALETTE.items()) for look in range(2))
    style = f"<style>svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    svg = re.sub(r"(<svg[^>]*>)", rf"\1{style}", svg, count=1)
    path = folder / f"{name}.svg"
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    return path


def box(axes: Any, x: float, y: float, width: float, height: float, fill: str = PANEL, edge: str = RULE) -> None:
    """A rectangle with its lower left corner at (x, y)."""
    style = "round,pad=0,rounding_size=0.05"
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=fill, edgecolor=edge, linewidth=1))


def text(axes: Any, x: float, y: float, words: str, colour: str = INK, size: float = 10, **more: Any) -> None:
    """Words, in the middle of (x, y) unless told otherwise."""
    axes.text(x, y, words, **{"color": colour, "fontsize": size, "ha": "center", "va": "center", **more})


def arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str = INK) -> None:
    """From one place to another."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


# ---- backpropagation


def backpropagation() -> Figure:
    """The chain of guides/backpropagation.md: values forward, derivatives backward, for the first sample."""
    from stage1_pure_python.activations import relu, relu_backward
    from stage1_pure_python.dense import Dense
    from stage1_pure_python.losses import softmax_cross_entropy, softmax_cross_entropy_backward

    x, labels = [[1.0, 2.0], [2.0, -1.0]], [0, 1]
    first = Dense([[1.0, -1.0, 0.5], [0.5, 1.0, -1.0]], [0.0, 0.5, 1.0])
    second = Dense([[1.0, 0.0], [-1.0, 1.0], [-0.5, 0.5]], [1.0, 0.0])
    z1 = first.forward(x)
    h = relu(z1)
    z2 = second.forward(h)
    g2 = softmax_cross_entropy_backward(z2, labels)
    grad_h = second.backward(g2)
    assert grad_h is not None
    g1 = relu_backward(grad_h, z1, h)
    loss = softmax_cross_entropy(z2, labels)

    drawn, axes = canvas(3.55)
    columns = [
        ("x", x[0], None),
        ("z1", z1[0], g1[0]),
        ("h", h[0], grad_h[0]),
        ("z2", z2[0], g2[0]),
        ("L", [loss], [1.0]),
    ]
    wide, gap, left = 0.74, 0.43, 0.1
    between = ["xW$_1$+b$_1$", "ReLU", "hW$_2$+b$_2$", "loss"]
    for number, (name, values, slopes) in enumerate(columns):
        at = left + number * (wide + gap)
        middle = at + wide / 2
        text(axes, middle, 3.3, f"{name[0]}$_{name[1]}$" if len(name) == 2 else name, size=13)
        box(axes, at, 1.98, wide, 1.06, SKY, BLUE)
        for row, value in enumerate(values):
            text(axes, middle, 2.51 + (len(values) - 1) * 0.15 - row * 0.3, minus(value))
        if slopes is not None:
            box(axes, at, 0.42, wide, 1.06, SAND, ORANGE)
            for row, slope in enumerate(slopes):
                text(axes, middle, 0.95 + (len(slopes) - 1) * 0.15 - row * 0.3, minus(slope))
        if number < len(between):
            arrow(axes, (at + wide + 0.03, 2.51), (at + wide + gap - 0.03, 2.51), BLUE)
            text(axes, at + wide + gap / 2, 1.73, between[number], QUIET, 9)
            if number:
                arrow(axes, (at + wide + gap - 0.03, 0.95), (at + wide + 0.03, 0.95), ORANGE)
    text(axes, left, 0.95, "above:\nvalues\nbelow:\ndL/d…", QUIET, 9, ha="left")
    text(axes, WIDTH / 2, 0.16, "First sample of two. Where z$_1$ is negative, nothing passes back.", QUIET, 9)
    return drawn


def minus(value: float) -> str:
    """A number with as many digits as it has, four at most, and a true minus sign."""
    return f"{value:.4f}".rstrip("0").rstrip(".").replace("-", "\u2212")


# ---- CUDA


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
    from groundup.lens.devices import device

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
    from groundup.compiling.occupancy import occupancy as filled

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


# ---- numerics


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


def tidy(axes: Any) -> None:
    """Axes in the house style: two lines, quiet ticks."""
    axes.tick_params(colors=QUIET, labelsize=9, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(QUIET)


FIGURES: dict[str, Callable[[], Figure]] = {
    "backpropagation": backpropagation,
    "cuda-hierarchy": hierarchy,
    "cuda-memory": memory,
    "cuda-divergence": divergence,
    "cuda-occupancy": occupancy,
    "cuda-roofline": roofline,
    "numerics-rounding": rounding,
}
"""File name without its ending -> what draws it."""


def main(wanted: str = "") -> None:
    for name, draw in FIGURES.items():
        if wanted in name:
            with matplotlib.rc_context({"font.family": "DejaVu Sans"}):
                print(save(draw(), name))


if __name__ == "__main__":
    main(*sys.argv[1:])
