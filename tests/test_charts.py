"""shared.charts: what the figures say, that curves which coincide are all seen, and that the files are whole."""

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from fake_stages import say_of_stage_4
from matplotlib.figure import Figure
from matplotlib.image import imread

from shared import charts, contract
from shared.benchmark import BenchRow, Measurement
from shared.charts_style import DPI, STAGE_COLOURS, save

FOOTER = "some CPU · 2 cores · 2026-01-31"
ONE, TWO, FOUR = "stage1_pure_python", "stage2_numpy", "stage4_numba_cuda"
CURVE = charts.Curve([1, 2, 3], [0.9, 0.5, 0.4], [0.8, 0.9, 0.92])


def row(stage: str, rung: str, size: int, speed: float, dtype: str = "float64", reference: float = 50.0) -> BenchRow:
    """A rung that ran at `speed` GFLOP/s beside a reference at `reference`."""
    seconds = 2 * size**3 / speed / 1e9
    measurement = Measurement(seconds, seconds, seconds, seconds, 3, 1)
    label = f"NumPy a @ b, {dtype}"
    return BenchRow("ladder", stage, rung, dtype, (size,) * 3, 2 * size**3, measurement, label, reference / speed)


ROWS = [
    row(ONE, "slow", 64, 0.02),
    row(ONE, "fast", 64, 0.08),
    row(TWO, "blas", 64, 40.0),
    row(TWO, "blas", 64, 80.0, "float32", 90.0),
    row(TWO, "blas", 512, 60.0),
]


def headline(figure: Figure) -> str:
    return figure.get_suptitle()


def test_every_planned_stage_has_a_label_and_a_colour_of_its_own() -> None:
    assert set(contract.STAGE_TITLES) == set(STAGE_COLOURS) == set(contract.STAGES)
    assert len(set(STAGE_COLOURS.values())) == len(contract.STAGES)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_coinciding_curves_get_narrower_towards_the_top(count: int) -> None:
    figure = charts.training_curves(dict.fromkeys(contract.STAGES[:count], CURVE), FOOTER, agree=True)
    for axes in figure.axes:
        widths = [line.get_linewidth() for line in axes.lines]
        assert len(widths) == count
        assert widths == sorted(widths, reverse=True)
        assert len(set(widths)) == count


def test_training_curves_plot_the_values_with_accuracy_in_percent() -> None:
    loss, accuracy = charts.training_curves({ONE: CURVE}, FOOTER, agree=True).axes
    np.testing.assert_allclose(loss.lines[0].get_xydata(), [[1, 0.9], [2, 0.5], [3, 0.4]])
    np.testing.assert_allclose(accuracy.lines[0].get_ydata(), [80, 90, 92])
    assert "%" in accuracy.get_ylabel()


def test_the_headline_says_whether_the_stages_agree() -> None:
    curves = {ONE: CURVE, TWO: CURVE}
    assert "one curve" in headline(charts.training_curves(curves, FOOTER, agree=True))
    assert "do not" in headline(charts.training_curves(curves, FOOTER, agree=False))


def test_time_per_stage_writes_the_factor() -> None:
    figure = charts.time_per_stage({ONE: 10.0, TWO: 0.05}, FOOTER, network="784-32-10")
    assert headline(figure) == "NumPy trains 200 times as fast as pure Python"
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    texts = [text.get_text() for text in axes.texts]
    assert {"200 times as fast", "10 s", "50 ms"} <= set(texts)
    assert "seconds" in axes.get_xlabel()


def test_time_per_stage_of_one_stage_claims_no_factor() -> None:
    assert headline(charts.time_per_stage({TWO: 0.05}, FOOTER, network="784-32-10")) == "Seconds per epoch"


def test_ladders_compare_all_stages_on_one_product() -> None:
    figure = charts.ladders(ROWS, FOOTER)
    assert headline(figure).startswith("A 64 by 64 product: 4,000 times")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["stage 1  slow", "stage 1  fast", "stage 2  blas"]
    assert {"0.02", "0.08", "40 to 80"} <= {text.get_text() for text in axes.texts}
    assert "GFLOP/s" in axes.get_xlabel()


def test_ladders_without_a_common_size_says_so() -> None:
    with pytest.raises(ValueError, match="no matrix size was measured on every stage"):
        charts.ladders([row(ONE, "slow", 16, 0.02), row(TWO, "blas", 512, 60.0)], FOOTER)


