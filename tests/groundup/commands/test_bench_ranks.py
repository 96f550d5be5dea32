"""`groundup bench --ranks`: its tables, and what it refuses. tests/groundup/test_scaling.py has the measuring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from groundup import ranks, scaling
from groundup.commands.bench import app
from shared.machine.environment import environment
from tests.wide import wide


def _results(cores: int) -> dict[str, Any]:
    rates = {
        ("strong", 1): (256, 200.0),
        ("weak", 1): (64, 800.0),
        ("strong", 2): (256, 300.0),
        ("weak", 2): (128, 400),
    }
    rows = [
        {"network": "784-128-10", "scaling": kind, "ranks": count, "batch": batch, "steps_per_second": rate,
         "communication": 0.25}
        for (kind, count), (batch, rate) in rates.items() if count <= cores
    ]  # fmt: skip
    return {
        "environment": environment(),
        "mpi": "MPICH 5.0.2",
        "rows": rows,
        "machine": {"latency": 20e-6, "byte": 0.5e-9} if cores > 1 else None,
        "networks": [{"name": "784-128-10", "parameters": 101_770, "start": 1e-4, "row": 2e-5}],
    }


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "check_installed", lambda: "mpiexec")
    monkeypatch.setattr(scaling, "measured", lambda *_: _results(2))


@wide
@pytest.mark.usefixtures("measured")
def test_each_measured_row_says_which_scaling_it_is_and_how_well_it_went(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["--ranks", "--out", str(tmp_path)])
    assert said.exit_code == 0, said.output
    rows = [line.split() for line in said.output.splitlines() if line.strip().startswith("784-128-10")]
    assert rows[:4] == [
        ["784-128-10", "strong", "1", "256", "200", "-", "-"],
        ["784-128-10", "strong", "2", "256", "300", "75%", "25%"],
        ["784-128-10", "weak", "1", "64", "800", "-", "-"],
        ["784-128-10", "weak", "2", "128", "400", "50%", "25%"],
    ]
    assert "two ranks exchange n bytes by MPICH 5.0.2 in 20 µs + n · 0.50 ns" in said.output
    assert json.loads((tmp_path / "ranks.json").read_text(encoding="utf-8"))["mpi"] == "MPICH 5.0.2"
    assert (tmp_path / "ranks-efficiency.svg").is_file()


@pytest.mark.usefixtures("measured")
def test_one_core_has_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "measured", lambda *_: _results(1))
    said = CliRunner().invoke(app, ["--ranks", "--out", str(tmp_path)])
    assert said.exit_code == 0, said.output
    assert "one core: nothing is sent that could be measured, so there is no model" in said.output
    assert "PNG" not in said.output


@pytest.mark.usefixtures("measured")
def test_options_that_would_be_ignored_are_refused(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["--ranks", "--model", "lenet5", "--passes", "3", "--out", str(tmp_path)])
    assert said.exit_code != 0
    assert "bench --ranks takes --quick, --out and --json alone; leave out --model, --passes" in str(said.exception)
