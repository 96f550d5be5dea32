"""The three convolutional networks: their layers, and where their parameters and their work are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from style import BLUE, GREEN, INK, MINT, ORANGE, QUIET, RULE, SAND, SKY, WIDTH, canvas, text


@dataclass
class Part:
    """A layer with weights, or a residual block, and what follows it up to the next one."""

    name: str
    shape: tuple[int, ...]
    parameters: int = 0
    multiply_adds: int = 0
    after: list[str] = field(default_factory=list)


def parts(architecture: Any) -> Iterator[Part]:
    """The layers with weights in order; a block's layers together, batch normalisation with its convolution."""
    from shared.layers import BatchNorm, Conv, Dense, MaxPool, Residual, multiply_adds_of, parameters_of

    part, inside = None, Part("", ())
    for each in architecture.placed():
        count = sum(math.prod(parameter.shape) for parameter in parameters_of(each))
        layer, work = each.layer, multiply_adds_of(each)
        if "." in each.number:
            inside.parameters += count
            inside.multiply_adds += work
            continue
        if isinstance(layer, Conv | Dense | Residual):
            if part is not None:
                yield part
            part = Part(called(layer), each.output_shape, count, work)
        assert part is not None, "a network begins with a layer that has weights"
        if isinstance(layer, Residual):
            part.parameters, part.multiply_adds, inside = inside.parameters, inside.multiply_adds, Part("", ())
        if isinstance(layer, BatchNorm):
            part.parameters += count
        if isinstance(layer, MaxPool):
            part.after.append(f"{each.output_shape[1]} x {each.output_shape[2]}")
    assert part is not None
    yield part


def called(layer: Any) -> str:
    """A layer's name in the figure."""
    from shared.layers import Conv, Residual

    if isinstance(layer, Residual):
        return "residual"
    return f"conv {layer.size} x {layer.size}" if isinstance(layer, Conv) else "dense"


def networks() -> Figure:
    """Each network as a table: layers, shapes, and bars for the shares of parameters and multiply-adds."""
    from shared.architectures import NAMED

    known = {name: make() for name, make in NAMED.items()}
    rows = {name: list(parts(each)) for name, each in known.items()}
    pitch, gap = 0.29, 0.5
    height = 0.95 + sum(len(each) for each in rows.values()) * pitch + len(rows) * gap
    drawn, axes = canvas(height)
    text(
        axes,
        WIDTH / 2,
        height - 0.1,
        "Convolutions do the work, the first dense layer holds the parameters",
        size=10.5,
        va="top",
    )
    text(axes, 3.55, height - 0.52, "parameters", ORANGE, 9.5)
    text(axes, 4.85, height - 0.52, "multiply-adds", BLUE, 9.5)
    y = height - 0.62
    for name, found in rows.items():
        whole = known[name]
        y -= 0.22
        text(axes, 0.12, y, name, ha="left", weight="bold")
        text(axes, 3.55, y, f"{whole.parameter_count:,}", INK, 9.5)
        text(axes, 4.85, y, f"{whole.multiply_adds:,}", INK, 9.5)
        y -= 0.09
        axes.plot([0.12, WIDTH - 0.12], [y, y], color=RULE, linewidth=0.8)
        for part in found:
            y -= pitch
            image = len(part.shape) == 3
            fill, edge = (MINT, GREEN) if image else (SAND, ORANGE)
            if image:
                large = 0.05 + 0.14 * part.shape[1] / 28
                for depth in range(min(3, part.shape[0]))[::-1]:
                    corner = 0.14 + depth * 0.04, y + 0.02 + depth * 0.02
                    axes.add_patch(Rectangle(corner, large, large, facecolor=fill, edgecolor=edge, linewidth=0.7))
            else:
                axes.add_patch(Rectangle((0.14, y + 0.08), 0.31, 0.07, facecolor=fill, edgecolor=edge, linewidth=0.7))
            text(axes, 0.54, y + 0.12, part.name, INK, 9, ha="left")
            shape = " x ".join(map(str, part.shape)) + "".join(f" → {each}" for each in part.after)
            text(axes, 2.98, y + 0.12, shape, QUIET, 9, ha="right")
            for left, value, total, fill, edge in (
                (3.05, part.parameters, whole.parameter_count, SAND, ORANGE),
                (4.35, part.multiply_adds, whole.multiply_adds, SKY, BLUE),
            ):
                long = 0.92 * value / total
                axes.add_patch(Rectangle((left, y + 0.03), long, 0.18, facecolor=fill, edgecolor=edge, linewidth=0.8))
                text(axes, left + 0.05 + (0 if long > 0.55 else long), y + 0.12, f"{value:,}", INK, 9, ha="left")
        y -= gap - 0.31
    text(
        axes,
        WIDTH / 2,
        0.12,
        "Channels x rows x columns; the arrow is max pooling. Bars: share of the whole.",
        QUIET,
        9,
    )
    return drawn


FIGURES: dict[str, Callable[[], Figure]] = {
    "convolution-networks": networks,
}
