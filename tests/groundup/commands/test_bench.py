"""groundup bench: the files it leaves, the JSON it prints, what it refuses, and the guessing game."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from groundup.commands import bench as command
from shared import contract
from shared.bench.measuring.gpu import on_gpu
from shared.bench.records.document import load
from shared.bench.running import session, worker
from shared.bench.running.plan import PARTS, PASSES, QUICK_PASSES_ON_GPU, Plan, jobs
from shared.charts import book
from shared.charts.figures.inference import inference
from shared.charts.report import page
from shared.machine.environment import environment
from tests.shared.bench.bench_results import full_results
from tests.stages import USABLE_STAGES
from tests.wide import WIDE, widely

PART_OF = {"ladder": "ladders", "product": "products", "op": "operations", "step": "steps", "part": "steps"}
PART_OF |= {"inference": "inference", "epoch": "training", "target": "training", "memory": "memory", "phase": "phases"}
PART_OF |= {"convolution": "convolutions", "peak": "machine", "bandwidth": "machine"}


def made_up(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A pass that finds the made-up rows of the plan's parts and stages, all in the first job of their part."""
    yield {"environment": environment() | {"pytorch": None, "load_average": 0.1}}
    results, told = full_results(), set()
    for i in numbers:
        part = jobs(plan)[i].part
        for row in results.rows if part not in told else ():
            if PART_OF[row.kind] == part and (row.stage in plan.stages or row.stage in ("numpy", "pytorch")):
                yield {"row": row.as_dict()}
        if part == "training" and part not in told:
            yield from ({"curve": curve.as_dict()} for curve in results.curves)
        told.add(part)
        yield {"done": i}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Invoke the command; results go to tmp_path. What is measured is made up, and there is no data set. The charts,
    which take a second each, are drawn where `draws` asks for them."""
    monkeypatch.setattr(book, "draw", lambda *_, **__: [])
    monkeypatch.setattr(page, "write", lambda results, charts, path, **_: path)
    return _invoking(monkeypatch, tmp_path)


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """The same, with the report and a chart, and all of them in the wide tests."""
    if not WIDE:
        monkeypatch.setattr(book, "FIGURES", (inference,))
    return _invoking(monkeypatch, tmp_path)


def _invoking(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.setenv("GROUNDUP_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(session, "start_process", made_up)
    app = typer.Typer()
    app.add_typer(command.app, name="bench")
    return lambda *arguments, **more: CliRunner().invoke(app, ["bench", "--out", str(tmp_path), *arguments], **more)


@pytest.mark.parametrize("parts", widely([["inference"], [*PARTS]]), ids=len)
def test_results_charts_and_a_report_are_written(
    draws: Callable[..., Any], tmp_path: Path, parts: Sequence[str]
) -> None:
    result = draws("--quick", "--only", ",".join(parts))
    assert result.exit_code == 0, result.output
    results = load(tmp_path / "results.json")
    assert (results.complete, results.quick) == (True, True)
    assert results.passes == (
        QUICK_PASSES_ON_GPU if any(map(on_gpu, map(contract.load_stage, USABLE_STAGES))) else PASSES
    )
    expected = {*parts, *(["machine"] if "ladders" in parts else [])} - {"integers"}  # of which no row is made up
    assert {PART_OF[row.kind] for row in results.rows} == expected
    names = {path.name for path in tmp_path.iterdir()}
    assert {"results.json", "report.html", "inference.png", "inference.svg", "inference-dark.png"} <= names
    assert "<svg" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--only", "ladder", f"only: expected some of {', '.join(PARTS)} with commas between, got 'ladder'"),
        ("--sizes", "100000", "sizes: expected whole numbers from 1 to 8192 with commas between, got '100000'"),
        ("--passes", "0", "passes: expected at least 1, got 0"),
        ("--stages", "2,nonsense", "unknown stage 'nonsense'"),
    ],
)
def test_a_mistake_is_refused_with_a_sentence(run: Callable[..., Any], option: str, value: str, said: str) -> None:
    result = run(option, value)
    assert isinstance(result.exception, ValueError)
    assert said in str(result.exception)


def test_what_was_asked_for_is_in_the_plan(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    plans = []

    def start(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        plans.append(plan)
        return made_up(plan, number, numbers)

    monkeypatch.setattr(session, "start_process", start)
    run("--stages", "2", "--only", "ladders", "--sizes", "8, 4,8", "--threads", "1", "--passes", "2")
    expected = Plan(("stage2_numpy",), ("ladders",), threads=1, passes=2, sizes=(4, 8), emulated=True)
    assert plans == [expected, expected]


def test_an_emulated_stage_is_only_measured_throughout_when_it_is_asked_for(run: Callable[..., Any]) -> None:
    emulated = [name for name in USABLE_STAGES if contract.load_stage(name) and contract.is_emulated(name)]
    if not emulated:
        pytest.skip("no stage is emulated here")
    output = run("--only", "steps").stdout
    assert "not measured: stage4_numba_cuda: its CUDA kernels are emulated here" in output


def test_mnist_that_is_not_here_is_named_unless_its_folder_was_given(run: Callable[..., Any]) -> None:
    output = run("--only", "training").stdout
    assert "not measured: training on MNIST (name its folder with --data-dir): mnist: missing" in output
    result = run("--data-dir", "nowhere")
    assert isinstance(result.exception, ValueError)
    assert "mnist: missing" in str(result.exception)


def test_json_on_stdout_is_the_document_in_the_file(run: Callable[..., Any], tmp_path: Path) -> None:
    result = run("--json", "--stages", "2", "--only", "products")
    assert json.loads(result.stdout) == json.loads((tmp_path / "results.json").read_text())


def test_an_interrupt_leaves_charts_of_what_was_measured(
    draws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        for message in made_up(plan, number, numbers):
            if "done" in message:
                raise KeyboardInterrupt
            yield message

    monkeypatch.setattr(session, "start_process", interrupted)
    result = draws("--stages", "2,3", "--only", "inference")
    assert result.exit_code == 2
    assert "rows that were measured so far are kept" in result.stderr
    results = load(tmp_path / "results.json")
    assert (results.complete, {row.kind for row in results.rows}) == (False, {"inference"})
    assert (tmp_path / "inference.png").is_file()


def test_the_guess_stands_beside_the_result(draws: Callable[..., Any], tmp_path: Path) -> None:
    result = draws("--predict", "--stages", "1,2,3", "--only", "inference", input="many\n20\n")
    assert result.exit_code == 0, result.output
    assert "expected a factor like 20 or 1.5, got 'many'" in result.stderr
    assert "you said 20" in result.stderr
    (prediction,) = load(tmp_path / "results.json").predictions
    assert prediction["guess"] == 20.0
    assert prediction["measured"] > 1
    assert prediction["question"] in (tmp_path / "report.html").read_text()


def test_without_anyone_to_guess_the_results_are_shown_all_the_same(run: Callable[..., Any], tmp_path: Path) -> None:
    result = run("--predict", "--stages", "2", "--only", "inference", input="")
    assert result.exit_code == 0, result.output
    assert "no more guesses: the input has ended" in result.stderr
    assert load(tmp_path / "results.json").predictions[0]["guess"] is None


def test_a_skipped_row_is_listed_with_its_reason(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def start(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        for message in made_up(plan, number, numbers):
            if "row" in message:
                message["row"] |= {"measurement": None, "ratio": None, "skipped": "too slow"}
            yield message

    monkeypatch.setattr(session, "start_process", start)
    output = run("--stages", "2", "--only", "ladders").stdout
    assert "skipped: stage 2, einsum, float64, size 512: too slow" in output


def test_ratios_that_are_not_known_well_come_with_a_warning(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(plan: Plan, number: int, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        for message in made_up(plan, number, numbers):
            if "row" in message and message["row"]["ratio"]:
                message["row"]["ratio"] *= 1 + 0.5 * (number % 2)
            yield message

    monkeypatch.setattr(session, "start_process", start)
    output = run("--stages", "2", "--only", "ladders").stdout
    assert "are not known to better than 25%" in output


def test_a_busy_machine_is_told(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    facts = environment()
    for load_average in (1.3, None):
        monkeypatch.setattr(session, "environment", lambda: facts | {"load_average": load_average})  # noqa: B023
        output = run("--stages", "2", "--only", "products").stdout
        told = "warning: the machine was not idle before the start (load average 1.30)" in output
        assert told is (load_average is not None)


def test_an_unwritable_folder_is_refused_before_anything_is_measured(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "start_process", lambda *_: pytest.fail("measured first"))
    (tmp_path / "file").write_text("in the way")
    result = run("--out", str(tmp_path / "file"))
    assert isinstance(result.exception, OSError)
    assert "cannot write results into" in str(result.exception)


def test_what_is_really_measured_ends_up_in_the_file(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "start_process", worker.messages)
    assert run("--stages", "2", "--only", "ladders", "--sizes", "4", "--passes", "2", "--quick").exit_code == 0
    results = load(tmp_path / "results.json")
    rungs = [(row.name, row.dtype) for row in results.rows if row.kind == "ladder" and row.stage == "stage2_numpy"]
    assert rungs == [
        (rung, dtype) for dtype in ("float64", "float32") for rung in contract.load_stage("2").matmul.LADDER
    ]
    assert all(row.passes == 2 and row.ratio_noise is not None for row in results.rows if row.ratio)
