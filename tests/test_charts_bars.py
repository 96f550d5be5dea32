"""shared.charts_bars: bars as long as their numbers, and what stands beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from shared import charts_bars
from shared.benchmark import BenchRow, summarise
from shared.charts_style import save

FOOTER = "some CPU · 2 cores · 2026-01-31"


def rung(name: str, speed: float, *, size: int = 512, threads: int = 1, peak: float | None = 100.0) -> BenchRow:
    """A rung at `speed` GFLOP/s beside NumPy at 80 and a peak of one core in GFLOP/s."""
    flops = 2 * size**3
    return BenchRow(
        "ladder",
        "stage3_c",
        name,
        "float32",
        (size,) * 3,
        flops,
        summarise([flops / speed / 1e9]),
        "NumPy a @ b, float32",
        80 / speed,
        threads=threads,
        peak=peak and peak * 1e9 * threads,
    )


def timed(kind: str, stage: str, name: str, ratio: float, **more: Any) -> BenchRow:
    return BenchRow(kind, stage, name, "float32", (2, 3, 4), 10, summarise([ratio * 1e-3]), "reference", ratio, **more)


ONE_THREAD = [rung("ijk", 2.0), rung("packed", 88.0)]
TWO_THREADS = [rung("ijk", 2.0), rung("packed", 88.0), rung("threads", 160.0, threads=2)]
PRODUCTS = [
    timed("product", "numpy", "xW 2x3x4", 1.0),
    timed("product", "stage2_numpy", "xW 2x3x4", 1.1, threads=2),
    timed("product", "stage3_c", "xW 2x3x4", 1.6, variant="packed"),
    timed("product", "pytorch", "xW 2x3x4", 1.3, threads=2),
]
STEPS = [
    timed("step", "stage2_numpy", "784-128-10, batch 64", 3.0),
    timed("step", "stage3_c", "784-128-10, batch 64", 1.5, variant="one_call", against={"stage2_numpy": 2.0}),
    timed("step", "pytorch", "784-128-10, batch 64", 6.0, against={"stage2_numpy": 0.5}),
]


def widths(figure: Figure) -> list[float]:
    return [patch.get_width() for patch in figure.axes[0].patches]


def texts(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.axes[0].texts}


def labels(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_the_ladder_on_one_thread_shows_shares_of_the_peak() -> None:
    figure = charts_bars.stage3_ladder(ONE_THREAD, FOOTER)
    assert figure.get_suptitle() == "Stage 3's ladder: from 2.0% of one core's peak to 88%"
    assert widths(figure) == pytest.approx([0.02, 0.88, 0.8])
    assert labels(figure) == ["ijk", "packed", "NumPy a @ b"]
    assert {"2.0%", "88%", "80%", "0.025", "1.1", "peak of one core: 100 GFLOP/s"} <= texts(figure)


def test_the_ladder_on_two_threads_shows_both_peaks() -> None:
    figure = charts_bars.stage3_ladder(TWO_THREADS, FOOTER)
    assert figure.get_suptitle() == "Stage 3's ladder: from 2.0% of one core's peak to 80% of 2 cores'"
    assert widths(figure) == pytest.approx([0.02, 0.88, 1.6, 0.8])
    assert labels(figure)[2] == "threads (2)"
    assert {"peak of one core: 100 GFLOP/s", "peak of 2 cores: 200 GFLOP/s", "40%"} <= texts(figure)  # 40%: NumPy


def test_the_ladder_takes_the_size_with_the_most_rungs_and_of_those_the_largest() -> None:
    rows = [rung("ijk", 2, size=64), rung("packed", 80, size=64), *ONE_THREAD, rung("packed", 90, size=1024)]
    assert charts_bars.peak_ladder_size(rows, "float32") == 512
    assert charts_bars.peak_ladder_size(rows, "float64") is None


def test_without_a_peak_there_is_no_ladder_of_shares() -> None:
    with pytest.raises(ValueError, match="no float32 rung of stage 3 was measured beside the machine's peak"):
        charts_bars.stage3_ladder([rung("ijk", 2.0, peak=None)], FOOTER)


def test_products_are_multiples_of_numpys_time() -> None:
    figure = charts_bars.products(PRODUCTS, FOOTER)
    assert widths(figure) == pytest.approx([1.1, 1.6, 1.3])
    assert labels(figure) == ["stage 2", "stage 3 packed, 1 thread", "PyTorch"]
    assert {"xW: 2 by 3 times 3 by 4", "1.1  (1.1 ms)"} <= texts(figure)
    with pytest.raises(ValueError, match="no product was measured"):
        charts_bars.products(STEPS, FOOTER)


def test_steps_are_multiples_of_stage_2s_time() -> None:
    figure = charts_bars.steps(STEPS, FOOTER)
    assert widths(figure) == pytest.approx([1.0, 0.5, 2.0])
    assert labels(figure) == ["stage 2", "stage 3 one_call", "PyTorch"]
    assert "0.5  (1.5 ms)" in texts(figure)


def test_steps_need_stage_2_and_another() -> None:
    for rows in (STEPS[:1], STEPS[1:]):
        assert charts_bars.step_cases(rows) == []
        with pytest.raises(ValueError, match="no step was measured on stage 2 and on another"):
            charts_bars.steps(rows, FOOTER)


def test_nothing_is_cut_off_at_the_edges(tmp_path: Path) -> None:
    figures = [
        charts_bars.stage3_ladder(ONE_THREAD, FOOTER),
        charts_bars.stage3_ladder(TWO_THREADS, FOOTER),
        charts_bars.products(PRODUCTS, FOOTER),
        charts_bars.steps(STEPS, FOOTER),
    ]
    for i, figure in enumerate(figures):
        pixels = imread(save(figure, tmp_path / str(i))[0])[..., :3]
        edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert (edges == 1).all(), f"ink at the edge of: {figure.get_suptitle()}"


def test_emulated_steps_and_products_are_left_out() -> None:
    emulated = timed("step", "stage4_numba_cuda", "784-128-10, batch 64", 0.1, variant="graph", emulated=True)
    assert labels(charts_bars.steps([*STEPS, emulated], FOOTER)) == ["stage 2", "stage 3 one_call", "PyTorch"]
    emulated = timed("product", "stage4_numba_cuda", "xW 2x3x4", 0.1, emulated=True)
    assert "stage 4 (emulated)" not in labels(charts_bars.products([*PRODUCTS, emulated], FOOTER))
    assert emulated.contender == "stage 4 (emulated)"
