"""What speed.py says about its measurements: labels, structure, and that wrong results are refused. No times."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuda_emulator import cuda
from shared.bench.emulator import emulator_speed
from shared.bench.emulator.emulator_speed_tables import LABEL, Row, Sizes, rate_text, tables
from shared.bench.measuring.timing import Measurement
from tests.wide import wide

TINY = Sizes(simulated=4, product=20, tile=4, repeats=1, processes=1)
KINDS = ["simulator", "product", "launch", "ready"]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return emulator_speed.measure_all(TINY)


@wide
def test_everything_is_measured_and_in_order(rows: list[Row]) -> None:
    assert list(dict.fromkeys(row.kind for row in rows)) == KINDS
    assert [row.name for row in rows if row.kind == "product"] == [
        "unchecked, 1 thread",
        "unchecked, 2 threads",
        "checked, 1 thread",
        "checked, 2 threads",
    ]
    for row in rows:
        assert (row.measurement is None) == bool(row.skipped), row.name
        if row.measurement is not None:
            assert row.measurement.median > 0, row.name


def timed(seconds: float) -> Measurement:
    return Measurement(seconds, seconds, seconds, seconds, samples=1, calls=1)


def test_every_kind_of_row_has_a_table() -> None:
    rows = [
        Row("simulator", "Numba's simulator", timed(2.0), multiply_adds=4**3),
        Row("product", "unchecked, 2 threads", timed(0.001), 20**3, 2, False, "1 thread", 1.98),
        Row("launch", "checked", timed(1e-5)),
        Row("ready", "compiled", None, skipped="no disk"),
    ]
    shown = dict(tables(rows, TINY))
    assert len(shown) == len(KINDS)
    assert all(table.row_count == 1 for table in shown.values())
    assert any("20³" in title and "4 x 4" in title for title in shown)


def test_multiply_adds_per_second_are_those_of_the_median() -> None:
    row = Row("product", "checked, 1 thread", timed(0.5), multiply_adds=8_000_000_000)
    assert row.rate == 16e9
    assert rate_text(row.rate) == "16 G"
    assert replace(row, measurement=None).rate is None
    assert rate_text(None) == ""
    assert rate_text(25_432) == "25,400"
    assert rate_text(1_234_000) == "1.23 M"


def test_a_product_that_is_wrong_is_refused() -> None:
    class Lazy:
        def __getitem__(self, configuration: Any) -> Any:
            return lambda a, b, c: None

    product = emulator_speed.Product(cuda, Lazy(), size=4, tile=4)
    product()
    with pytest.raises(RuntimeError, match="did not compute a @ b"):
        product.check()


def test_a_process_that_fails_is_told_with_its_last_line() -> None:
    with pytest.raises(RuntimeError, match=r"'nothing' failed: .*invalid choice: 'nothing'"):
        emulator_speed.child("nothing", 4)


@wide
def test_the_command_prints_tables_and_writes_json(
    rows: list[Row], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(emulator_speed, "measure_all", lambda sizes: rows)
    emulator_speed.main(["--quick", "--json", str(tmp_path / "speed.json")])
    printed = capsys.readouterr().out
    assert LABEL in printed
    assert "Tiled product" in printed
    assert json.loads((tmp_path / "speed.json").read_text())["kind"] == "groundup emulator speed"
