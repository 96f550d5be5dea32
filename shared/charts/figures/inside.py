"""Figures of one trained network: the weights of its units, what it confuses, its surest mistakes, dead units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from shared.charts.drawing.colours import BLUE, GREEN, INK, ORANGE, PAPER, RULE, VERMILION, shade, text_on
from shared.charts.drawing.save import saved
from shared.charts.drawing.style import SMALL, Chart, bare, house_style, new_figure
from shared.charts.drawing.svg import INK_IMAGE
from shared.charts.drawing.words import capital, in_words, listed, percent, plural, share
from shared.charts.figures import activation_maps
from shared.charts.figures.activation_maps import INKS, SIGNED, LayerMaps
from shared.terminal import attempt
from shared.training.metrics import EpochRecord

PARTS = {"train": (BLUE, "o", "-"), "validation": (ORANGE, "s", (0, (4, 2))), "test": (GREEN, "D", "-")}
"""Part of the data -> colour, marker and line style of its curve."""
LAYERS = ((BLUE, "-"), (ORANGE, (0, (4, 2))), (GREEN, (0, (1, 1))), (VERMILION, (0, (6, 1, 1, 1))))
"""Colour and dashes of each hidden layer; a fifth begins again."""

MOST_UNITS = 48
"""How many first-layer units are shown; more would be too small to see."""

_COLUMN = "Each image is one column of W1, with the pixel's weight where the pixel is. "

FULL_COLOUR = 0.7
"""The value at which weights and pulls have their full colour. At 1, a few large values would leave the others pale."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What there is to draw of a network.

    network: such as '784-128-10 relu'; loss: its name; names: of the classes
    trained: such as '10 epochs of mnist by stage 2: NumPy'
    unit_images: (units, height, width) in [-1, 1], of all first-layer units; unit_sizes: ‖weights‖ of each
    confusion: (classes, classes), row = label
    wrong: indices of the mistakes to show, surest first; images (wrong, height, width), or (wrong, height, width, 3)
        in colour, in [0, 1]; labels, predictions and confidence of them, (wrong,); pull: (wrong, height, width),
        d(score of the prediction - score of the label) / d pixel
    activity: for each hidden layer the share of test images for which each unit is not 0; empty where the activation
        has no exact 0
    records: of each epoch, empty where there are none
    what: what each unit of the first layer is called: "unit", or "filter" of a convolution
    maps: what each layer makes of one image, the image first, the scores last; empty for a stack of dense layers
    mapped: (label of that image, probability of each class)
    """

    network: str
    loss: str
    trained: str
    dataset: str
    names: Sequence[str]
    unit_images: np.ndarray
    unit_sizes: np.ndarray
    confusion: np.ndarray
    wrong: np.ndarray
    images: np.ndarray
    labels: np.ndarray
    predictions: np.ndarray
    confidence: np.ndarray
    pull: np.ndarray
    activity: Sequence[np.ndarray]
    records: Sequence[EpochRecord]
    what: str = "unit"
    maps: Sequence[LayerMaps] = ()
    mapped: tuple[int, Sequence[float]] = (0, ())

    @property
    def tested(self) -> int:
        return int(self.confusion.sum())

    @property
    def right(self) -> int:
        return int(np.trace(self.confusion))


def first_layer(findings: Findings) -> Chart:
    """The weights of the first layer, an image for each of the MOST_UNITS largest units; dead ones are framed."""
    units = len(findings.unit_images)
    chosen = np.sort(np.argsort(-findings.unit_sizes, kind="stable")[:MOST_UNITS])
    dead = set(np.flatnonzero(findings.activity[0] == 0).tolist()) if findings.activity else set()
    dead = dead if not findings.activity or len(findings.activity[0]) == units else set()
    filters = findings.what == "filter"
    classes = not filters and findings.network.count("-") == 1  # 784-10: the first layer is the last one
    noun, plural = ("class", "classes") if classes else (findings.what, f"{findings.what}s")
    number = len(dead & set(chosen.tolist()))
    some = "all" if len(chosen) == units else f"{len(chosen)} of {units}"
    where = "" if classes else " of the first layer"
    title = f"What each {noun} looks for: the weights of {some} {plural}{where}"
    title += ", the dead ones framed" if number > 1 else ", a dead one framed" if number else ""
    columns = min(8, len(chosen))
    rows = -(-len(chosen) // columns)
    height, width = findings.unit_images.shape[1:]
    gap = max(2, height // 12)
    mosaic = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap), np.nan)
    with house_style():
        figure = new_figure(title, _footer(findings), height=1.15 + 4.9 * mosaic.shape[0] / mosaic.shape[1])
        axes = figure.subplots()
        for place, unit in enumerate(chosen):
            y, x = place // columns * (height + gap), place % columns * (width + gap)
            mosaic[y : y + height, x : x + width] = findings.unit_images[unit]
            if filters:
                edge = (x - 0.5, y - 0.5), width, height
                axes.add_patch(Rectangle(*edge, fill=False, edgecolor=RULE, linewidth=0.8, clip_on=False))
            if unit in dead:
                frame = (x - 1, y - 1), width + 1, height + 1
                axes.add_patch(Rectangle(*frame, fill=False, edgecolor=INK, linewidth=1.2, clip_on=False))
        picture = axes.imshow(mosaic, SIGNED, vmin=-FULL_COLOUR, vmax=FULL_COLOUR, interpolation="nearest")
        bare(axes)
        bar = figure.colorbar(picture, ax=axes, location="bottom", shrink=0.5, aspect=30, pad=0.03)
        bar.set_ticks([-FULL_COLOUR, 0, FULL_COLOUR])
        bar.ax.set_xticklabels(["ink speaks against", "0", "ink speaks for"], fontsize=SMALL)
        bar.outline.set_visible(False)
    framed = f" {capital(in_words(number))} of them, framed, {'is' if number == 1 else 'are'} dead." if number else ""
    return Chart(
        "first_layer_weights",
        figure,
        title,
        f"The weights of {len(chosen)} of the {units} {plural}{where} of {findings.network} as images of "
        f"{height} by {width} pixels.{framed}",
        ("Each image is one filter, which is laid on every place of an image. " if filters else _COLUMN)
        + "Each has a colour scale of its own, symmetric about 0."
        + ("" if filters else " Pixels that are always empty keep the noise they were drawn with.")
        + framed,
    )


def confusion(findings: Findings) -> Chart:
    """The confusion matrix with its counts, mistakes coloured by how many there are."""
    counts, names = findings.confusion, list(findings.names)
    classes = len(names)
    errors = counts - np.diag(np.diag(counts))
    title = _confusion_headline(errors, names)
    long = max(map(len, names)) > 2
    with house_style():
        figure = new_figure(title, _footer(findings), height=4.8 + 0.5 * long)
        axes = figure.subplots()
        top = max(int(errors.max()), 1)
        for (row, column), number in np.ndenumerate(counts):
            right = row == column
            colour = RULE if right else shade(0.12 + 0.88 * (number / top) ** 0.7 if number else 0.0)
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, edgecolor=PAPER, lw=1.5))
            if number:
                axes.text(
                    column, row, f"{number:,}", ha="center", va="center", color=text_on(colour), gid="inside",
                    fontsize=8, fontweight="bold" if right else "normal",
                )  # fmt: skip
        totals = counts.sum(axis=1)
        for row in range(classes):
            if totals[row]:
                axes.annotate(
                    share(counts[row, row] / totals[row]), (classes - 0.5, row), (5, 0), textcoords="offset points",
                    ha="left", va="center", fontsize=8, annotation_clip=False,
                )  # fmt: skip
        axes.set(xlim=(-0.5, classes - 0.5), ylim=(classes - 0.5, -0.5), aspect="equal")
        axes.set_xticks(range(classes), names, rotation=90 if long else 0, fontsize=SMALL)
        axes.set_yticks(range(classes), names, fontsize=SMALL)
        axes.set(xlabel="what the network says", ylabel="what it is")
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    worst = _pairs(errors, names, 3)
    return Chart(
        "confusion",
        figure,
        title,
        f"Of {findings.tested:,} test images {findings.right:,} are classified rightly. "
        + (f"Most often confused: {listed(worst)}." if worst else "None is confused with another."),
        "A row is what the images are, a column what the network says: the diagonal, in grey, is right, everything "
        "else a mistake. At the right the share of each row that is right.",
    )


def most_wrong(findings: Findings) -> Chart | None:
    """The mistakes with the highest confidence; below each, how every pixel pulls. None if there are no mistakes."""
    shown = len(findings.wrong)
    if not shown:
        return None
    columns = min(4, shown)
    rows = -(-shown // columns)
    title = (
        f"Sure and wrong: {findings.names[findings.labels[0]]} taken for {findings.names[findings.predictions[0]]} "
        f"with {_belief(findings.confidence[0])}"
    )
    with house_style():
        figure = new_figure(title, _footer(findings), height=0.85 + 2.75 * rows)
        grid_of_axes = figure.subplots(2 * rows, columns, squeeze=False)
        for axes in grid_of_axes.flat:
            axes.set_visible(False)
        for i in range(shown):
            digit, pulled = (grid_of_axes[2 * (i // columns) + part, i % columns] for part in (0, 1))
            for axes in (digit, pulled):
                axes.set_visible(True)
                bare(axes)
            drawn = digit.imshow(findings.images[i], INKS, vmin=0, vmax=1, interpolation="nearest")
            if findings.images.ndim == 3:  # ink is as dark as the text around it, but a colour is what it is
                drawn.set_gid(f"{INK_IMAGE}-{i}")
            label, predicted = findings.names[findings.labels[i]], findings.names[findings.predictions[i]]
            digit.set_title(f"{label} as {predicted}\n{_belief(findings.confidence[i])}", fontsize=SMALL, loc="left")
            largest = FULL_COLOUR * float(np.abs(findings.pull[i]).max()) or 1.0
            pulled.imshow(findings.pull[i], SIGNED, vmin=-largest, vmax=largest, interpolation="nearest")
            grey = findings.images[i] if findings.images.ndim == 3 else findings.images[i].mean(axis=2)
            middle = (grey.min() + grey.max()) / 2
            if grey.max() - grey.min() > 0.1:  # less is noise, and has no outline
                pulled.contour(grey, levels=[middle], colors=[INK], linewidths=0.6)
    mistakes = [
        f"a {findings.names[label]} taken for a {findings.names[predicted]} with {_belief(belief)}"
        for label, predicted, belief in zip(
            findings.labels[:3], findings.predictions[:3], findings.confidence[:3], strict=True
        )
    ]
    return Chart(
        "most_wrong",
        figure,
        title,
        f"The {shown} test images of {findings.dataset} that {findings.network} is most confidently wrong about, the "
        f"surest first: {listed(mistakes)}{' and so on' if shown > len(mistakes) else ''}.",
        "Above, the image; below, what a little more ink in each pixel would do: towards the wrong answer (orange) or "
        "back to the right one (blue). It is the gradient of the wrong class's score minus that of the right one's. "
        f"The outline is the image's.{_no_belief(findings)}",
    )


def activity(findings: Findings) -> Chart | None:
    """How often each hidden unit is not 0, the rarest first; dead ones lie on the axis. None where no 0 is exact."""
    if not findings.activity:
        return None
    dead = [int(np.sum(shares == 0)) for shares in findings.activity]
    units = [len(shares) for shares in findings.activity]
    if sum(dead):
        title = f"{sum(dead)} of {sum(units)} hidden units never {'says' if sum(dead) == 1 else 'say'} anything"
    else:
        title = f"All {sum(units)} hidden units say something to some image: none is dead"
    with house_style():
        figure = new_figure(title, _footer(findings), height=3.6)
        axes = figure.subplots()
        for i, shares in enumerate(findings.activity):
            colour, dashes = LAYERS[i % len(LAYERS)]
            across = 100 * (np.arange(len(shares)) + 0.5) / len(shares)
            label = f"layer {i + 1}: {dead[i]} of {units[i]} dead"
            style: dict[str, Any] = {"linestyle": dashes, "marker": "o", "markersize": 3, "label": label}
            axes.plot(across, 100 * np.sort(shares), color=colour, **style)
        axes.set(xlim=(0, 100), ylim=(-3, 103))
        axes.set(xlabel="units of the layer, rarest first (%)")
        axes.set(ylabel="test images for which it is not 0 (%)")
        axes.legend(loc="best")  # a convolution's curve often runs along the top
    counts = [f"in layer {i + 1} {dead[i]} of {units[i]}" for i in range(len(units))]
    return Chart(
        "activity",
        figure,
        title,
        f"Dead units of {findings.network} on {findings.tested:,} test images: {listed(counts)}.",
        "Each dot is a unit. One at 0 % is dead: its ReLU is 0 for every image, so that no gradient reaches it. One at "
        "100 % never bends: for these images it might as well have no activation.",
    )


def learning(findings: Findings) -> Chart | None:
    """Loss and accuracy after each epoch on all data there is a number for. None where no epoch was finished."""
    records = findings.records
    if not records:
        return None
    last = records[-1]
    known = last.test_accuracy if last.test_accuracy is not None else last.train_accuracy
    epochs = plural(len(records), "epoch")
    title = f"{percent(known)} right after {epochs}" if known is not None else f"The loss over {epochs}"
    with house_style():
        figure = new_figure(title, _footer(findings), height=3.6)
        left, right = figure.subplots(1, 2)
        for part, (colour, marker, dashes) in PARTS.items():
            style = {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 4, "label": part}
            for axes, measure, scale in ((left, "loss", 1), (right, "accuracy", 100)):
                points = [(r.epoch, scale * getattr(r, f"{part}_{measure}")) for r in records if _has(r, part, measure)]
                if points:
                    axes.plot(*zip(*points, strict=True), **style)
        left.set(title="Loss", xlabel="epoch", ylabel="mean over the images")
        left.set_ylim(bottom=0)
        right.set(title="Accuracy", xlabel="epoch", ylabel="classified rightly (%)")
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))  # 1: a run may have one epoch
            axes.margins(x=0.06)
        right.legend(loc="lower right")
    best = min((r for r in records if r.test_loss is not None), key=lambda r: r.test_loss or 0.0, default=None)
    least = f" The test loss is least after epoch {best.epoch}, {best.test_loss:.3f}." if best is not None else ""
    return Chart(
        "learning_curves",
        figure,
        title,
        f"Loss and accuracy of {findings.network} on {findings.dataset} over {epochs}: training loss "
        f"{last.train_loss:.3f} at the end.{least}",
        "The training loss is the mean over the epoch, while the network is still changing; the others are measured "
        f"at its end. Where training and test curves part, the network learns its images by heart.{least}",
    )


def layers(findings: Findings) -> Chart | None:
    """What each layer makes of one image. None for a stack of dense layers."""
    if not findings.maps:
        return None
    return activation_maps.drawing(findings.maps, findings.network, findings.names, *findings.mapped, _footer(findings))


FIGURES: tuple[Callable[[Findings], Chart | None], ...] = (
    first_layer,
    layers,
    confusion,
    most_wrong,
    activity,
    learning,
)


def charts(findings: Findings) -> list[Chart]:
    """Every figure that there is to draw. A figure that cannot be drawn costs a sentence."""
    drawn = [attempt(f"the figure {figure.__name__} was not drawn", partial(figure, findings)) for figure in FIGURES]
    return [chart for chart in drawn if chart]


def save_all(findings: Findings, folder: Path) -> list[Path]:
    """Write every figure into the folder as NAME.png, NAME.svg, NAME-dark.png and NAME-dark.svg; returns the paths."""
    return [path for chart in charts(findings) for path in saved(chart, folder / chart.name, dark=True)]


def confused(counts: np.ndarray, most: int) -> list[tuple[int, int, int]]:
    """(label, prediction, how often) of the commonest mistakes in a confusion matrix, the commonest first."""
    errors = counts - np.diag(np.diag(counts))
    order = np.argsort(-errors, axis=None, kind="stable")[:most]
    places = [divmod(int(flat), len(counts)) for flat in order]
    return [(row, column, int(errors[row, column])) for row, column in places if errors[row, column]]


def _confusion_headline(errors: np.ndarray, names: Sequence[str]) -> str:
    worst = confused(errors, 1)
    if not worst:
        return "Nothing is taken for anything else"
    row, column, number = worst[0]
    times = "once" if number == 1 else f"{number:,} times"
    return f"Most often confused: {names[row]} taken for {names[column]}, {times}"


def _pairs(errors: np.ndarray, names: Sequence[str], most: int) -> list[str]:
    return [f"{names[row]} taken for {names[column]} ({number:,})" for row, column, number in confused(errors, most)]


def _belief(confidence: float) -> str:
    """A confidence in percent, never rounded up to certainty."""
    return percent(min(float(confidence), 0.999))


def _no_belief(found: Findings) -> str:
    if found.loss == "softmax_cross_entropy":
        return ""
    return f" The scores of {found.loss} are no beliefs: the percentages, their softmax, only rank the mistakes."


def _has(record: EpochRecord, part: str, what: str) -> bool:
    return getattr(record, f"{part}_{what}", None) is not None


def _footer(found: Findings) -> str:
    return f"{found.network} · {found.trained} · {found.tested:,} test images"
