"""The model of scaling over ranks, its charts, and that the measuring works."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from groundup import scaling
from groundup.scaling import DENSE, Machine, Network
from shared.charts import book
from shared.charts.figures import ranks as figures
from tests.mpi import needs_mpi

MACHINE = Machine(latency=10e-6, byte=1e-9)
SMALL = Network("small", 100_000, 20e-6, 3e-6)
LARGE = Network("large", 60_000, 50e-6, 400e-6)
RESULTS = {
    "machine": {"latency": 10e-6, "byte": 1e-9},
    "networks": [
        {"name": each.name, "parameters": each.parameters, "start": each.start, "row": each.row}
        for each in (SMALL, LARGE)
    ],
}


def test_pairs_are_faster_for_few_bytes_and_a_ring_for_many() -> None:
    assert MACHINE.tree(8, 1000) == pytest.approx(3 * (10e-6 + 1e-6))
    assert MACHINE.ring(8, 8000) == pytest.approx(14 * (10e-6 + 1e-6))
    assert MACHINE.all_reduce(8, 100) == MACHINE.tree(8, 100) < MACHINE.ring(8, 100)
    assert MACHINE.all_reduce(8, 1e8) == MACHINE.ring(8, 1e8) < MACHINE.tree(8, 1e8)
    assert MACHINE.all_reduce(1, 1e8) == 0


def test_a_small_batch_of_a_dense_network_stops_gaining_first() -> None:
    alone = scaling.step(MACHINE, SMALL, 64, 1)
    assert alone == pytest.approx(20e-6 + 64 * 3e-6)
    assert scaling.step(MACHINE, SMALL, 64, 2) == pytest.approx(20e-6 + 32 * 3e-6 + 10e-6 + 0.4e-3)
    assert scaling.best_ranks(MACHINE, SMALL, 64) == 1
    assert scaling.best_ranks(MACHINE, SMALL, 8192) > 8
    assert scaling.best_ranks(MACHINE, LARGE, 64) == 32
    assert scaling.efficiency(MACHINE, LARGE, 1024, 8) > 0.95
    assert scaling.efficiency(MACHINE, SMALL, 64, 1) == 1.0


def test_a_line_is_found_again_and_never_has_negative_times() -> None:
    start, slope = scaling.line_through([(x, 2e-5 + 3e-6 * x) for x in (4, 64, 256)])
    assert (start, slope) == (pytest.approx(2e-5), pytest.approx(3e-6))
    assert scaling.line_through([(1, 1.0), (2, 3.0)])[0] == 0.0
    assert scaling.line_through([(1, 2.0), (2, 1.0)]) == (1.5, 0.0)


def test_the_charts_say_what_was_found(tmp_path: Path) -> None:
    curves = scaling.curves(RESULTS)
    assert [(each.network, each.batch) for each in curves[:4]] == [("small", b) for b in scaling.MODEL_BATCHES]
    assert [ranks for ranks, _ in curves[0].points] == [1, 2, 4, 8, 16, 32, 64]
    assert curves[0].gain == 1.0
    charts = book.save_all(figures.draw(RESULTS, curves, "made up"), tmp_path)
    assert {chart.name for chart in charts} == {"ranks-efficiency", "ranks-all-reduce"}
    assert charts[0].title.startswith("At batch 64, small gains nothing by ranks; at 8,192, it is fastest on ")
    assert charts[1].title == f"An all-reduce of small takes as long as {(10e-6 + 4e-4) / 3e-6:.0f} of its rows"
    assert (tmp_path / "ranks-efficiency.svg").is_file()
    assert scaling.curves({"machine": None, "networks": []}) == []


def test_the_efficiency_of_weak_scaling_is_that_of_one_ranks_share() -> None:
    def row(scaling: str, ranks: int, batch: int, rate: float) -> dict[str, object]:
        return {"network": "n", "scaling": scaling, "ranks": ranks, "batch": batch, "steps_per_second": rate}

    rows = [
        *(row("strong", 1, 256, 100.0), row("weak", 1, 64, 300.0)),
        *(row("strong", 4, 256, 200.0), row("weak", 4, 256, 240.0)),
    ]
    assert [scaling.measured_efficiency(rows, each) for each in rows] == pytest.approx([1, 1, 0.5, 0.8])


@needs_mpi
def test_ranks_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "usable_cores", lambda: 2)
    told: list[str] = []
    results = scaling.measured(0.05, told.append, [DENSE])
    assert told == ["1 of 2 ranks", "2 of 2 ranks"]
    assert [(row["ranks"], row["scaling"], row["batch"]) for row in results["rows"]] == [
        (1, "strong", 256),
        (1, "weak", 64),
        (2, "strong", 256),
        (2, "weak", 128),
    ]
    assert results["mpi"].split()[0] in ("MPICH", "Intel", "Open")
    assert results["environment"]["stage3_c"]["compiler"]
    assert all(row["steps_per_second"] > 0 for row in results["rows"])
    assert all(0 < row["communication"] < 1 for row in results["rows"] if row["ranks"] > 1)
    assert [words for words, _ in results["all_reduces"][2]] == list(scaling.WORDS)
    (network,) = results["networks"]
    assert (network["name"], network["parameters"]) == (DENSE, 101_770)
    assert math.isfinite(scaling.curves(results)[0].gain)


@needs_mpi
def test_a_rank_that_fails_ends_the_measuring_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "usable_cores", lambda: 1)
    with pytest.raises(ValueError, match=r"^bench --ranks: 1 ranks failed: ValueError: .*unknown.*'nosuch'"):
        scaling.measured(0.05, lambda text: None, ["nosuch"])
