"""shared.charts: training curves over each other, and accuracy against time."""

from dataclasses import replace

import numpy as np
import pytest

from shared.bench.measuring.rows import Curve
from shared.bench.records.document import Results
from shared.charts.figures.accuracy import accuracy_in_time
from shared.charts.figures.curves import training_curves
from tests.shared.bench.bench_results import CPU_STAGES, FOUR, ONE, TWO, full_results
from tests.shared.charts.chart_checks import said, shown


def curve(stage: str, *, accuracy: float = 0.92, emulated: bool = False) -> Curve:
    return Curve(stage, "784-32-10", "mnist-subset", [1, 2], [0.9, 0.4], [0.8, accuracy], [1.0, 2.0], emulated=emulated)


def results(*curves: Curve) -> Results:
    return replace(full_results(), rows=[], curves=curves)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_coinciding_curves_get_narrower_towards_the_top(count: int) -> None:
    chart = shown(training_curves(results(*map(curve, CPU_STAGES[:count]))))
    for axes in chart.figure.axes:
        widths = [line.get_linewidth() for line in axes.lines]
        assert len(widths) == count
        assert widths == sorted(widths, reverse=True)
        assert len(set(widths)) == count


def test_training_curves_plot_the_values_with_accuracy_in_percent() -> None:
    chart = shown(training_curves(results(curve(ONE))))
    loss, accuracy = chart.figure.axes
    np.testing.assert_allclose(loss.lines[0].get_xydata(), [[1, 0.9], [2, 0.4]])
    np.testing.assert_allclose(accuracy.lines[0].get_ydata(), [80, 92])
    assert "%" in accuracy.get_ylabel()
    assert said(chart.title) == "Pure Python learns to 92.0 % in 2 epochs"
    assert "pure Python 0.400 and 92.0 %" in said(chart.alt)


def test_the_headline_says_whether_the_stages_agree() -> None:
    same, apart = results(curve(ONE), curve(TWO)), results(curve(ONE), curve(TWO, accuracy=0.91))
    assert said(shown(training_curves(same)).title) == "Two stages, one curve: 92.0 % after 2 epochs"
    assert said(shown(training_curves(apart)).title) == "Two stages stay within 1 point of each other, to 92.0 %"
    assert "they are the same network" in shown(training_curves(apart, agree=True)).title
    assert "do not" in shown(training_curves(same, agree=False)).title


def test_the_time_to_the_target_is_the_measured_one() -> None:
    chart = shown(accuracy_in_time(full_results()))
    (axes,) = chart.figure.axes
    assert axes.get_xscale() == "log"
    assert said(chart.title) == "C is above 97 % after 1.07 s, 2.5 times as fast as NumPy"
    labels = [said(text.get_text()) for text in axes.get_legend().get_texts()]  # type: ignore[union-attr]
    assert labels == [
        "stage 2: NumPy: above 97 % after 2.63 s",
        "stage 3: C: above 97 % after 1.07 s",
        "PyTorch: above 97 % after 2.5 s",
    ]
    rings = [float(np.ravel(line.get_xdata())[0]) for line in axes.lines if line.get_markerfacecolor() == "none"]
    assert rings == pytest.approx([2.63, 1.07, 2.5])
    assert [line for line in axes.lines if list(np.ravel(line.get_ydata())) == [97, 97]]


def test_the_emulators_seconds_are_shown_only_where_asked_for_and_never_lead() -> None:
    both = results(curve(TWO), curve(FOUR, accuracy=0.95, emulated=True))
    plain, with_it = shown(accuracy_in_time(both)), shown(accuracy_in_time(both, emulated=True))
    assert plain.title == with_it.title
    assert "CUDA" not in plain.alt
    assert "stage 4: CUDA, emulated on the CPU after 2 s" in said(with_it.alt)
    assert accuracy_in_time(results(curve(FOUR, emulated=True)), emulated=True) is None
