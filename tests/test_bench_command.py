"""groundup bench: the files it leaves, the JSON it prints, and that an interrupt loses nothing."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from shared import benchmark, contract
from shared.commands import bench as command


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Invoke the command with sizes so small that a test can wait for them; results go to tmp_path."""
    ladder, steps = benchmark.ladder_rows, benchmark.step_rows
    monkeypatch.setattr(command.benchmark, "ladder_rows", lambda s, **_: ladder(s, sizes=[2, 4], repeats=1))
    monkeypatch.setattr(
        command.benchmark, "step_rows", lambda s, **_: steps(s, networks=[[5, 4, 3]], batch=2, repeats=1)
    )
    app = typer.Typer()
    app.command()(command.bench)
    return lambda *arguments: CliRunner().invoke(app, ["--out", str(tmp_path), *arguments])


def test_results_and_charts_are_written(run: Callable[..., Any], tmp_path: Path) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"results.json", "ladders.png", "ladders.svg", "ladder_sizes.png", "ladder_sizes.svg"}
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["complete"] is True
    assert {row["stage"] for row in document["ladders"]} == set(contract.available_stages())
    for stage in contract.available_stages():
        rungs = set(contract.load_stage(stage).matmul.LADDER)
        assert {row["name"] for row in document["ladders"] if row["stage"] == stage} == rungs
        assert next(row["name"] for row in document["steps"] if row["stage"] == stage) == "5-4-3, batch 2"


def test_the_table_shows_every_rung_and_the_reference(run: Callable[..., Any]) -> None:
    output = run("--stages", "2").stdout
    assert "NumPy's a @ b in the same dtype" in output
    for rung in contract.load_stage("2").matmul.LADDER:
        assert rung in output


def test_json_on_stdout_is_the_document_in_the_file(run: Callable[..., Any], tmp_path: Path) -> None:
    result = run("--json", "--stages", "2")
    assert json.loads(result.stdout) == json.loads((tmp_path / "results.json").read_text())


def test_stages_that_are_not_here_are_named(run: Callable[..., Any]) -> None:
    missing = [name for name in contract.STAGES if name not in contract.available_stages()]
    output = run().stdout
    for name in missing:
        assert f"not measured: {name} " in output


def test_an_interrupt_keeps_what_was_measured(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(stages: Any, **_: Any) -> Iterator[benchmark.BenchRow]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(command.benchmark, "step_rows", interrupted)
    result = run("--stages", "2")
    assert result.exit_code == 2
    assert "interrupted: the" in result.stderr
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["complete"] is False
    assert document["steps"] == []
    assert len(document["ladders"]) == 2 * 2 * len(contract.load_stage("2").matmul.LADDER)  # sizes, dtypes, rungs


def test_an_interrupt_before_the_first_row_still_leaves_a_readable_file(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(stages: Any, **_: Any) -> Iterator[benchmark.BenchRow]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(command.benchmark, "ladder_rows", interrupted)
    assert run().exit_code == 2
    assert json.loads((tmp_path / "results.json").read_text())["ladders"] == []


def test_a_skipped_rung_is_listed_with_its_reason(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    row = benchmark.BenchRow("ladder", "stage2_numpy", "slowest", "float64", (512,) * 3, 1, None, "r", None, "too slow")
    monkeypatch.setattr(command.benchmark, "ladder_rows", lambda stages, **_: iter([row]))
    assert "skipped: stage 2: NumPy, slowest, float64, size 512: too slow" in run("--stages", "2").stdout


@pytest.mark.parametrize(("upper", "warned"), [(1.2, False), (1.3, True)])
def test_times_that_spread_widely_come_with_a_warning(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, upper: float, warned: bool
) -> None:
    measurement = benchmark.Measurement(1.0, 1.0, upper, 1.0, 3, 1)
    row = benchmark.BenchRow("ladder", "stage2_numpy", "einsum", "float64", (4,) * 3, 128, measurement, "r", 1.0)
    monkeypatch.setattr(command.benchmark, "ladder_rows", lambda stages, **_: iter([row]))
    monkeypatch.setattr(command.benchmark, "step_rows", lambda stages, **_: iter([]))
    assert ("warning: 1 of 1 spread by more than 25%" in run("--stages", "2").stdout) is warned


@pytest.mark.parametrize(("load", "warned"), [(1.3, True), (0.1, False), (None, False)])
def test_a_busy_machine_is_told(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, load: float | None, warned: bool
) -> None:
    facts = command.environment() | {"load_average": load}
    monkeypatch.setattr(command, "environment", lambda: facts)
    assert ("warning: the machine was not idle before the start (load average 1.30)" in run().stdout) is warned


@pytest.mark.parametrize("choice", ["9", "2,nonsense"])
def test_an_unknown_stage_is_refused(run: Callable[..., Any], choice: str) -> None:
    result = run("--stages", choice)
    assert isinstance(result.exception, ValueError)
    assert "unknown stage" in str(result.exception)


def test_an_unwritable_folder_is_refused_before_anything_is_measured(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command.benchmark, "ladder_rows", lambda *_, **__: pytest.fail("measured first"))
    (tmp_path / "file").write_text("in the way")
    result = run("--out", str(tmp_path / "file"))
    assert isinstance(result.exception, OSError)
    assert "cannot write results into" in str(result.exception)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.0, "2 s"), (0.0345, "34.5 ms"), (6.78e-6, "6.78 µs"), (0.9999, "1,000 ms"), (1234.0, "1,230 s")],
)
def test_times_have_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert command._time(seconds) == text
