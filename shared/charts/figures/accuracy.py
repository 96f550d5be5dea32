"""Test accuracy against seconds of training: how long until it is good enough?"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.axes import log_axis
from shared.charts.drawing.colours import INK, PAPER
from shared.charts.drawing.style import SMALL, Chart, house_style, new_figure, patch
from shared.charts.drawing.words import as_fast, capital, duration, listed, percent, share

TARGETS = {"mnist": 0.97, "mnist-subset": 0.9}
"""Data set -> target accuracy, which this network reaches in a few epochs."""


def accuracy_in_time(results: Results, *, emulated: bool = False) -> Chart | None:
    """Accuracy after each epoch against the seconds of training so far, on a log axis, with the target's line and the
    time to it for each contender.

    The times are those of the `target` rows if there are any, else the end of the first epoch at the target. Of several
    data sets the figure shows the one with the most contenders that are not emulated, MNIST before its subset.
    emulated: show the emulator's curve, too; it is dashed, named, and never in the headline. Returns None if there is
    no other curve.
    """
    curves = _case([curve for curve in results.curves if emulated or not curve.emulated])
    own_curves = [curve for curve in curves if not curve.emulated]
    if not own_curves:
        return None
    target = _target(results, curves[0].dataset)
    reached = {curve.stage: _seconds_to(results, curve, target) for curve in curves}
    own = {curve.stage: seconds for curve in curves if (seconds := reached[curve.stage]) and not curve.emulated}
    title = capital(_headline(own_curves, target, own))
    with house_style():
        shown = [row for row in results.rows if row.kind == "epoch" and row.emulated] if _any_emulated(curves) else []
        left_out = "epoch" if any(curve.emulated for curve in results.curves) else ""
        foot = who.footer(results, shown=shown, kind=left_out)
        figure = new_figure(title, foot, height=3.9 + 0.2 * len(curves))
        axes = figure.subplots()
        every = [second for curve in curves for second in curve.seconds]
        log_axis(axes, "x", min(every) / 1.6, max(every) * 1.6, text=duration, most=6)
        for curve in curves:
            _draw(axes, curve, target, _label(curve, reached[curve.stage], target))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=7))
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, 100 * target - 1), min(max(high, 100 * target + 1), 100.5))
        axes.axhline(100 * target, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=2)
        axes.annotate(
            share(target), (0, 100 * target), (4, 4), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
            fontsize=SMALL, fontweight="bold", bbox=patch(), zorder=4,
        )  # fmt: skip
        axes.set_xlabel("training time, evaluation left out, log scale")
        axes.set_ylabel("test images classified rightly (%)")
        axes.legend(loc="lower left", bbox_to_anchor=(-0.04, 1.0), handlelength=3.2)
    some = curves[0]
    said = listed(
        [
            f"{who.title(curve.stage, emulated=curve.emulated)} "
            + (
                f"after {duration(seconds)}"
                if (seconds := reached[curve.stage])
                else f"not, it ends at {percent(curve.accuracy[-1])}"
            )
            for curve in curves
        ]
    )
    return Chart(
        "accuracy_in_time",
        figure,
        title,
        f"{share(target)} test accuracy of {some.network} on {some.dataset} is reached by {said}.",
        "Each mark is one epoch: how far right says how long the training took until then, how high says what it had "
        "learnt. All learn the same per epoch, so a faster contender is the same curve further left. The rings mark "
        "the first epoch that ends above the broken line; the times beside the names are medians of all passes.",
    )


def _draw(axes: Axes, curve: Curve, target: float, label: str) -> None:
    """A curve, and a ring where it gets to the target; the time in its label is the median of several such curves."""
    colour = who.colour(curve.stage)
    axes.plot(
        curve.seconds, [100 * value for value in curve.accuracy], color=colour, linewidth=1.6, markersize=5.5,
        linestyle=(0, (2, 2)) if curve.emulated else who.dashes(curve.stage), marker=who.marker(curve.stage),
        markerfacecolor=PAPER if curve.emulated else colour, markeredgecolor=INK,
        markeredgewidth=0.5, zorder=3, label=label,
    )  # fmt: skip
    marks = zip(curve.seconds, curve.accuracy, strict=True)
    if ring := next(((seconds, 100 * accuracy) for seconds, accuracy in marks if accuracy >= target), None):
        axes.plot(*ring, "o", markersize=11, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=1.3, zorder=5)


def _case(curves: Sequence[Curve]) -> list[Curve]:
    cases: dict[tuple[str, str], dict[str, Curve]] = {}
    for curve in curves:
        cases.setdefault((curve.network, curve.dataset), {}).setdefault(curve.stage, curve)

    def rank(case: dict[str, Curve]) -> tuple[int, bool]:
        several = [curve for curve in case.values() if not curve.emulated]
        return min(len(several), 2), next(iter(case.values())).dataset == "mnist"

    best = max(cases.values(), key=rank, default={})
    return [best[stage] for stage in who.ordered(best)]


def _target(results: Results, dataset: str) -> float:
    """The accuracy that the trainings on these images had to reach; if none is recorded, the one of TARGETS."""
    asked = [row.accuracy for row in results.rows if row.kind == "target" and _on(row, dataset) and row.accuracy]
    return asked[0] if asked else TARGETS.get(dataset, 0.9)


def _on(row: BenchRow, dataset: str) -> bool:
    """Whether a target's name, '97 % on mnist, 784-128-10', is about these images."""
    return row.name.partition(" on ")[2].rpartition(", ")[0] == dataset


def _seconds_to(results: Results, curve: Curve, target: float) -> float | None:
    """Seconds of training until the target accuracy; None if it was not reached."""
    for row in who.of_kind(results, "target"):
        if row.stage == curve.stage and _on(row, curve.dataset) and not curve.emulated:
            return row.seconds
    pairs = zip(curve.seconds, curve.accuracy, strict=True)
    return next((second for second, accuracy in pairs if accuracy >= target), None)


def _headline(curves: Sequence[Curve], target: float, reached: dict[str, float]) -> str:
    if not reached:
        best = max(curves, key=lambda curve: curve.accuracy[-1])
        return f"{who.name(best.stage)} learns to {percent(best.accuracy[-1])} in {duration(best.seconds[-1])}"
    first, *_ = sorted(reached, key=lambda stage: reached[stage])
    title = f"{who.name(first)} is above {share(target)} after {duration(reached[first])}"
    last = max(reached, key=lambda stage: reached[stage])
    if last != first:
        title += f", {as_fast(reached[last] / reached[first])} as {who.name(last)}"
    return title


def _label(curve: Curve, seconds: float | None, target: float) -> str:
    name = f"{who.title(curve.stage)}, emulated" if curve.emulated else who.title(curve.stage)
    above = f"above {share(target)}"
    return f"{name}: {above} after {duration(seconds)}" if seconds else f"{name}: not {above}"


def _any_emulated(curves: Sequence[Curve]) -> bool:
    return any(curve.emulated for curve in curves)
