"""Weeks 17 and 18: inside a trained network, and the step size of a gradient check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from style import (
    BLUE,
    GROUND,
    INK,
    ORANGE,
    PANEL,
    QUIET,
    RULE,
    canvas,
    cells,
    figure,
    plain,
    text,
)


def trained(weight_decay: float) -> Any:
    """784-32-10 after ten epochs of the bundled images in batches of 32."""
    from shared.data.datasets import load_dataset
    from stage2_numpy.network import Network
    from stage2_numpy.optimizers import SGD

    images = load_dataset("mnist-subset").train
    network, rng = Network([784, 32, 10], seed=0), np.random.default_rng(0)
    optimizer = SGD(0.1, weight_decay=weight_decay)
    for _ in range(10):
        order = rng.permutation(len(images))
        for start in range(0, len(order), 32):
            batch = order[start : start + 32]
            network.train_step(images.x[batch], images.y[batch], optimizer)
    return network


def looking_inside() -> Figure:
    """Two units' weights as images, with weight decay and without; a mistake, and what speaks for and against it."""
    from groundup import inside
    from shared.data.datasets import load_dataset

    test = load_dataset("mnist-subset").test
    plainly, decayed = ([np.array(each) for each in trained(decay).parameters] for decay in (0.0, 0.01))
    beliefs = inside.probabilities(inside.scores(decayed, "relu", test.x))
    wrong = int(inside.most_wrong(beliefs, test.y, 1)[0])
    label, taken = int(test.y[wrong]), int(beliefs[wrong].argmax())
    picture = test.x[wrong : wrong + 1]
    pull = np.subtract(*(inside.saliency(decayed, "relu", picture, np.array([each])) for each in (taken, label)))
    drawn, axes = canvas(3.85)
    side, gap, wide = 0.0455, 0.08, 28 * 0.0455

    def signed(left: float, top: float, values: np.ndarray, least: float) -> None:
        axes.add_patch(Rectangle((left, top - wide), wide, wide, facecolor=PANEL, edgecolor=RULE))
        cells(axes, left, top, map(tuple, np.argwhere(values > least)), side, ORANGE)
        cells(axes, left, top, map(tuple, np.argwhere(values < -least)), side, BLUE)

    text(axes, 0.12, 3.7, "what two of the 32 hidden units look for", size=10, ha="left")
    for place, (unit, (parameters, words)) in enumerate(
        (unit, pair) for unit in (3, 8) for pair in ((plainly, "no weight decay"), (decayed, "weight decay"))
    ):
        left = 0.12 + place * (wide + gap)
        signed(left, 3.55, inside.first_layer_images(parameters[0], (28, 28))[unit], 0.3)
        text(axes, left + wide / 2, 2.15, words, QUIET, 9.5)
    top = 1.5
    text(axes, 0.12, 1.67, f"the surest mistake: a {label} taken for a {taken}", size=10, ha="left")
    axes.add_patch(Rectangle((0.12, top - wide), wide, wide, facecolor=PANEL, edgecolor=RULE))
    ink = picture.reshape(28, 28)
    cells(axes, 0.12, top, map(tuple, np.argwhere((ink > 0.2) & (ink <= 0.6))), side, QUIET)
    cells(axes, 0.12, top, map(tuple, np.argwhere(ink > 0.6)), side, INK)
    signed(0.12 + wide + gap, top, pull.reshape(28, 28) / np.abs(pull).max(), 0.25)
    words_at = 0.25 + 2 * (wide + gap)
    text(axes, words_at, top - 0.2, f"{100 * beliefs[wrong, taken]:.1f} % sure", INK, 10, ha="left")
    text(
        axes,
        words_at,
        top - 0.55,
        f"orange: more ink there speaks\nfor {taken} and against {label}",
        ORANGE,
        10,
        ha="left",
    )
    text(
        axes, words_at, top - 1.0, f"blue: more ink there speaks\nfor {label} and against {taken}", BLUE, 10, ha="left"
    )
    return drawn


def step_sizes() -> Figure:
    """How far a measured slope of tanh is from its derivative, against the step it is measured with."""
    h = np.logspace(-12, -0.5, 231)
    at = 0.7
    exact = 1 - np.tanh(at) ** 2
    drawn = figure(3.3)
    axes = drawn.add_axes((0.115, 0.16, 0.86, 0.73), facecolor=GROUND)
    both = np.abs((np.tanh(at + h) - np.tanh(at - h)) / (2 * h) - exact)
    one = np.abs((np.tanh(at + h) - np.tanh(at)) / h - exact)
    axes.loglog(h, np.maximum(one, 1e-16), color=ORANGE, linewidth=1.2)
    axes.loglog(h, np.maximum(both, 1e-16), color=BLUE, linewidth=1.6)
    best = np.finfo(np.float64).eps ** (1 / 3)
    axes.axvline(best, color=QUIET, linewidth=1, linestyle=(0, (3, 2)))
    axes.annotate("∛eps = 6e-6", (best, 3e-2), (5, 0), textcoords="offset points", color=QUIET, fontsize=9.5)
    axes.annotate(
        "rounding grows\nas h shrinks", (3e-12, 3e-7), (6, 40), textcoords="offset points", color=INK, fontsize=9.5
    )
    axes.annotate("one side", (2e-3, 4e-3), color=ORANGE, fontsize=9.5, ha="right")
    axes.annotate("the formula errs\nby less as h shrinks", (0.35, 1.2e-10), color=INK, fontsize=9.5, ha="right")
    axes.annotate("both sides", (4e-3, 3e-8), color=BLUE, fontsize=9.5)
    axes.set_ylim(1e-14, 1)
    axes.set_xlim(1e-12, 0.4)
    axes.set_xticks([1e-12, 1e-9, 1e-6, 1e-3], ["1e-12", "1e-9", "1e-6", "1e-3"])
    axes.set_yticks([1e-12, 1e-8, 1e-4, 1], ["1e-12", "1e-8", "1e-4", "1"])
    axes.minorticks_off()
    axes.set_xlabel("h, the step", color=INK, fontsize=9.5)
    plain(axes, "error of the measured slope of tanh at 0.7, in float64", zero=False)
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "week17-inside": looking_inside,
    "week18-steps": step_sizes,
}
