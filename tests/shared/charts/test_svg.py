"""A figure's files: one SVG for light and dark, the dark ones, and the element in a page."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from shared.charts import book
from shared.charts.drawing import save, style, svg
from shared.charts.drawing.colours import BLUE, INK, PAPER, SKY
from shared.charts.drawing.style import Chart
from shared.charts.figures import inside, staircase, step_parts
from tests.shared.bench.bench_results import full_results, gpu_results
from tests.wide import widely

SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
USE = '<use xlink:href="#g" transform="translate({} 0)"/><path id="g"/>'


def chart(what: object = staircase.staircase) -> Chart:
    found = what(gpu_results())  # type: ignore[operator]
    assert isinstance(found, Chart)
    return found


def an_image_in_ink() -> Figure:
    with style.house_style():
        figure = style.new_figure("A digit", "small print", height=2)
        image = figure.subplots().imshow([[0.0, 0.5], [0.7, 1.0]], inside.INKS)
        image.set_gid(f"{svg.INK_IMAGE}-0")
    return figure


def test_the_same_figure_gives_the_same_text() -> None:
    assert svg.of(chart().figure) == svg.of(chart().figure)


def test_one_file_is_light_and_on_a_dark_screen_dark() -> None:
    told = svg.with_palettes(svg.of(chart().figure))
    light, dark = told[: told.index("</style>")].split("@media screen and (prefers-color-scheme:dark)")
    assert f"--paper:{PAPER}" in light
    assert "--paper:#16181D" in dark
    assert f"--blue:{BLUE}" in light
    assert f"--blue:{SKY}" in dark
    assert "fill: #ffffff; fill: var(--paper)" in told
    assert "--shade-3" not in told  # a colour that this figure does not use
    assert ElementTree.fromstring(told).tag == f"{svg.SVG}svg"


def test_a_colour_that_the_palette_does_not_know_stays() -> None:
    told = svg.with_palettes('<svg><path style="fill: #123456; stroke: #222222"/></svg>')
    assert '<path style="fill: #123456; stroke: #222222; stroke: var(--ink)"/>' in told


@pytest.mark.parametrize("figure", widely(book.FIGURES), ids=lambda each: each.__name__)
def test_darkened_artists_have_the_colours_of_the_dark_file(figure: object) -> None:
    """So that the dark PNG and the dark SVG are one figure, and no artist is forgotten."""
    found = figure(full_results(), emulated=True)  # type: ignore[operator]
    light = svg.of(found.figure)
    save.darken(found.figure)
    colours = re.compile(r"#[0-9a-f]{6}\b")
    assert colours.findall(svg.of(found.figure)) == colours.findall(svg.on_dark_screen(light))


def test_ink_on_an_image_is_inverted_on_a_dark_screen() -> None:
    figure = an_image_in_ink()
    light = svg.of(figure)
    assert "@media screen and (prefers-color-scheme:dark){[id^=" in svg.with_palettes(light)
    assert "<style>[id^=" in svg.on_dark_screen(light)
    image = figure.axes[0].images[0]
    before = image.to_rgba(1.0)  # type: ignore[arg-type]
    save.darken(figure)
    assert image.to_rgba(1.0)[:3] == pytest.approx([1 - each for each in before[:3]], abs=0.01)  # type: ignore[arg-type]


def test_dark_files_are_written_where_asked_for(tmp_path: Path) -> None:
    one = chart(step_parts.step_parts)
    assert [path.name for path in save.save(one.figure, tmp_path / "one")] == ["one.png", "one.svg"]
    assert [path.name for path in save.save(one.figure, tmp_path / "new" / "one", dark=True)] == [
        "one.png",
        "one.svg",
        "one-dark.png",
        "one-dark.svg",
    ]
    assert INK.lower() not in (tmp_path / "new" / "one-dark.svg").read_text(encoding="utf-8")


def test_an_element_for_a_page_has_every_path_and_is_shorter() -> None:
    told = svg.with_palettes(svg.of(chart().figure))
    small = svg.inline(told, "f7", "It is 'A & B'.")
    assert len(small) < 0.7 * len(told)
    tree, original = (ElementTree.fromstring(each) for each in (small, told))
    for kind in ("path", "use", "clipPath", "rect"):
        assert len(list(tree.iter(kind))) == len(list(original.iter(f"{svg.SVG}{kind}"))), kind
    names = {each.get("id", "") for each in tree.iter() if each.get("id")}
    assert {each[1:] for each in re.findall(r'(?:href="|url\()(#[\w-]+)', small)} == names
    assert all(name.startswith("f7-") for name in names)
    assert (tree.get("role"), tree.get("aria-label")) == ("img", "It is 'A & B'.")
    assert "#222222" not in small  # the page's variables say what ink is
    assert "<style" not in small


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('<g id="a"><path d="M 1.23456 2 \nL 3 -0.001 z"/></g>', '<path d="M1.23,2L3,0z"/>'),
        (USE.format("12.345678"), '<use href="#f-0" x="12.35"/><path id="f-0"/>'),
        ("<!-- a --><metadata>b</metadata><style>c</style><defs/><g/><path/>", "<path/>"),
        ('<path clip-path="url(#p)"/><clipPath id="p"/>', '<path clip-path="url(#f-0)"/><clipPath id="f-0"/>'),
    ],
)
def test_what_a_page_does_not_need_is_left_out(given: str, expected: str) -> None:
    assert svg.inline(f"<svg {SPACES}>{given}</svg>", "f", "x") == f'<svg role="img" aria-label="x">{expected}</svg>'
