"""shared.charts: what must hold of every figure: nothing cut off or covered, readable in light and dark."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from shared.bench.records.document import Results
from shared.charts import book
from shared.charts.drawing import style
from shared.charts.drawing.style import Chart
from tests.shared.bench.bench_results import FOUR, ONE, THREE, TWO, full_results, gpu_results, only, timed, tiny_results
from tests.shared.charts import chart_checks as checks
from tests.wide import wide

NAMES = [
    "time_per_stage",
    "ladder_share",
    "speed_against_size",
    "ladder_sizes",
    "roofline",
    "products",
    "convolution_ladder_1",
    "convolution_ladder_2",
    "convolution_ladder_3",
    "operations",
    "step_parts",
    "steps",
    "training_curves",
    "accuracy_in_time",
    "inference",
    "memory",
    "phases",
]
WITH_EMULATOR = {"time_per_stage", "step_parts", "training_curves", "memory", "phases"}


@cache
def drawn(what: str, *, emulated: bool = False) -> list[Chart]:
    """All figures of `full` or `gpu` results, drawn once for all tests."""
    return book.draw({"full": full_results, "gpu": gpu_results}[what](), emulated=emulated)


@pytest.mark.parametrize("kinds", [["step", "memory"], pytest.param([], marks=wide)], ids=["few", "all"])
def test_every_figure_is_whole_and_readable(kinds: list[str]) -> None:
    charts = book.draw(replace(only(gpu_results(), kinds=kinds), curves=[])) if kinds else drawn("gpu")
    assert [chart.name for chart in charts] == (["steps", "memory"] if kinds else NAMES)
    for chart in charts:
        checks.assert_sound(chart.figure)
        assert chart.figure.get_figwidth() == style.WIDTH
        assert chart.figure.get_suptitle().replace("\n", " ") == chart.title
        assert re.search(r"\d", chart.title), f"the headline of {chart.name} has no number"
        assert chart.title[0].isupper()
        assert len(re.findall(r"\d+(?:\.\d+)?", chart.alt)) >= 3, f"{chart.name}: {chart.alt}"
        assert chart.alt.endswith(".")
        assert chart.caption.endswith(".")
        assert "nan" not in f"{chart.title} {chart.alt}"


@wide
def test_no_bar_lies_along_a_logarithmic_axis() -> None:
    """Its length would mean nothing: where it begins is anybody's choice."""
    along = {
        chart.name
        for chart in drawn("gpu")
        for axes in chart.figure.axes
        for bars in axes.containers
        if (axes.get_yscale() if getattr(bars, "orientation", "") == "vertical" else axes.get_xscale()) == "log"
    }
    assert along == {"time_per_stage"}  # its bars are treads, all of one height


@wide
def test_figures_with_the_emulator_in_them_are_whole_too() -> None:
    for chart in drawn("full", emulated=True):
        if chart.name in WITH_EMULATOR:
            checks.assert_sound(chart.figure)


@wide
@pytest.mark.parametrize("stages", [(TWO, THREE), (ONE,), (FOUR,), ("pytorch",)])
def test_a_few_contenders_give_fewer_figures_and_each_is_sound(stages: tuple[str, ...]) -> None:
    charts = book.draw(only(gpu_results(), stages=stages))
    assert charts
    assert {chart.name for chart in charts} <= set(NAMES)
    for chart in charts:
        checks.assert_sound(chart.figure)


def test_what_was_not_measured_is_not_drawn() -> None:
    nothing = Results(rows=[], curves=[], environment=full_results().environment)
    assert book.draw(nothing) == []
    assert [chart.name for chart in book.draw(tiny_results())] == [
        "ladder_share",
        "speed_against_size",
        "ladder_sizes",
        "steps",
    ]


def test_all_is_saved_light_and_dark(tmp_path: Path) -> None:
    results = only(full_results(), kinds=["memory"])
    saved = book.save_all(book.draw(replace(results, curves=[])), tmp_path / "new")
    assert [chart.name for chart in saved] == ["memory"]
    paths = list((tmp_path / "new").iterdir())
    assert sorted(path.name for path in paths) == ["memory-dark.png", "memory-dark.svg", "memory.png", "memory.svg"]
    light, dark = (imread(tmp_path / "new" / name)[..., :3] for name in ("memory.png", "memory-dark.png"))
    assert light[0, 0] == pytest.approx([1, 1, 1])
    assert dark[0, 0].max() < 0.2
    for pixels in (light, dark):
        assert pixels.shape[1] == round(style.WIDTH * style.DPI)
        edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert (edges == pixels[0, 0]).all(), "ink at the edge"
        assert pixels.std() > 0.05  # something is drawn on it
    assert ElementTree.parse(tmp_path / "new" / "memory.svg").getroot().tag.endswith("svg")


def test_the_checks_themselves_find_what_is_wrong() -> None:
    with style.house_style():
        figure: Figure = style.new_figure("A headline", "small print")
        axes = figure.subplots()
        for text in ("one", "two"):
            axes.text(0.5, 0.5, text, color="#E69F00", fontsize=5)
        axes.text(0.5, 0.2, "far out " * 40, in_layout=False)
    assert ("one", "two") in checks.overlapping(figure)
    assert len(checks.cut_off(figure)) == 1
    assert checks.too_small(figure) == ["one", "two"]
    assert [text for text, _ in checks.unreadable(figure)] == ["one", "two"]
    assert timed(1.0).median == 1.0


def test_a_figure_that_cannot_be_drawn_or_saved_costs_itself_and_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_ink(results: object, **options: object) -> None:
        raise ZeroDivisionError("no\nink")

    results = only(full_results(), kinds=["memory"])
    monkeypatch.setattr(book, "FIGURES", (no_ink, book.memory, book.training_curves))
    charts = book.draw(results)
    assert [chart.name for chart in charts] == ["memory", "training_curves"]
    assert capsys.readouterr().err == "warning: the figure no_ink was not drawn: ZeroDivisionError: no ink\n"
    (tmp_path / "memory.svg").mkdir()
    assert [chart.name for chart in book.save_all(charts, tmp_path)] == ["training_curves"]
    told = capsys.readouterr().err
    assert told.startswith(f"warning: the figure memory was not drawn: OSError: cannot write {tmp_path}")
