"""The report: one file that says everything, loads nothing, escapes what it is given and lets nothing emulated pass."""

from __future__ import annotations

import html as markup
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from shared.bench.document import Results
from shared.charts import book, page
from shared.charts.page_figures import LOOKS
from shared.charts.page_machine import fact
from shared.charts.page_numbers import headlines
from shared.charts.page_pictures import compact, data_uri, size
from shared.charts.page_tables import sections, with_noise
from shared.charts.style import LIGHT, Chart, Look, house_style, svg_text
from tests.shared.bench import bench_results as made

FOUR = made.FOUR


def small_chart(results: Results, look: Look = LIGHT, *, emulated: bool = False) -> list[Chart]:
    """Stands in for the book, which takes seconds."""
    with house_style(look):
        figure = Figure(figsize=(3.7, 2.0) if look.narrow else (7.2, 2.0))
        figure.suptitle("A & B: 50 % faster")
        figure.subplots().plot([1, 2], [3, 4])
    return [Chart("speeds", figure, "A & B: 50 % faster", "A takes 1 s, B 'two'.", "How to <read> it.")]


REAL_DRAW = book.draw


@pytest.fixture(autouse=True)
def one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "draw", small_chart)


def text_of(written: str) -> str:
    """What a reader sees, without tags and styles."""
    return markup.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", re.sub(r'"data:[^"]*"', '""', written)))


class Images(HTMLParser):
    """Collects images and sources with their attributes."""

    def __init__(self, written: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(written)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "source"):
            self.found.append((tag, {name: value or "" for name, value in attrs}))


def pictures(written: str) -> Iterator[ElementTree.Element]:
    for name, attributes in Images(written).found:
        address = attributes["src" if name == "img" else "srcset"]
        yield ElementTree.fromstring(unquote(address.removeprefix("data:image/svg+xml,")))


def test_a_figure_stands_there_for_every_look_with_its_size_alt_and_caption() -> None:
    written = page.html(made.tiny_results())
    found = Images(written).found
    assert [name for name, _ in found] == ["source", "source", "source", "img"]
    assert [attributes.get("media", "") for _, attributes in found] == list(LOOKS)
    assert [attributes["width"] for _, attributes in found] == ["355", "355", "691", "691"]
    assert {attributes["height"] for _, attributes in found} == {"192"}
    assert found[-1][1]["alt"] == "A & B: 50 % faster. A takes 1 s, B 'two'."
    assert "How to &lt;read&gt; it." in written
    assert '<a href="#speeds">A &amp; B: 50 % faster</a>' in written


@pytest.mark.slow
def test_a_whole_run_with_all_figures_fits_into_an_email(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "draw", REAL_DRAW)
    written = page.html(made.gpu_results())
    found = [attributes for name, attributes in Images(written).found if name == "img"]
    assert len(found) >= 12
    assert all(len(attributes["alt"]) > 40 for attributes in found)
    assert len(Images(written).found) == 4 * len(found)
    assert len(written.encode()) < 5_000_000


def test_every_address_is_a_whole_picture_of_its_own_ground() -> None:
    roots = list(pictures(page.html(made.tiny_results())))
    assert {root.tag for root in roots} == {"{http://www.w3.org/2000/svg}svg"}
    grounds = [root.find("{http://www.w3.org/2000/svg}path").get("style") for root in roots]  # type: ignore[union-attr]
    assert grounds == ["fill:#16181d", "fill:#ffffff", "fill:#16181d", "fill:#ffffff"]


@pytest.mark.parametrize("name", ["full", "gpu", "tiny"])
def test_the_page_names_nothing_that_a_browser_would_load(name: str) -> None:
    written = page.html(getattr(made, f"{name}_results")())
    outside = re.sub(r'"data:image/svg\+xml,[^"]*"', '""', written)
    assert re.findall(r'(?:src|href|srcset|url|@import)\s*[=(]\s*"?(?!"|#)[^>]{0,40}', outside) == []
    assert "<script" not in written
    assert f'content="{markup.escape(page._POLICY)}"' in written
    assert "default-src 'none'; img-src data:" in page._POLICY


def test_every_row_is_in_a_table_and_every_skipped_one_in_a_list() -> None:
    results = made.full_results()
    written = page.html(results)
    rows = sum(row.skipped is None for row in results.rows)
    assert written.count("<tr>") == rows + len(results.curves) + len(results.predictions) + 12 + 1 + 1
    text = text_of(written)
    assert "stage 3, ijk, 2048 by 2048, float64: one call would take about 5.9 s; the limit is 1 s" in text
    assert "no GPU was found" in text


def test_a_row_has_its_median_spread_ratio_noise_speed_and_share_of_peak() -> None:
    row = next(row for row in made.full_results().rows if row.name == "packed" and row.shape[0] == 512)
    (section,) = sections(Results([row], [], made.ENVIRONMENT))
    cells = re.findall(r"<t[hd] [^>]*>(.*?)</t[hd]>", section)
    half = len(cells) // 2
    got = {
        name: markup.unescape(cell).replace("\u00a0", " ")
        for name, cell in zip(cells[:half], cells[half:], strict=True)
    }
    assert got == {
        "who": "stage 3",
        "what": "packed",
        "dtype": "float64",
        "size": "512",
        "threads": "1",
        "median": "5.17 ms",
        "spread": "2 %",
        "ratio": "1.95 ± 3 %",
        "GFLOP/s": "51.9",
        "GB/s": "1.22",
        "of peak": "91 %",
        "ratio to": "NumPy a @ b, float64",
    }


def test_an_emulated_row_says_so_and_has_no_part_in_the_headlines() -> None:
    results = made.full_results()
    emulated = replace(results, rows=[row for row in results.rows if row.emulated], curves=[])
    assert headlines(emulated) == []
    for line in re.findall(r"<tr>(.*?)</tr>", "".join(sections(emulated))):
        assert "<td" not in line or "stage 4 (emulated)" in line
    assert "say nothing about a GPU" in text_of(page.html(emulated))
    assert not [each for each in headlines(results) if "CUDA" in each.title]


def test_a_gpus_rows_are_not_called_emulated_and_name_its_clock() -> None:
    text = text_of(page.html(made.gpu_results()))
    assert "(emulated)" not in text
    assert "say nothing about a GPU" not in text
    assert "GPU's" in text


def test_the_headlines_are_the_results_own() -> None:
    found = {each.title: each for each in headlines(made.full_results())}
    assert found["NumPy beside pure Python"].value.replace("\u00a0", " ") == "380 times as fast"
    assert found["C beside PyTorch"].noise == 0.04
    assert "one training step, 784-128-10, batch 64, float32" in found["C beside PyTorch"].about
    assert found["C's best product"].value.replace("\u00a0", " ") == "98 % of the peak"
    gpu = {each.title: each.value.replace("\u00a0", " ") for each in headlines(made.gpu_results())}
    assert gpu["CUDA's best product"] == "85 % of the library"


def test_who_is_slower_is_called_slower() -> None:
    results = made.only(made.full_results(), stages=[made.THREE], kinds=["step"])
    slow = replace(results, rows=[replace(row, against={"pytorch": 0.25}) for row in results.rows])
    (found,) = [each for each in headlines(slow) if each.title == "C beside PyTorch"]
    assert found.value.replace("\u00a0", " ") == "4 times as slow"


def test_an_interrupted_run_of_one_pass_says_so() -> None:
    text = text_of(page.html(made.tiny_results()))
    assert "This run was interrupted" in text
    assert "in one pass" in text
    assert "PyTorch is not installed" in text
    assert "groundup bench --quick --stages 2,3" in text
    whole = text_of(page.html(made.full_results()))
    assert "interrupted" not in whole
    assert "3 passes" in whole


def test_ratios_that_are_hardly_known_are_warned_of() -> None:
    results = made.only(made.full_results(), stages=[made.THREE], kinds=["step"])
    first, *others = results.rows
    noisy = replace(results, rows=[replace(first, ratio_noise=0.9), *others])
    assert f"1 of {len(noisy.rows)} ratios are not known to better than 25%." in text_of(page.html(noisy))
    assert "not known to better" not in text_of(page.html(results))


def test_guesses_stand_beside_what_was_measured() -> None:
    text = " ".join(text_of(page.html(made.full_results())).split())
    assert "NumPy beside pure Python, 128³ 100 830 times; you said 100: too low by a factor of 8.3" in text
    assert "C beside NumPy, 512³ none 1.1 times" in text


def test_nothing_that_was_measured_makes_a_page_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "draw", lambda results, look, *, emulated: [])
    text = text_of(page.html(Results([], [], {}, complete=False)))
    assert "Too little was measured for a figure." in text
    assert "This run was interrupted" in text


