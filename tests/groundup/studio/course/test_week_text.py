"""The weeks' pages as blocks, and their formulas as trees."""

from __future__ import annotations

import re
from typing import Any

import pytest

from groundup.studio.course import week_text
from groundup.studio.course.mathematics import tree


def words(value: Any) -> str:
    """Every text in a block."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(words(each) for name, each in value.items() if name != "kind")
    return " ".join(map(words, value)) if isinstance(value, list) else ""


@pytest.mark.parametrize("week", range(1, 19))
def test_nothing_of_a_weeks_page_is_lost(week: int) -> None:
    text = (week_text.WEEKS / f"week{week:02}.md").read_text(encoding="utf-8")
    plain = re.sub(
        r"^```\w+$|^```\{\w+\}|^\$ |<!--.*?-->|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)",
        " ",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    shown = set(re.findall(r"[A-Za-z_]{4,}", words(week_text.blocks(week))))
    assert set(re.findall(r"[A-Za-z_]{4,}", plain)) - shown == set()


def test_every_figure_of_a_week_is_there() -> None:
    figures = [block["name"] for week in range(1, 19) for block in week_text.blocks(week) if block["kind"] == "figure"]
    assert len(figures) >= 18
    assert [name for name in figures if week_text.figure(name) is None] == []
    assert week_text.figure("../../pyproject.toml") is None


def test_a_line_in_parts() -> None:
    found = week_text.spans("A `code`, **bold**, *thin*, [a page](../a.md), [the web](https://a.b/c) and $x^2$.")
    assert found == [
        *(["", "A "], ["code", "code"], ["", ", "], ["strong", "bold"], ["", ", "], ["em", "thin"], ["", ", "]),
        *(["em", "a page"], ["", ", "], ["link", "the web", "https://a.b/c"], ["", " and "]),
        *(["math", ["row", ["sup", ["mi", "x"], ["mn", "2"]]]], ["", "."]),
    ]


def test_a_script_is_no_link() -> None:
    assert week_text.spans("[x](javascript:alert)") == [["em", "x"]]


def test_formulas() -> None:
    assert tree(r"\frac{a}{b_1}") == ["row", ["frac", ["row", ["mi", "a"]], ["row", ["sub", ["mi", "b"], ["mn", "1"]]]]]
    assert tree(r"x^\top") == ["row", ["sup", ["mi", "x"], ["mo", "\N{DOWN TACK}"]]]
    assert tree(r"\beta_1^t") == ["row", ["both", ["mi", "β"], ["mn", "1"], ["mi", "t"]]]
    assert tree(r"\sqrt{v} \text{ is right}") == [
        "row",
        ["sqrt", ["row", ["mi", "v"]]],
        ["mtext", " is right"],
    ]


def test_no_formula_of_a_week_keeps_a_command() -> None:
    for week in range(1, 19):
        for found in re.findall(r"\$\$?([^$]+)\$", (week_text.WEEKS / f"week{week:02}.md").read_text(encoding="utf-8")):
            assert "\\" not in words(tree(found)), found
