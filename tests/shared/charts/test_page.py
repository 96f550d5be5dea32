"""The report: one file that says everything, loads nothing, escapes what it is given and lets nothing emulated pass."""

from __future__ import annotations

import html as markup
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from shared.bench.on_gpu import gpu_record
from shared.bench.records.document import Results
from shared.charts import book
from shared.charts.drawing.style import Chart, house_style
from shared.charts.report import page
from shared.charts.report.page_machine import fact
from shared.charts.report.page_numbers import headlines
from shared.charts.report.page_tables import sections
from tests.shared.bench import bench_results as made
from tests.wide import wide

FOUR = made.FOUR


def small_chart() -> Chart:
    """Stands in for the book, which takes seconds."""
    with house_style():
        figure = Figure(figsize=(5.2, 2.0))
        figure.suptitle("A & B: 50 % faster")
        figure.subplots().plot([1, 2], [3, 4])
    return Chart("speeds", figure, "A & B: 50 % faster", "A takes 1 s, B 'two'.", "How to <read> it.")


def text_of(written: str) -> str:
    """What a reader sees, without tags and styles."""
    return markup.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", re.sub(r'"data:[^"]*"', '""', written)))


def pictures(written: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(each) for each in re.findall(r"<svg.*?</svg>", written, re.DOTALL)]


def test_a_figure_stands_there_once_with_alternative_text_and_caption() -> None:
    written = page.html(made.tiny_results(), [small_chart()])
    (picture,) = pictures(written)
    assert picture.get("aria-label") == "A & B: 50 % faster. A takes 1 s, B 'two'."
    assert picture.get("viewBox") == "0 0 374.4 144"
    assert "How to &lt;read&gt; it." in written
    assert '<a href="#speeds">A &amp; B: 50 % faster</a>' in written


@wide
def test_a_whole_run_with_all_figures_is_small_and_no_id_stands_there_twice() -> None:
    results = made.gpu_results()
    written = page.html(results, book.draw(results))
    found = pictures(written)
    assert len(found) >= 12
    assert all(len(each.get("aria-label", "")) > 40 for each in found)
    ids = re.findall(r'\bid="([^"]+)"', written)
    assert len(ids) == len(set(ids))
    assert len(written.encode()) < 1_500_000


def test_every_colour_of_a_figure_is_one_that_the_page_defines() -> None:
    written = page.html(made.tiny_results(), [small_chart()])
    sheet = re.search(r"<style>(.*?)</style>", written, re.DOTALL)
    assert sheet is not None
    used = set(re.findall(r"var\((--[\w-]+)\)", written))
    assert {"--paper", "--ink"} <= used
    assert all(f"{name}:" in sheet[1] for name in used)


@pytest.mark.parametrize("name", ["full", "gpu", "tiny"])
def test_the_page_names_nothing_that_a_browser_would_load(name: str) -> None:
    written = page.html(getattr(made, f"{name}_results")(), [small_chart()])
    assert re.findall(r'(?:src|href|srcset|url|@import)\s*[=(]\s*"?(?!"|#)[^>]{0,40}', written) == []
    assert "<script" not in written
    assert f'content="{markup.escape(page._POLICY)}"' in written
    assert page._POLICY.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")


def test_every_row_is_in_a_table_and_every_skipped_one_in_a_list() -> None:
    results = made.full_results()
    written = page.html(results)
    rows = sum(row.skipped is None for row in results.rows)
    recorded = len(gpu_record.beside(gpu_record.reference(), results.rows)) + 1
    assert written.count("<tr>") == rows + len(results.curves) + len(results.predictions) + recorded + 13 + 1 + 1
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


def test_the_headlines_are_the_results_own() -> None:
    found = {each.title: each for each in headlines(made.full_results())}
    assert found["NumPy beside pure Python"].value.replace("\u00a0", " ") == "380 times as fast"
    assert found["C beside PyTorch"].noise == 0.04
    assert "one training step, 784-128-10, batch 64, float32" in found["C beside PyTorch"].about
    assert found["C's best product"].value.replace("\u00a0", " ") == "98 % of the peak"
    gpu = {each.title: each.value.replace("\u00a0", " ") for each in headlines(made.gpu_results())}
    assert gpu["CUDA's best product"] == "85 % of the library"


def test_an_interrupted_run_of_one_pass_says_so() -> None:
    text = text_of(page.html(made.tiny_results()))
    assert "This run was interrupted" in text
    assert "in one pass" in text
    assert "PyTorch is not installed" in text
    assert "groundup bench --quick --stages 2,3" in text
    whole = text_of(page.html(made.full_results()))
    assert "interrupted" not in whole
    assert "3 passes" in whole


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


def test_figures_that_are_saved_already_are_taken_from_their_files(tmp_path: Path) -> None:
    chart = small_chart()
    fresh = page.html(made.tiny_results(), [chart])
    book.save_all([chart], tmp_path)
    assert page.html(made.tiny_results(), [chart], saved=tmp_path) == fresh


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hypervisor", True, "yes"),
        ("governor", None, ""),
        ("libraries", {"numba": "0.6", "torch": "2"}, "numba 0.6, torch 2"),
        ("stage3_c", {"flags": ["-O3", "-g"], "simd_bits": 512, "none": None}, "flags: -O3 -g; simd bits: 512"),
    ],
)
def test_a_fact_is_told_in_words(name: str, value: object, expected: str) -> None:
    assert fact(name, value).replace("\u00a0", " ") == expected
