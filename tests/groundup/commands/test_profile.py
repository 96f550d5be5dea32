"""`groundup profile`: what it measures on which stage, what it writes and prints, and what it says about mistakes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from typer.testing import CliRunner, Result

from groundup import profiling
from groundup.commands.profile import profile
from groundup.profiling import Settings, choices
from shared.contract import load_stage
from shared.machine.hardware import usable_cores
from shared.profile import worker
from shared.profile.document import schema
from shared.profile.roofs import Roofs
from tests.stages import USABLE_STAGES

app = typer.Typer()
app.command()(profile)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure in this process, without roofs: what the processes do has tests of its own."""

    def messages(order: dict[str, Any], threads: int) -> Iterator[dict[str, Any]]:
        said: list[dict[str, Any]] = []
        if order["what"] == "roofs":
            said += [{"environment": {**FACTS, "threads": threads}}, {"roofs": Roofs().as_dict()}]
        else:
            worker._carry_out(order, lambda **message: said.append(message))
        yield from json.loads(json.dumps(said))

    from shared.machine.environment import environment

    FACTS.update(environment())
    monkeypatch.setattr(profiling.worker, "messages", messages)


FACTS: dict[str, Any] = {}


@pytest.mark.usefixtures("in_this_process")
def test_it_writes_the_results_the_trace_and_a_chart_and_prints_a_table(tmp_path: Path) -> None:
    result = run("2", "--hidden", "8", "--batch", "2", "--repeat", "2", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    charts = ["profile-stage2_numpy.png", "profile-stage2_numpy.svg"]
    assert sorted(os.listdir(tmp_path)) == sorted(["profile.json", "trace.json", *charts])
    document = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema()).validate(document)
    (found,) = document["profiles"]
    assert (found["network"], found["batch"], found["dtype"], found["step"]["samples"]) == ("784-8-10", 2, "float32", 2)
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 1 + len(found["operations"])
    for words in ("stage 2: NumPy. A training step of 784-8-10, batch 2", "dense: dW, db", "The operations add up to"):
        assert words in result.output


@pytest.mark.usefixtures("in_this_process")
def test_json_prints_the_document_and_nothing_else(tmp_path: Path) -> None:
    result = run("2", "--hidden", "none", "--batch", "1", "--repeat", "1", "--json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["profiles"][0]["network"] == "784-10"


def test_a_process_of_its_own_measures_with_as_many_threads_as_asked(tmp_path: Path) -> None:
    order = worker.order_of_profile(
        "stage2_numpy", Settings(hidden="4", batch=2).case(load_stage("2")), 1, Roofs(), ONCE
    )
    messages = list(worker.messages(order, 1))
    environment = next(each["environment"] for each in messages if "environment" in each)
    assert environment["thread_variables"]["OPENBLAS_NUM_THREADS"] == "1"
    assert messages[-1]["profile"]["stage"] == "stage2_numpy"


def test_an_interruption_is_quiet_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(order: dict[str, Any], threads: int) -> Iterator[dict[str, Any]]:
        raise KeyboardInterrupt
        yield {}

    monkeypatch.setattr(profiling.worker, "messages", interrupted)
    result = run("2", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "interrupted: nothing was written" in result.stderr
    assert os.listdir(tmp_path / "out") == []


ONCE = profiling.Effort(1, 1.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "alexnet"), "unknown architecture 'alexnet'; choose one of lenet5, fashion_cnn, residual_cnn"),
        (("--dtype", "half"), "dtype: expected float32 or float64, got 'half'"),
        (("--threads", str(usable_cores() + 1)), f"threads: {usable_cores()} cores can be used here, got"),
        (("",), "stages: expected names or numbers with commas between"),
    ],
)
def test_a_mistake_is_a_sentence(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    result = run(*arguments, "--out", tmp_path / "out")
    assert isinstance(result.exception, ValueError)  # cli.main makes it a line on stderr and exit code 2
    assert said in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_the_first_floor_takes_part_where_a_step_is_short_or_it_is_named() -> None:
    taken = {stage.number: case for stage, case in choices(None, Settings(model="lenet5"))[0]}
    assert taken[1].batch == 1
    assert (taken[2].batch, taken[1].dtype, taken[2].dtype) == (64, "float64", "float32")
    chosen, left_out = choices(None, Settings(model="residual_cnn", batch=64))
    assert 1 not in [stage.number for stage, _ in chosen]
    assert "would take about" in left_out["stage1_pure_python"]
    assert "`groundup profile 1` profiles it anyway" in left_out["stage1_pure_python"]
    ((stage, case),), _ = choices("1", Settings(model="residual_cnn", batch=64))
    assert (stage.number, case.batch) == (1, 64)


@pytest.mark.skipif("stage4_numba_cuda" not in USABLE_STAGES, reason="stage 4 cannot be used here")
def test_an_emulated_stage_takes_part_only_where_it_is_named() -> None:
    chosen, left_out = choices(None, Settings())
    names = [stage.name for stage, _ in chosen]
    assert ("stage4_numba_cuda" in names) != ("stage4_numba_cuda" in left_out)
