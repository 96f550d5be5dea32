"""Training curves of all stages over each other: the same network, so they should be one curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator

from shared.bench.measuring.rows import LIBRARIES, Curve
from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.colours import pale
from shared.charts.drawing.style import Chart, house_style, new_figure
from shared.charts.drawing.words import capital, in_words, listed, percent, two_digits


def training_curves(results: Results, *, emulated: bool = True, agree: bool | None = None) -> Chart | None:
    """Training loss and test accuracy against epochs, of the training that most stages did; the first stage's line is
    the widest, so that all are seen where they coincide.

    emulated: whether to show the emulator's curve, too, named as such; it learns what a GPU would learn.
    agree: the verdict of an equivalence check on these trainings, for the headline; without it (None) the headline says
    how far the curves lie apart. Returns None if no stage has a curve.
    """
    curves = _case([curve for curve in results.curves if emulated or not curve.emulated])
    if not curves:
        return None
    title = _headline(curves, agree)
    with house_style():
        figure = new_figure(title, who.footer(results), height=3.9)
        left, right = figure.subplots(1, 2)
        for place, curve in enumerate(curves):
            style = _overlay(curve.stage, place, len(curves))
            label = who.name(curve.stage) + (",\nemulated" if curve.emulated else "")
            left.plot(curve.epochs, curve.loss, label=label, **style)
            right.plot(curve.epochs, [100 * value for value in curve.accuracy], label=label, **style)
        left.set(title="Training loss", xlabel="epoch", ylabel="cross-entropy (nats)")
        right.set(title="Test accuracy", xlabel="epoch", ylabel="images classified rightly (%)")
        left.set_ylim(bottom=0)
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.margins(x=0.06)
        right.legend(loc="lower right", handlelength=2.6)
    some = curves[0]
    said = listed(
        [
            f"{who.title(curve.stage, emulated=curve.emulated)} {curve.loss[-1]:.3f} and {percent(curve.accuracy[-1])}"
            for curve in curves
        ]
    )
    return Chart(
        "training_curves",
        figure,
        title,
        f"Loss and test accuracy of {some.network} on {some.dataset} after {some.epochs[-1]} epochs: {said}.",
        "Every stage starts from the same weights and sees the same images in the same order. The lines lie on each "
        "other where the stages compute the same; the wider ones are drawn first, so that none hides another.",
    )


def _case(curves: Sequence[Curve]) -> list[Curve]:
    """The curves of the training that most stages did; of several such trainings the longest. If a stage has two
    curves of it, the first."""
    cases: dict[tuple[str, str], dict[str, Curve]] = {}
    for curve in curves:
        cases.setdefault((curve.network, curve.dataset), {}).setdefault(curve.stage, curve)

    def rank(case: dict[str, Curve]) -> tuple[int, int]:
        return len(set(case) - set(LIBRARIES)), max(len(curve.epochs) for curve in case.values())

    best = max(cases.values(), key=rank, default={})
    return [best[stage] for stage in who.ordered(best)]


def _headline(curves: Sequence[Curve], agree: bool | None) -> str:
    end = curves[0].accuracy[-1]
    if len(curves) == 1:
        return f"{capital(who.name(curves[0].stage))} learns to {percent(end)} in {curves[0].epochs[-1]} epochs"
    number = (
        f"{capital(in_words(len(curves)))} {'contenders' if any(c.stage in LIBRARIES for c in curves) else 'stages'}"
    )
    if agree is False:
        return f"{number} that should lie on each other and do not"
    if agree:
        return f"{number}, one curve: they are the same network, {percent(end)} right"
    apart = max(max(epoch) - min(epoch) for epoch in zip(*(curve.accuracy for curve in curves), strict=False))
    if apart == 0:
        return f"{number}, one curve: {percent(end)} after {curves[0].epochs[-1]} epochs"
    points = f"{two_digits(100 * apart)} point{'' if two_digits(100 * apart) == '1' else 's'}"
    return f"{number} stay within {points} of each other, to {percent(end)}"


def _overlay(stage: str, place: int, number: int) -> dict[str, Any]:
    width = 9.0 - 7.0 * place / max(number - 1, 1)
    solid = place == 0 or place < number - 1
    return {
        "color": pale(stage) if place == 0 and number > 1 else who.colour(stage),
        "linewidth": width,
        "linestyle": "-" if solid else (0, (3, 1.5)),
        "solid_capstyle": "round",
        "marker": "o",
        "markersize": width + 3,
    }