def test_texts_are_escaped_wherever_they_come_from() -> None:
    given = iter(range(100))

    def bad() -> str:
        return f"<script>alert({next(given)})</script>&\"'"

    results = made.tiny_results()
    row = replace(results.rows[0], name=bad(), part=bad(), reference=bad())
    skipped = replace(results.rows[1], measurement=None, skipped=bad(), name=bad())
    written = page.html(
        Results(
            [row, skipped],
            [],
            made.ENVIRONMENT | {"cpu": bad(), "libraries": {bad(): bad()}},
            unavailable={"x": bad()},
            predictions=[{"question": bad(), "unit": "x", "guess": 1.0, "measured": 2.0}],
            command=bad(),
        )
    )
    assert "<script" not in written
    for number in range(next(given)):
        assert f"&lt;script&gt;alert({number})&lt;/script&gt;&amp;&quot;&#x27;" in written, number


def test_emulated_is_handed_on_to_the_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[bool] = []

    def draw(results: Results, look: Look, *, emulated: bool) -> list[Chart]:
        asked.append(emulated)
        return []

    monkeypatch.setattr(book, "draw", draw)
    written = page.write(made.full_results(), tmp_path / "report.html", emulated=True)
    page.html(made.full_results())
    assert asked == [True, False]
    assert written.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_wide_figures_that_are_saved_already_are_taken_from_their_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results = made.tiny_results()
    book.save_all(results, tmp_path)
    drawn: list[Look] = []

    def draw(results: Results, look: Look, *, emulated: bool) -> list[Chart]:
        drawn.append(look)
        return small_chart(results, look)

    fresh = page.html(results)
    monkeypatch.setattr(book, "draw", draw)
    assert page.html(results, saved=tmp_path) == fresh
    assert drawn == [Look(), Look(dark=True, narrow=True), Look(narrow=True)]


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write .*report\.html"):
        page.write(made.tiny_results(), tmp_path / "file" / "report.html")


