"""What is doubtful is said alike on the terminal, in the figures and on the page, and no headline rests on it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.bench.measuring.rows import BenchRow
from shared.bench.records import trust
from shared.bench.records.document import Results
from shared.charts.drawing import contenders as who
from shared.charts.drawing.style import Chart
from shared.charts.drawing.words import NO_BREAK
from shared.charts.figures.ladder_share import ladder_share
from shared.charts.figures.operations import operations
from shared.charts.figures.products_and_steps import products, steps
from shared.charts.figures.roofline import roofline
from shared.charts.figures.sizes import speed_against_size
from shared.charts.figures.staircase import staircase
from shared.charts.report import page, page_numbers
from shared.machine.environment import environment, slowed
from tests.shared.bench.bench_results import THREE, TWO, full_results, only, timed
from tests.wide import widely

SUBJECTS: dict[Callable[[Results], Chart | None], str] = {
    ladder_share: "Every rung beside the best library",
    roofline: "Every rung under the roofs of the machine",
    products: "Every product beside NumPy",
    steps: "Every training step beside NumPy",
    operations: "Every operation beside NumPy",
    speed_against_size: "The fastest rungs against the matrix size",
}


def changed(change: Callable[[BenchRow], BenchRow], **facts: Any) -> Results:
    results = full_results()
    rows = [change(row) for row in results.rows]
    return replace(results, rows=rows, environment={**results.environment, **facts})


def same(row: BenchRow) -> BenchRow:
    return row


def title(figure: Callable[[Results], Chart | None], results: Results) -> str:
    chart = figure(results)
    assert chart is not None
    return chart.title.replace(NO_BREAK, " ")


def small_print(chart: Chart | None) -> str:
    assert chart is not None
    return " ".join(text.get_text() for text in chart.figure.texts)


@pytest.mark.parametrize("figure", widely(SUBJECTS, first=2), ids=lambda each: each.__name__)
def test_no_figure_compares_in_its_headline_what_a_busy_or_slowed_machine_measured(
    figure: Callable[[Results], Chart | None],
) -> None:
    assert any(letter.isdigit() for letter in title(figure, full_results()))
    for facts in ({"load_average": 1.7}, {"slowing_variables": {"OPENBLAS_CORETYPE": "Prescott"}}):
        assert title(figure, changed(same, **facts)) == SUBJECTS[figure]


@pytest.mark.parametrize("figure", widely([products, ladder_share, steps]), ids=lambda each: each.__name__)
def test_no_headline_rests_on_ratios_that_are_not_known_well(figure: Callable[[Results], Chart | None]) -> None:
    noisy = changed(lambda row: replace(row, ratio_noise=0.6))
    assert title(figure, noisy) == SUBJECTS[figure]
    wide_spread = changed(
        lambda row: replace(row, ratio_noise=None, measurement=row.measurement and timed(row.measurement.median, 0.5))
    )
    assert title(figure, wide_spread) == SUBJECTS[figure]


def test_rows_agree_about_their_reference_within_a_quarter() -> None:
    row = next(row for row in full_results().rows if row.kind == "ladder" and row.ratio)
    for times, agreed in ((1.2, True), (1.3, False)):
        other = replace(row, ratio=(row.ratio or 1.0) * times)
        assert trust.same_reference([row, other, replace(other, ratio=None)]) is agreed


def test_the_foot_of_a_figure_says_what_spoilt_the_run() -> None:
    spoilt = changed(same, load_average=1.7, slowing_variables={"OPENBLAS_CORETYPE": "Prescott"})
    assert "the machine was not idle · with OPENBLAS_CORETYPE" in small_print(staircase(spoilt)).replace("\n", " ")
    assert "not idle" not in small_print(staircase(full_results()))


def test_page_and_terminal_give_the_same_doubts() -> None:
    spoilt = changed(
        lambda row: replace(row, ratio_noise=row.ratio and 0.6), load_average=1.7, slowing_variables={"NUMBA_OPT": "0"}
    )
    found = trust.doubts(spoilt)
    assert [text.split(" ")[0] for text in found[1:]] == ["the", "NUMBA_OPT=0"]
    assert "ratios are not known to better than 25%" in found[0]
    written = page.html(spoilt, [])
    for text in found:
        assert text[1:] in written
    assert trust.doubts(changed(lambda row: replace(row, ratio_noise=row.ratio and 0.1))) == []


def test_the_page_has_no_cards_from_a_spoilt_run_and_none_from_unsteady_rows() -> None:
    assert page_numbers.headlines(full_results())
    assert page_numbers.headlines(changed(same, load_average=1.7)) == []
    assert page_numbers.headlines(changed(lambda row: replace(row, ratio_noise=0.6))) == []


def test_a_card_and_a_figure_show_one_number() -> None:
    """The ratio of the same rounds, which is not the ratio of the medians."""
    epochs = only(full_results(), kinds=["epoch"])
    three = replace(next(row for row in epochs.rows if row.stage == THREE), against={TWO: 4.8})
    two = next(row for row in epochs.rows if row.stage == TWO and row.name == three.name and row.dtype == three.dtype)
    assert who.times_as_fast(three, two) == 4.8
    assert who.times_as_fast(two, three) == pytest.approx(1 / 4.8)
    assert (two.seconds or 0) / (three.seconds or 1) != pytest.approx(4.8, rel=0.01)
    results = replace(epochs, rows=[two, three])
    chart = staircase(results)
    assert chart is not None
    (card,) = [each for each in page_numbers.headlines(results) if each.title == "C beside NumPy"]
    assert card.value.replace(NO_BREAK, " ") == "4.8 times as fast"
    drawn = {text.get_text().replace(NO_BREAK, " ") for axes in chart.figure.axes for text in axes.texts}
    assert "4.8 times\nas fast" in drawn
    assert "4.8 times as fast" in chart.title.replace(NO_BREAK, " ")


def test_what_slows_a_library_is_recorded_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert slowed({}) is None
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    facts = environment()
    assert facts["slowing_variables"] == {"OPENBLAS_CORETYPE": "Prescott"}
    assert slowed(facts) == (
        "OPENBLAS_CORETYPE=Prescott in the environment can make NumPy, PyTorch, Numba or stage 3 slower than they are "
        "on this machine: unset it before you measure"
    )
