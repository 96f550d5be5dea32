"""The rows of the integer ladder: which there are, beside what, and that a wrong rung is not timed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from shared.bench.kinds.integers import PRODUCTS, integer_rows
from shared.bench.kinds.products import Product
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.measuring.rows import BenchRow
from shared.bench.records.tables import tables
from shared.contract import load_part, load_stage
from tests.fake_stages import fake_stage
from tests.stages import REASONS, USABLE_STAGES

needs_c = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")
TINY = Product("tiny", "nn", 9, 5, 3)
ONCE = Effort(repeats=1, group_limit=1.0, minimum_sample=0.0001, threads=1)


def _split(rows: Iterable[BenchRow]) -> tuple[list[BenchRow], list[BenchRow]]:
    """Those in float32 and those in int8."""
    listed = list(rows)
    return [row for row in listed if row.dtype == "float32"], [row for row in listed if row.dtype == "int8"]


@needs_c
def test_every_rung_is_timed_beside_the_float_product_on_as_many_threads() -> None:
    floats, rows = _split(integer_rows([load_stage("3")], products=[TINY], effort=ONCE))
    assert [(row.variant, row.dtype, row.ratio, row.peak) for row in floats] == [
        ("float32 packed", "float32", None, None), ("float32 threads", "float32", None, None)
    ]  # fmt: skip
    assert [row.variant for row in rows] == list(load_part("stage3_c", "eight_bits").LADDER)
    assert {(row.kind, row.name, row.dtype, row.shape, row.flops, row.bytes) for row in rows} == {
        ("integer", "tiny 9x5x3", "int8", (9, 5, 3), 2 * 9 * 5 * 3, 9 * 5 + 5 * 3 + 4 * 9 * 3)
    }
    assert [row.reference for row in rows] == ["stage 3 float32 packed"] * 5 + ["stage 3 float32 threads"]
    assert all(row.measurement and row.ratio and row.share_of_peak for row in rows)
    ((title, table),) = tables([*floats, *rows])
    assert title == "Whole numbers of eight bits: how many times as fast as stage 3's float32 product"
    assert table.row_count == 2 + len(rows)


@needs_c
def test_a_rung_that_is_wrong_is_not_timed_and_one_that_takes_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_off(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.matmul(left, right, out=out, dtype=np.int32)
        out[-1, -1] += 1
        return out

    ladder = load_part("stage3_c", "eight_bits").LADDER
    monkeypatch.setitem(ladder, "pairs", one_off)
    rows = _split(integer_rows([load_stage("3")], products=[TINY, PRODUCTS[0]], effort=ONCE, call_limit=1e-9))[1]
    told = [row.skipped or "" for row in rows]
    assert told[list(ladder).index("pairs")] == "pairs: its sums are not exact; not timed"
    assert [text.startswith("one call would take about") for text in told] == [False] * 6 + [True] * 3 + [False] + [
        True
    ] * 2


def test_there_are_no_rows_without_stage_3() -> None:
    assert list(integer_rows([fake_stage({}, "stage2_numpy")], products=[TINY], effort=ONCE)) == []
