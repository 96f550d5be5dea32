"""shared.charts: colours, words and axes that all figures share."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from shared import contract
from shared.bench.measuring.rows import LIBRARIES
from shared.charts.drawing import axes as shared_axes
from shared.charts.drawing import colours, contenders, style, words
from shared.charts.drawing.colours import INK, PAPER, QUIET, READABLE, SHADES, contrast, on_dark, readable
from tests.shared.bench.bench_results import full_results, tiny_results


def test_every_contender_has_a_colour_a_marker_and_a_name() -> None:
    everyone = (*contract.STAGES, *LIBRARIES)
    assert everyone == contenders.ORDER
    assert len({contenders.marker(each) for each in everyone}) == len(everyone)
    assert len({contenders.colour(each) for each in contract.STAGES}) == len(contract.STAGES)
    assert len({on_dark(contenders.colour(each)) for each in contract.STAGES}) == len(contract.STAGES)
    assert [contenders.name(each) for each in everyone][:3] == ["pure Python", "NumPy", "C"]


@pytest.mark.parametrize("screen", [lambda colour: colour, on_dark], ids=["light", "dark"])
def test_ink_and_every_contenders_text_can_be_read_on_either_screen(screen: Callable[[str], str]) -> None:
    paper = screen(PAPER)
    for colour in (INK, QUIET):
        assert contrast(screen(colour), paper) >= READABLE
    for each in contenders.ORDER:
        colour = contenders.colour(each)
        assert contrast(screen(colour), paper) >= 2, "a mark that the paper swallows"
        assert contrast(screen(readable(colour)), paper) >= READABLE
    for step in range(SHADES + 1):
        shade = colours.shade(step / SHADES)
        assert contrast(screen(colours.text_on(shade)), screen(shade)) >= 3.9
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


def test_the_small_print_tells_machine_day_threads_and_what_was_not_whole() -> None:
    foot = contenders.footer(tiny_results())
    for wanted in ("AMD EPYC 9B14", "2026-01-31", "2 threads", "quick run", "interrupted"):
        assert wanted in foot
    assert "quick" not in contenders.footer(full_results())
    race = replace(full_results(), environment={**full_results().environment, "threads": None, "ladder_threads": 1})
    assert "1 thread" in contenders.footer(race, kind="ladder")
    assert "thread" not in contenders.footer(race)


def test_long_headlines_are_broken_into_lines_that_fit() -> None:
    text = "a headline that is far too long for the width of a telephone, 12.5 times"
    lines = style.wrapped(text, 2.0, 11, bold=True).split("\n")
    assert " ".join(lines) == text
    assert len(lines) > 2
    assert all(style.text_width(line, 11, bold=True) <= 2.0 for line in lines)


def test_figures_and_pages_do_not_break_a_line_between_a_number_and_its_unit() -> None:
    said = [
        words.duration(0.5),
        words.share(0.5),
        words.times(2),
        words.size_of(2048),
        words.many(2e6),
        words.percent(1),
    ]
    assert all(" " not in each and each.count(words.NO_BREAK) == 1 for each in said)
    assert words.capital("pure Python") == "Pure Python"


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0.9, 120, 8, [1, 2, 5, 10, 20, 50, 100]),
        (0.9, 1200, 8, [1, 3, 10, 30, 100, 300, 1000]),
        (1e-4, 1, 4, [1e-4, 1e-2, 1]),
        (0.9e-3, 2, 9, [1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1]),
    ],
)
def test_logarithmic_ticks_are_round_and_few(low: float, high: float, most: int, expected: list[float]) -> None:
    assert shared_axes.log_ticks(low, high, most) == pytest.approx(expected)


@pytest.mark.parametrize(
    "wanted", [[10, 11, 12, 80], [0, 0, 0, 0], [100, 100, 100], [5, 50, 95], [60, 20, 61, 19, 62]], ids=str
)
def test_labels_are_spread_without_touching_and_in_their_order(wanted: list[float]) -> None:
    heights, room = [10.0] * len(wanted), 100.0
    places = shared_axes.spread(wanted, heights, room)
    assert all(5 <= place <= 95 for place in places)
    ordered = sorted(places)
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(ordered))
    assert [i for i, _ in sorted(enumerate(places), key=lambda pair: pair[1])] == [
        i for i, _ in sorted(enumerate(wanted), key=lambda pair: pair[1])
    ]
    assert shared_axes.spread([5, 50, 95], [10.0] * 3, room) == pytest.approx([5, 50, 95])  # those that fit stay
