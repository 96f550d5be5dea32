"""shared.charts: the figures of times and bytes say the numbers that were measured."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from shared.bench.records.document import Results
from shared.charts.figures.inference import inference
from shared.charts.figures.memory import memory
from shared.charts.figures.operations import operations
from shared.charts.figures.phases import phases
from shared.charts.figures.products_and_steps import products, steps
from shared.charts.figures.staircase import staircase
from shared.charts.figures.step_parts import KINDS, REST, kind_of, step_parts
from tests.shared.bench.bench_results import FOUR, ONE, THREE, TWO, full_results, gpu_results, only
from tests.shared.charts.chart_checks import said, shown, texts_in


def rows_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def of(results: Results, kind: str) -> Results:
    return only(results, kinds=[kind])


def test_the_staircase_writes_the_factor_on_every_step_and_the_whole_in_the_headline() -> None:
    chart = shown(staircase(full_results()))
    (axes,) = chart.figure.axes
    assert axes.get_yscale() == "log"
    assert said(chart.title) == "C trains 840 times as fast as pure Python"  # 26 s to 31 ms
    written = texts_in(axes)
    assert {"380 times\nas fast", "2.2 times\nas fast", "26 s", "68 ms", "31 ms"} <= set(written)
    assert [patch.get_hatch() for patch in axes.patches] == [None] * 3
    assert "784-128-10, batch 64, mnist-subset, float64" in chart.alt


def test_the_staircase_is_of_the_training_that_most_stages_did() -> None:
    without = only(full_results(), stages=[TWO, THREE])
    assert "batch 64, mnist, float32" in shown(staircase(without)).alt  # both stages did both; MNIST is longer
    assert staircase(only(full_results(), stages=[THREE])) is None


def test_an_emulated_tread_is_hatched_named_and_has_no_factor() -> None:
    plain, chart = shown(staircase(full_results())), shown(staircase(full_results(), emulated=True))
    assert chart.title == plain.title
    (axes,) = chart.figure.axes
    assert [patch.get_hatch() for patch in axes.patches] == [None, None, None, "////"]
    assert sum("as fast" in text for text in texts_in(axes)) == 2
    assert axes.get_xticklabels()[3].get_text() == "stage 4:\nCUDA,\nemulated"


def test_the_pieces_of_a_step_are_shares_of_its_measured_whole() -> None:
    chart = shown(step_parts(full_results()))
    (axes,) = chart.figure.axes
    assert rows_of(axes) == ["stage 1:\npure Python", "stage 2:\nNumPy", "stage 3:\nC"]
    numpy = [patch for patch in axes.patches if round(patch.get_y() + patch.get_height() / 2) == 1]
    *pieces, whole = numpy
    assert whole.get_width() == 1
    assert sum(piece.get_width() for piece in pieces) == pytest.approx(1)  # the last of them is what remains
    assert pieces[0].get_width() == pytest.approx(96 / 496)
    assert {"384 ms", "496 µs", "181 µs"} <= set(texts_in(axes))
    assert said(chart.title) == "C spends 79 % of a step in its dense layers, pure Python 89 %"
    assert f"{REST} 31 %" in said(chart.alt)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("dense 12 backward", "dense backward"),
        ("leaky_relu backward", "activation"),
        ("softmax_cross_entropy backward", "loss"),
        ("SGD step", "update"),
    ],
)
def test_every_part_of_a_step_has_a_kind(part: str, kind: str) -> None:
    assert kind_of(part) == kind
    assert kind in KINDS


def test_without_a_whole_step_there_are_no_shares() -> None:
    full = of(full_results(), "part")
    assert step_parts(replace(full, rows=[row for row in full.rows if row.part != "whole step"])) is None


def test_products_are_multiples_of_numpys_time_with_their_noise() -> None:
    chart = shown(products(full_results()))
    (axes,) = chart.figure.axes
    widths = [patch.get_width() for patch in axes.patches]
    assert widths[:4] == pytest.approx([160.7 / 159.4, 160.7 / 202.4, 160.7 / 107.4, 160.7 / 172.9])
    assert rows_of(axes)[:4] == ["stage 2", "stage 3", "stage 3 packed, 1 thread", "PyTorch"]
    assert "0.79  (63.5 µs)" in texts_in(axes)
    assert "xW: 64 by 784 times 784 by 128" in texts_in(axes)
    bars = [line for line in axes.lines if len(np.ravel(line.get_xdata())) == 2 and line.get_linestyle() == "-"]
    first = np.ravel(bars[0].get_xdata())
    assert first == pytest.approx([160.7 / 159.4 / 1.03, 160.7 / 159.4 * 1.03])
    assert said(chart.title) == "C is up to 1.3 times as fast as NumPy (gWᵀ)"
    assert axes.get_xlim()[0] == 0


def test_steps_are_multiples_of_stage_2s_time() -> None:
    (axes,) = shown(steps(full_results())).figure.axes
    assert [patch.get_width() for patch in axes.patches][:5] == pytest.approx(
        [1, 323 / 496, 306 / 496, 181 / 496, 620 / 496]
    )
    assert rows_of(axes)[:5] == ["stage 2", "stage 3 op_by_op", "stage 3 fused", "stage 3 one_call", "PyTorch"]
    assert steps(only(full_results(), stages=[TWO])) is None
    assert steps(only(full_results(), stages=[THREE, "pytorch"])) is None


def test_operations_stand_beside_numpy_in_the_same_dtype() -> None:
    chart = shown(operations(full_results()))
    (axes,) = chart.figure.axes
    assert axes.get_xscale() == "log"
    assert rows_of(axes)[:3] == ["identity forward", "relu forward", "relu backward"]
    assert "relu backward: pure Python 130, C 0.26, PyTorch 0.9" in said(chart.alt)
    assert said(chart.title) == "C beats NumPy in 12 of 13 operations, by up to 6.7 times (Adam step)"
    assert operations(only(full_results(), stages=[TWO])) is None
    assert operations(only(full_results(), stages=[ONE, THREE])) is None


def test_inference_is_images_per_second_by_batch() -> None:
    chart = shown(inference(full_results()))
    (axes,) = chart.figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    python, _, c, _ = axes.lines[:4]
    np.testing.assert_allclose(python.get_xdata(), [1, 8, 32, 64])
    np.testing.assert_allclose(np.ravel(c.get_ydata())[-1], 1024 / 0.97e-3)
    assert (
        said(chart.title) == "C classifies 1.06 million images a second at batch 1,024, 8.3 times as many as at batch 1"
    )
    assert "pure Python" in texts_in(axes)


def test_memory_is_drawn_in_mebibytes_from_zero() -> None:
    chart = shown(memory(full_results()))
    (axes,) = chart.figure.axes
    assert [patch.get_width() for patch in axes.patches] == [61, 5, 3, 148]
    assert axes.get_xlim()[0] == 0
    assert said(chart.title) == "C trains in 3 MiB, PyTorch takes 49 times as much"
    (axes,) = shown(memory(full_results(), emulated=True)).figure.axes
    assert [patch.get_hatch() for patch in axes.patches] == [None, None, None, "////", None]


def test_phases_are_grouped_by_contender_in_their_order() -> None:
    chart = shown(phases(gpu_results()))
    (axes,) = chart.figure.axes
    assert axes.get_xscale() == "log"
    names = ["import", "compute", "import", "compile", "compute", "import", "compile", "copy in", "compute", "copy out"]
    assert rows_of(axes) == [*names, "import", "compute"]
    assert {"stage 4: CUDA", "210 µs", "42 µs", "130 µs", "1.9 s"} <= set(texts_in(axes))
    assert said(chart.title) == "CUDA's copies take 8.1 times as long as its product"
    assert said(shown(phases(full_results())).title) == "Before the first product: 2.9 s of compiling (C)"
    assert FOUR not in chart.alt