def test_a_compact_picture_has_every_path_and_is_half_as_long() -> None:
    svg = svg_text(small_chart(made.tiny_results())[0].figure)
    small = compact(svg)
    assert len(small) < 0.65 * len(svg)
    tree, original = (ElementTree.fromstring(each) for each in (small, svg))
    for kind in ("path", "use", "clipPath", "rect"):
        name = f"{{http://www.w3.org/2000/svg}}{kind}"
        assert len(list(tree.iter(name))) == len(list(original.iter(name))), kind
    names = {each.get("id") for each in tree.iter() if each.get("id")}
    assert {each[1:] for each in re.findall(r'(?:href="|url\()(#\w+)', small)} == names
    assert size(svg) == (691, 192)


USE = '<use xlink:href="#g" transform="translate({} 0)"/><path id="g"/>'


@pytest.mark.parametrize(
    ("svg", "expected"),
    [
        ('<g id="a"><path d="M 1.23456 2 \nL 3 -0.001 z"/></g>', '<path d="M1.23,2L3,0z"/>'),
        (USE.format("12.345678"), '<use href="#i0" x="12.35"/><path id="i0"/>'),
        (USE.format("0"), '<use href="#i0"/><path id="i0"/>'),
        ('<g transform="translate(1.23456 7)"><path/></g>', '<g transform="translate(1.2346 7)"><path/></g>'),
        ("<!-- a --><metadata>b</metadata><g/><path/>", "<path/>"),
        ('<path style="fill: #fff; stroke: none"/>', '<path style="fill:#fff;stroke:none"/>'),
        ('<path clip-path="url(#p)"/><clipPath id="p"/>', '<path clip-path="url(#i0)"/><clipPath id="i0"/>'),
    ],
)
def test_what_a_browser_does_not_need_is_left_out(svg: str, expected: str) -> None:
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    assert compact(f"<svg {spaces}>{svg}</svg>") == f'<svg xmlns="http://www.w3.org/2000/svg">{expected}</svg>'


def test_an_address_can_stand_in_srcset_and_is_the_picture_again() -> None:
    svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><title>50 % & '#1'</title></svg>"
    address = data_uri(svg)
    assert not set(address) & set('" &\n')
    again = unquote(address.removeprefix("data:image/svg+xml,"))
    assert again == svg.replace("'", "&apos;").replace('"', "'")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hypervisor", True, "yes"),
        ("governor", None, ""),
        ("memory", 16 << 30, "16 GiB"),
        ("libraries", {"numba": "0.6", "torch": "2"}, "numba 0.6, torch 2"),
        ("thread_variables", {"OMP_NUM_THREADS": "2"}, "OMP_NUM_THREADS: 2"),
        ("pinned", [0, 1], "0, 1"),
        ("stage3_c", {"flags": ["-O3", "-g"], "simd_bits": 512, "none": None}, "flags: -O3 -g; simd bits: 512"),
        ("gpus", [{"name": "H100", "driver": "580"}], "name: H100; driver: 580"),
        (
            "caches",
            [
                {"level": 1, "type": "data", "bytes": 32768, "shared_by": 1},
                {"level": 3, "type": "unified", "bytes": 1 << 25, "shared_by": 8},
            ],
            "L1 data 32 KiB; L3 32 MiB for 8 cores",
        ),
    ],
)
def test_a_fact_is_told_in_words(name: str, value: object, expected: str) -> None:
    assert fact(name, value).replace("\u00a0", " ") == expected


@pytest.mark.parametrize(
    ("value", "noise", "expected"),
    [(2.0, 0.03, "2 ± 3 %"), (2.0, 29161.96, "2 ± over 100 %"), (2.0, None, "2"), (None, None, "")],
)
def test_a_ratio_stands_with_its_noise(value: float | None, noise: float | None, expected: str) -> None:
    assert with_noise(value, noise).replace("\u00a0", " ") == expected
