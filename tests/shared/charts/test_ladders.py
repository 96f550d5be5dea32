"""shared.charts: the ladder beside the best library, speed against size, the roofline: are the points where they
should be, and is what is said of them true?"""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from shared.bench.measuring.rows import BenchRow
from shared.bench.records.document import Results
from shared.charts.figures import ladder_share as shares
from shared.charts.figures.ladder_share import ladder_share
from shared.charts.figures.ladder_sizes import ladder_sizes
from shared.charts.figures.roofline import roofline
from shared.charts.figures.sizes import Crossing, overtaking, speed_against_size
from tests.shared.bench.bench_results import FOUR, ONE, THREE, TWO, full_results, gpu_results
from tests.shared.charts.chart_checks import said, shown, texts_in


def points(axes: Axes) -> int:
    """How many single points are drawn, those of the legend's samples aside."""
    return sum(line.get_linestyle() == "None" and len(line.get_xdata()) == 1 for line in axes.lines)  # type: ignore[arg-type]


def test_every_rung_of_the_cpu_stands_at_its_share_of_the_best_library() -> None:
    chart = shown(ladder_share(full_results()))
    (axes,) = chart.figure.axes
    assert axes.get_xscale() == "log"
    low, high = axes.get_xlim()
    assert low < 0.0329 / 70.2
    assert high > 168.2 / 142.6
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [*(rung for stage in (ONE, TWO, THREE) for rung in RUNGS[stage]), "NumPy a @ b"]
    # 4 rungs in float64 alone, 10 in both, NumPy once.
    assert points(axes) == 4 + 2 * 10 + 1
    written = texts_in(axes)
    assert {"118 %", "168", "0.12 %", "0.0811", "100 %", "143"} <= set(written)
    assert said(chart.title) == "C reaches 118 % of the best library, pure Python 0.12 %"
    assert "stage 3: C 118 % (threads, 168 GFLOP/s)" in said(chart.alt)
    assert [line for line in axes.lines if list(line.get_xdata()) == [1, 1]]  # type: ignore[arg-type]  # the library


RUNGS = {
    stage: list(dict.fromkeys(row.name for row in full_results().rows if row.kind == "ladder" and row.stage == stage))
    for stage in (ONE, TWO, THREE, FOUR)
}


def test_a_gpu_stands_beside_cublas_on_its_own_largest_product() -> None:
    (axes,) = shown(ladder_share(gpu_results())).figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[-10:] == [*RUNGS[FOUR], "cuBLAS"]
    assert {"stage 4: CUDA, 2,048 by 2,048", "85 %", "41,800", "48,900"} <= set(texts_in(axes))


def test_the_best_library_is_the_faster_one() -> None:
    def beside(row: BenchRow) -> BenchRow:
        return replace(row, against={"pytorch": 0.5}) if row.stage == THREE and row.dtype == "float32" else row

    full = full_results()
    rows = [beside(row) for row in full.rows if row.name in ("threads", "packed") and row.stage == THREE]
    chart = shown(ladder_share(replace(full, rows=[row for row in rows if row.dtype == "float32"])))
    # In its own rounds each of them was half as fast as PyTorch.
    assert said(chart.title) == "C reaches 50 % of the best library"
    assert {"PyTorch", "NumPy a @ b"} <= {label.get_text() for label in chart.figure.axes[0].get_yticklabels()}


def test_the_common_product_is_the_largest_that_all_stages_computed() -> None:
    rows = [row for row in full_results().rows if row.kind == "ladder" and row.measurement and not row.emulated]
    assert shares.common_size(rows) == 128
    assert shares.common_size([row for row in rows if row.stage != ONE]) == 512
    apart = [row for row in rows if (row.stage, row.shape[0]) in ((ONE, 16), (TWO, 512))]
    assert shares.common_size(apart) is None
    assert ladder_share(Results(rows=apart, curves=[], environment=full_results().environment)) is None


