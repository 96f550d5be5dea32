"""groundup bench: the files it leaves, the JSON it prints, and that an interrupt loses nothing."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import USABLE_STAGES
from typer.testing import CliRunner

from shared import benchmark, contract
from shared.bench_products import Product
from shared.bench_steps import Case
from shared.bench_tables import time_text
from shared.commands import bench as command
from shared.environment import THREAD_VARIABLES, usable_cores

SMALL_STEPS = [Case((5, 4, 3), 2, "float64"), Case((5, 4, 3), 2, "float32")]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Invoke the command with sizes so small that a test can wait for them; results go to tmp_path.

    The threads are what the command would set, so that it need not start itself again; there is neither PyTorch nor
    a data set, whatever this machine has.
    """
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, str(usable_cores()))
    monkeypatch.setenv("GROUNDUP_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(command.bench_torch, "load_torch", lambda threads: (None, "PyTorch is not installed"))
    ladder, products, steps, peaks = (
        command.bench_ladders.ladder_rows,
        command.bench_products.product_rows,
        command.bench_steps.step_rows,
        command.bench_peak.peak_rows,
    )
    monkeypatch.setattr(
        command.bench_ladders, "ladder_rows", lambda s, **_: ladder(s, sizes=[2, 4], repeats=1, threads=1)
    )
    monkeypatch.setattr(
        command.bench_products,
        "product_rows",
        lambda s, **_: products(s, products=[Product("xW", "nn", 2, 3, 4)], repeats=1, threads=1),
    )
    monkeypatch.setattr(
        command.bench_steps, "step_rows", lambda s, **_: steps(s, cases=SMALL_STEPS, repeats=1, threads=1)
    )
    monkeypatch.setattr(command.bench_peak, "peak_rows", lambda s: peaks(s, repeats=1))
    app = typer.Typer()
    app.command()(command.bench)
    return lambda *arguments: CliRunner().invoke(app, ["--out", str(tmp_path), *arguments])


def test_results_and_charts_are_written(run: Callable[..., Any], tmp_path: Path) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    names = {path.name for path in tmp_path.iterdir()}
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["complete"] is True
    charts = {"ladders", "ladder_sizes", "products"}
    if "stage3_c" in USABLE_STAGES:
        charts |= {"stage3_ladder", "steps"}
    assert names == {"results.json"} | {f"{chart}.{suffix}" for chart in charts for suffix in ("png", "svg")}
    assert document["environment"]["threads"] == usable_cores()
    assert document["environment"]["pytorch"] is None
    measured = [name for name in USABLE_STAGES if not contract.is_emulated(name)]
    assert {row["stage"] for row in document["products"]} == {"numpy", *measured[1:]}
    assert document["epochs"] == []
    assert {row["stage"] for row in document["ladders"]} == set(measured)
    for stage in measured:
        rungs = set(contract.load_stage(stage).matmul.LADDER)
        assert {row["name"] for row in document["ladders"] if row["stage"] == stage} == rungs
        assert next(row["name"] for row in document["steps"] if row["stage"] == stage) == "5-4-3, batch 2"


def test_the_table_shows_every_rung_and_the_reference(run: Callable[..., Any]) -> None:
    output = run("--stages", "2").stdout
    assert "NumPy's a @ b in the same dtype" in output
    assert "xW 2x3x4" in output
    assert "Training step, 5-4-3, batch 2, float32" in output
    for rung in contract.load_stage("2").matmul.LADDER:
        assert rung in output


@pytest.mark.parametrize(
    ("only", "parts"),
    [("ladders", {"ladders"}), ("steps, products", {"products", "steps"}), ("products", {"products"})],
)
def test_only_some_parts(run: Callable[..., Any], tmp_path: Path, only: str, parts: set[str]) -> None:
    assert run("--stages", "2", "--only", only).exit_code == 0
    document = json.loads((tmp_path / "results.json").read_text())
    assert {name for name in ("ladders", "products", "steps", "epochs") if document[name]} == parts


@pytest.mark.parametrize("only", ["", "ladder", "steps,races"])
def test_an_unknown_part_is_refused(run: Callable[..., Any], only: str) -> None:
    result = run("--only", only)
    assert isinstance(result.exception, ValueError)
    assert f"only: expected some of ladders, products, steps, epochs with commas between, got {only!r}" in str(
        result.exception
    )


def test_sizes_that_were_asked_for_are_the_ladders_sizes(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    patched = command.bench_ladders.ladder_rows

    def rows(stages: Any, **options: Any) -> Iterator[Any]:
        asked.append(options)
        return patched(stages)

    monkeypatch.setattr(command.bench_ladders, "ladder_rows", rows)
    assert run("--only", "ladders", "--sizes", "8, 4,8").exit_code == 0
    assert asked[0]["sizes"] == [4, 8]
    assert asked[0]["call_limit"] == command.ASKED_FOR


def test_an_emulated_stage_is_only_measured_when_it_is_asked_for(run: Callable[..., Any]) -> None:
    emulated = [name for name in USABLE_STAGES if contract.load_stage(name) and contract.is_emulated(name)]
    if not emulated:
        pytest.skip("no stage is emulated here")
    output = run("--only", "steps").stdout
    assert "not measured: stage4_numba_cuda: its CUDA kernels are emulated here" in output


@pytest.mark.parametrize("sizes", ["", "0", "-4", "8,", "many", "1e3", "100000"])
def test_sizes_that_are_none_are_refused(run: Callable[..., Any], sizes: str) -> None:
    result = run("--sizes", sizes)
    assert isinstance(result.exception, ValueError)
    expected = f"sizes: expected whole numbers from 1 to 8192 with commas between, got {sizes!r}"
    assert str(result.exception) == expected


def test_epochs_without_data_are_named_unless_they_were_asked_for(run: Callable[..., Any]) -> None:
    assert "not measured: epochs (name MNIST's folder with --data-dir): mnist: missing" in run("--stages", "2").stdout
    for asked in (["--only", "epochs"], ["--data-dir", "nowhere"]):
        result = run("--stages", "2", *asked)
        assert isinstance(result.exception, ValueError)
        assert "mnist: missing" in str(result.exception)


def test_epochs_stand_in_the_table_with_their_accuracy(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measurement = benchmark.Measurement(1.5, 1.5, 1.5, 1.5, 1, 1)
    row = benchmark.BenchRow(
        "epoch", "stage2_numpy", "784-128-10, batch 64, mnist", "float32", (784, 128, 10), 1, measurement, "r", 1.0
    )
    monkeypatch.setattr(command, "load_dataset", lambda name, folder: name)
    monkeypatch.setattr(
        command.bench_epochs,
        "epoch_rows",
        lambda stages, data, **_: iter([dataclasses.replace(row, accuracy=0.93456)] if data == "mnist" else []),
    )
    output = run("--stages", "2", "--only", "epochs").stdout
    assert "One epoch, 784-128-10, batch 64, mnist, float32" in output
    assert "93.46%" in output
    assert json.loads((tmp_path / "results.json").read_text())["epochs"][0]["accuracy"] == 0.93456


def test_another_number_of_threads_starts_the_program_again(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(command.bench_threads, "run_again", lambda *given: asked.append(given) or 3)
    other = str(usable_cores() + 1)
    result = run("--threads", other, "--stages", "2", "--quick", "--only", "steps", "--json")
    assert result.exit_code == 3
    options = ["--stages", "2", "--only", "steps", "--out", str(tmp_path), "--threads", other]
    assert asked == [(["bench", *options, "--quick", "--json"], int(other))]
    assert not (tmp_path / "results.json").exists()


def test_json_on_stdout_is_the_document_in_the_file(run: Callable[..., Any], tmp_path: Path) -> None:
    result = run("--json", "--stages", "2")
    assert json.loads(result.stdout) == json.loads((tmp_path / "results.json").read_text())


def test_stages_that_are_not_here_are_named(run: Callable[..., Any]) -> None:
    missing = [name for name in contract.STAGES if name not in contract.available_stages()]
    output = run("--only", "steps").stdout
    for name in missing:
        assert f"not measured: {name} " in output


def test_an_interrupt_keeps_what_was_measured(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(stages: Any, **_: Any) -> Iterator[benchmark.BenchRow]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(command.bench_steps, "step_rows", interrupted)
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

    monkeypatch.setattr(command.bench_ladders, "ladder_rows", interrupted)
    assert run().exit_code == 2
    assert json.loads((tmp_path / "results.json").read_text())["ladders"] == []


def test_a_skipped_rung_is_listed_with_its_reason(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    row = benchmark.BenchRow("ladder", "stage2_numpy", "slowest", "float64", (512,) * 3, 1, None, "r", None, "too slow")
    monkeypatch.setattr(command.bench_ladders, "ladder_rows", lambda stages, **_: iter([row]))
    assert "skipped: stage 2, slowest, float64, size 512: too slow" in run("--stages", "2").stdout


@pytest.mark.parametrize(("upper", "warned"), [(1.2, False), (1.3, True)])
def test_times_that_spread_widely_come_with_a_warning(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, upper: float, warned: bool
) -> None:
    measurement = benchmark.Measurement(1.0, 1.0, upper, 1.0, 3, 1)
    row = benchmark.BenchRow("ladder", "stage2_numpy", "einsum", "float64", (4,) * 3, 128, measurement, "r", 1.0)
    monkeypatch.setattr(command.bench_ladders, "ladder_rows", lambda stages, **_: iter([row]))
    monkeypatch.setattr(command.bench_peak, "peak_rows", lambda stages: iter([]))
    output = run("--stages", "2", "--only", "ladders").stdout
    assert ("warning: 1 of 1 spread by more than 25%" in output) is warned


@pytest.mark.parametrize(("load", "warned"), [(1.3, True), (0.1, False), (None, False)])
def test_a_busy_machine_is_told(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, load: float | None, warned: bool
) -> None:
    facts = command.environment() | {"load_average": load}
    monkeypatch.setattr(command, "environment", lambda: facts)
    assert (
        "warning: the machine was not idle before the start (load average 1.30)"
        in run("--stages", "2", "--only", "steps").stdout
    ) is warned


@pytest.mark.parametrize("choice", ["9", "2,nonsense"])
def test_an_unknown_stage_is_refused(run: Callable[..., Any], choice: str) -> None:
    result = run("--stages", choice)
    assert isinstance(result.exception, ValueError)
    assert "unknown stage" in str(result.exception)


def test_an_unwritable_folder_is_refused_before_anything_is_measured(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command.bench_ladders, "ladder_rows", lambda *_, **__: pytest.fail("measured first"))
    (tmp_path / "file").write_text("in the way")
    result = run("--out", str(tmp_path / "file"))
    assert isinstance(result.exception, OSError)
    assert "cannot write results into" in str(result.exception)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.0, "2 s"), (0.0345, "34.5 ms"), (6.78e-6, "6.78 µs"), (0.9999, "1,000 ms"), (1234.0, "1,230 s")],
)
def test_times_have_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
