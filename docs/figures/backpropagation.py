"""The chain of the guide to backpropagation."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from style import (
    BLUE,
    ORANGE,
    QUIET,
    SAND,
    SKY,
    WIDTH,
    arrow,
    box,
    canvas,
    minus,
    text,
)


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


FIGURES: dict[str, Callable[[], Figure]] = {
    "backpropagation": backpropagation,
}