def test_c_overtakes_numpy_where_the_lines_cross() -> None:
    chart = shown(speed_against_size(full_results()))
    (axes,) = chart.figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    # Behind at 64 by 58.3 to 91.3, ahead at 128 by 168.2 to 142.6: the crossing in between, on logarithms.
    part = np.log(91.3 / 58.3) / (np.log(91.3 / 58.3) + np.log(168.2 / 142.6))
    assert said(chart.title) == f"C overtakes NumPy from {64 * 2**part:.0f} by {64 * 2**part:.0f} on"
    (ring,) = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    assert float(np.ravel(ring.get_xdata())[0]) == pytest.approx(64 * 2**part)


def test_the_headline_says_from_which_size_the_gpu_wins_and_the_alternative_text_with_copies() -> None:
    chart = shown(speed_against_size(gpu_results()))
    assert said(chart.title).startswith("The GPU wins from 1")
    assert "The GPU wins with copies already at 512." in chart.alt
    assert "stage 4: CUDA" in chart.alt
    labels = texts_in(chart.figure.axes[0])
    assert "CUDA,\nwith copies" in labels


@pytest.mark.parametrize(
    ("mine", "others", "expected"),
    [
        ({64: 1.0, 256: 4.0}, [{64: 2.0, 256: 2.0}], Crossing(128, 2.0, True)),
        ({64: 1.0, 256: 4.0}, [{64: 2.0}, {256: 2.0}], Crossing(128, 2.0, True)),
        ({64: 3.0, 256: 1.0}, [{64: 2.0, 256: 2.0}], None),
        ({64: 3.0, 128: 1.0, 256: 4.0}, [{64: 2.0, 128: 2.0, 256: 2.0}], Crossing(128 * 2**0.5, 2.0, True)),
    ],
)
def test_overtaking(mine: dict[int, float], others: list[dict[int, float]], expected: Crossing | None) -> None:
    found = overtaking(mine, others)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found == pytest.approx(expected)


def test_each_stage_has_a_panel_with_all_its_rungs_and_the_library() -> None:
    chart = shown(ladder_sizes(gpu_results()))
    panels = [axes for axes in chart.figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels][-1] == "stage 4: CUDA, float32"
    assert [len(axes.lines) for axes in panels] == [1 + len(RUNGS[stage]) for stage in (ONE, TWO, THREE, FOUR)]
    assert "NumPy a @ b" in texts_in(panels[2])
    assert "cuBLAS" in texts_in(panels[3])
    threads = panels[2].lines[-1]
    np.testing.assert_allclose(threads.get_xydata()[:, 0], [64, 128, 256, 512])  # type: ignore[index]
    np.testing.assert_allclose(threads.get_xydata()[:, 1], [58.3, 168.2, 208.7, 222.5])  # type: ignore[index]


def test_the_roofs_are_measured_and_every_rung_of_the_upper_stages_is_under_them() -> None:
    chart = shown(roofline(full_results()))
    (axes,) = chart.figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "measured peak: 228 GFLOP/s" in texts_in(axes)
    assert {"210 GB/s, 24 KiB", "21.5 GB/s, 768 MiB"} <= set(texts_in(axes))
    rungs = [line for line in axes.lines if line.get_marker() not in ("None", None, "")]
    assert len(rungs) == len(RUNGS[TWO]) + len(RUNGS[THREE])
    np.testing.assert_allclose(rungs[0].get_xdata(), [64 / 6, 128 / 6, 256 / 6, 512 / 6])  # n / 6 operations per byte
    assert all(max(np.ravel(line.get_ydata())) <= 228 for line in rungs)
    assert said(chart.title) == "C reaches 98 % of the CPU's measured peak"
    assert "measured bandwidths of 210 GB/s over 24 KiB" in said(chart.alt)


@pytest.mark.parametrize("missing", ["peak", "bandwidth", "ladder"])
def test_there_is_no_roofline_without_both_roofs_and_rungs(missing: str) -> None:
    full = full_results()
    assert roofline(replace(full, rows=[row for row in full.rows if row.kind != missing])) is None
