"""What each layer of a convolutional network makes of one image: its channels as pictures, a row for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from shared.charts.drawing.colours import INK, ORANGE, QUIET, RULE
from shared.charts.drawing.style import SMALL, SMALLEST, WIDTH, Chart, bare, house_style, new_figure
from shared.charts.drawing.svg import INK_IMAGE
from shared.charts.drawing.words import percent, plural

SHOWN = 12
"""How many channels of a layer are shown: those that the image excites most, in their order."""
SIDE, GAP, TEXT = 0.36, 0.04, 0.34
"""Inches: a picture, the space between two, and the line of text above a row."""
INKS = LinearSegmentedColormap.from_list("ink", [f"{INK}00", INK])
SIGNED = LinearSegmentedColormap.from_list("signed", ["#2B8CCBFF", "#2B8CCB00", "#D55E0000", "#D55E00FF"])
"""Blue below 0, orange above, transparent at 0: its colours suit light and dark paper."""


@dataclass(frozen=True, eq=False)
class LayerMaps:
    """The output of one layer for one image.

    words: the layer, such as 'Conv(6, 5) · relu'; output: (channels, height, width) or (features,)
    is_layer: False for what is worked out of a layer's output, such as Grad-CAM
    """

    words: str
    output: np.ndarray
    is_layer: bool = True


def drawing(
    layers: Sequence[LayerMaps], network: str, names: Sequence[str], label: int, belief: Sequence[float], footer: str
) -> Chart:
    """The figure. layers: the image itself is the first, the scores of the classes are the last.

    names: of the classes; label: the right class; belief: the probability of each class
    """
    said = int(np.argmax(belief))
    image = f"{_article(names[label])} {names[label]}"
    verdict = f"recognises {image}" if said == label else f"takes {image} for {_article(names[said])} {names[said]}"
    title = f"How {network} {verdict}, layer by layer"
    rows = [layer.output if layer.output.ndim == 1 else _chosen(layer.output) for layer in layers[:-1]]
    height = (
        sum(TEXT + (SIDE * min(1.0, row.shape[1] / row.shape[2]) if row.ndim == 3 else 0.16) for row in rows)
        + TEXT
        + 1.0
    )
    with house_style():
        figure = new_figure(title, footer, height=0.9 + height)
        axes = figure.subplots()
        axes.set(xlim=(0, WIDTH - 0.2), ylim=(height, 0), aspect="equal")
        bare(axes)
        at = 0.0
        for i, (layer, row) in enumerate(zip(layers, rows, strict=False)):
            axes.text(0, at + TEXT - 0.12, layer.words, fontsize=SMALL, va="center")
            shape = "\u00d7".join(map(str, layer.output.shape))
            of = "" if len(row) == len(layer.output) or row.ndim == 1 else f", the {len(row)} brightest"
            axes.text(
                WIDTH - 0.2, at + TEXT - 0.12, f"{shape}{of}", fontsize=SMALLEST, color=QUIET, ha="right", va="center"
            )
            at += TEXT
            at += _pictures(axes, at, row, i) if row.ndim == 3 else _features(axes, at, row, i)
        _beliefs(axes, at + TEXT, names, label, belief)
    passed = [layer for layer in layers[1:] if layer.is_layer]
    dead = [layer.words for layer in passed[:-1] if not np.any(layer.output)]
    return Chart(
        "activation_maps",
        figure,
        title,
        f"One test image, {names[label]}, on its way through {plural(len(passed), 'layer')} of {network}: "
        + "; ".join(
            f"{layer.words}, {layer.output.shape[0]} channels"
            for layer in [layers[0], *passed]
            if layer.output.ndim == 3
        )
        + "".join(f"; {layer.words}" for layer in layers if not layer.is_layer)
        + f". The network says {names[said]} with {percent(min(belief[said], 0.999))}."
        + (f" Nothing passes {', '.join(dead)}." if dead else ""),
        "Every picture is one channel: dark is large, white is 0; where a layer has negative numbers, orange is above "
        "0 and blue below. Each row has a scale of its own. The bars are the probabilities of the classes, the right "
        "one in orange.",
    )


def _article(name: str) -> str:
    return "an" if name[:1] in "8aeiou" else "a"


def _chosen(output: np.ndarray) -> np.ndarray:
    """The channels that the image excites most, in their order."""
    energy = np.abs(output).sum(axis=(1, 2))
    return output[np.sort(np.argsort(-energy, kind="stable")[:SHOWN])]


def _pictures(axes: Axes, top: float, row: np.ndarray, number: int) -> float:
    signed = float(row.min()) < 0
    largest = float(np.abs(row).max()) or 1.0
    pixels_high, pixels_wide = row.shape[1:]
    longer = max(pixels_high, pixels_wide)
    high, wide = SIDE * pixels_high / longer, SIDE * pixels_wide / longer
    for i, channel in enumerate(row):
        left = i * (SIDE + GAP)
        place = (left, left + wide, top + high, top)
        picture = axes.imshow(
            channel, SIGNED if signed else INKS, extent=place, vmin=-largest if signed else 0.0, vmax=largest,
            interpolation="nearest",
        )  # fmt: skip
        if not signed:
            picture.set_gid(f"{INK_IMAGE}-{number}-{i}")
        axes.add_patch(Rectangle((left, top), wide, high, fill=False, edgecolor=RULE, linewidth=0.7))
    return high


def _features(axes: Axes, top: float, row: np.ndarray, number: int) -> float:
    """A row of features as one strip."""
    high, width = 0.16, SHOWN * (SIDE + GAP) - GAP
    signed = float(row.min()) < 0
    largest = float(np.abs(row).max()) or 1.0
    picture = axes.imshow(
        row[np.newaxis], SIGNED if signed else INKS, extent=(0, width, top + high, top), aspect="auto",
        vmin=-largest if signed else 0.0, vmax=largest, interpolation="nearest",
    )  # fmt: skip
    if not signed:
        picture.set_gid(f"{INK_IMAGE}-{number}")
    axes.add_patch(Rectangle((0, top), width, high, fill=False, edgecolor=RULE, linewidth=0.7))
    return high


def _beliefs(axes: Axes, top: float, names: Sequence[str], label: int, belief: Sequence[float]) -> None:
    """A bar for each class, as high as its probability."""
    axes.text(0, top - 0.12, "probability of each class", fontsize=SMALL, va="center")
    high, step = 0.55, (SHOWN * (SIDE + GAP) - GAP) / len(names)
    long = max(map(len, names)) > 2
    for i, (name, value) in enumerate(zip(names, belief, strict=True)):
        left = i * step + 0.12 * step
        axes.add_patch(
            Rectangle(
                (left, top + high * (1 - value)), 0.76 * step, high * value, color=ORANGE if i == label else QUIET
            )
        )
        axes.text(
            left + 0.38 * step, top + high + (0.05 if long else 0.1), name, fontsize=SMALLEST if long else SMALL,
            ha="right" if long else "center", va="top" if long else "center", rotation=35 if long else 0,
        )  # fmt: skip
    axes.plot([0, SHOWN * (SIDE + GAP) - GAP], [top + high] * 2, color=QUIET, linewidth=0.8)