def test_ladder_sizes_has_a_panel_for_each_stage_with_the_reference() -> None:
    figure = charts.ladder_sizes(ROWS, FOOTER)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        contract.STAGE_TITLES[ONE],
        contract.STAGE_TITLES[TWO],
    ]
    labels = [line.get_label() for line in figure.axes[1].lines]
    assert labels == ["blas", "NumPy a @ b"]
    np.testing.assert_allclose(figure.axes[1].lines[0].get_xydata(), [[64, 40], [512, 60]])
    np.testing.assert_allclose(figure.axes[1].lines[1].get_ydata(), [50, 50])


def test_ladder_sizes_without_rows_says_so() -> None:
    with pytest.raises(ValueError, match="no float32 rung was measured"):
        charts.ladder_sizes([row(ONE, "slow", 16, 0.02)], FOOTER, dtype="float32")


def test_a_figure_is_saved_as_png_and_svg_with_its_footer(tmp_path: Path) -> None:
    figure = charts.time_per_stage({ONE: 10.0, TWO: 0.05}, FOOTER, network="784-32-10")
    assert figure.get_supxlabel() == FOOTER
    png, svg = save(figure, tmp_path / "new" / "time")
    assert (png.name, svg.name) == ("time.png", "time.svg")
    pixels = imread(png)
    assert pixels.shape[1] == round(figure.get_figwidth() * DPI)
    assert pixels.std() > 0.05  # something is drawn on it
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")


def test_the_same_figure_gives_the_same_svg(tmp_path: Path) -> None:
    files = [save(charts.ladders(ROWS, FOOTER), tmp_path / name)[1].read_bytes() for name in ("a", "b")]
    assert files[0] == files[1]


def test_nothing_is_cut_off_at_the_edges(tmp_path: Path) -> None:
    figures = [
        charts.training_curves(dict.fromkeys(contract.STAGES, CURVE), FOOTER, agree=True),
        charts.time_per_stage({ONE: 10.0, TWO: 0.05}, FOOTER, network="784-32-10 network, batches of 32, float64"),
        charts.ladders(ROWS, FOOTER),
        charts.ladders([*ROWS, row("stage3_c", "packed", 64, 50.0)], FOOTER),
        charts.ladder_sizes(ROWS, FOOTER),
        charts.ladder_sizes([*ROWS, row("stage3_c", "packed", 64, 50.0)], FOOTER),
    ]
    for i, figure in enumerate(figures):
        pixels = imread(save(figure, tmp_path / str(i))[0])[..., :3]
        edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert (edges == 1).all(), f"ink at the edge of: {headline(figure)}"


def test_an_emulated_stage_is_named_so_hatched_and_kept_out_of_the_headline(monkeypatch: pytest.MonkeyPatch) -> None:
    say_of_stage_4(monkeypatch, "emulator")
    figure = charts.time_per_stage({ONE: 10.0, TWO: 0.05, FOUR: 0.01}, FOOTER, network="784-32-10")
    assert headline(figure) == "NumPy trains 200 times as fast as pure Python"
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()][2] == "stage 4: CUDA,\nemulated on the CPU"
    assert [points.get_hatch() for points in axes.collections] == [None, None, "//////"]
    figure = charts.training_curves({ONE: CURVE, FOUR: CURVE}, FOOTER, agree=True)
    assert figure.axes[1].get_legend_handles_labels()[1][1] == "stage 4: CUDA,\nemulated on the CPU"


def test_on_a_gpu_stage_4_is_drawn_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    say_of_stage_4(monkeypatch, "gpu")
    figure = charts.time_per_stage({ONE: 10.0, FOUR: 0.01}, FOOTER, network="784-32-10")
    assert headline(figure) == "CUDA trains 1,000 times as fast as pure Python"
    assert {points.get_hatch() for points in figure.axes[0].collections} == {None}


def test_charts_of_speeds_leave_emulated_rungs_out() -> None:
    emulated = dataclasses.replace(row(FOUR, "warp_tiled", 64, 1e4), ratio=None, emulated=True)
    rungs = charts.ladders([*ROWS, emulated], FOOTER).axes[0].get_yticklabels()
    assert "stage 4" not in " ".join(label.get_text() for label in rungs)
    assert len(charts.ladder_sizes([*ROWS, emulated], FOOTER).axes) == 2


def test_a_ladder_beside_cublas_says_so_and_has_no_numpy_line() -> None:
    gpu = dataclasses.replace(row(FOUR, "warp_tiled", 64, 1e4), reference="cuBLAS through PyTorch 2.11.0, float64")
    panel = charts.ladder_sizes([*ROWS, gpu], FOOTER).axes[2]
    assert [line.get_label() for line in panel.lines] == ["warp_tiled", "cuBLAS"]
    alone = charts.ladders([gpu], FOOTER).axes[0]
    assert "NumPy a @ b, float64" not in [text.get_text() for text in alone.get_legend().get_texts()]
