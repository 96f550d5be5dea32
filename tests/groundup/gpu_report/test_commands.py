"""The part of the GPU report about commands: their time, and what becomes of one that fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from groundup.gpu_report import commands
from shared.bench.on_gpu import first_step
from shared.bench.on_gpu.gpu_plan import Found, GpuPlan, LeftOut
from shared.machine.processes import Finished
from tests.wide import wide

TIMES = {"import": 2.0, "first": 0.5, "second": 1e-4}


def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *answers: Finished, seconds: float = 60.0) -> list[Any]:
    """What the part finds where its commands answer this, one after the other."""
    waiting = iter(answers)
    monkeypatch.setattr(commands.processes, "run", lambda command, limit, **more: next(waiting))
    monkeypatch.setattr(commands, "stage_facts", lambda name: {"backend": "gpu"})
    return list(commands.commands(GpuPlan(seconds), tmp_path))


def test_every_command_has_its_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps = [Finished(0, f"a warning\n{json.dumps(TIMES | {'first': first})}\n") for first in (9.0, 0.5)]
    told = "60 kernels compiled or found on disk beforehand, in 2 s\n"
    first, check, bench = found(monkeypatch, tmp_path, *steps, Finished(0, "", told), Finished(0))
    assert [each.row["what"] for each in (first, check, bench)] == [
        *("first step", "groundup check 4", "groundup bench --quick"),
    ]
    assert (first.row["seconds"], first.row["of_the_first_process"]) == (0.5, 9.0)
    assert first.line == "first step of a second process: 500 ms after imports of 2 s; the next 100 µs"
    assert (check.row["ok"], check.row["compiled"]) == (True, told.strip())
    assert 0 <= check.row["seconds"] < 60


def test_a_command_that_fails_is_wrong_and_the_next_one_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = Finished(1, "", "Traceback\nRuntimeError: no GPU")
    disagree, ended = Finished(1, "stage 4 disagrees\n"), Finished(None, failure="no answer within 30 seconds")
    first, check, bench = found(monkeypatch, tmp_path, broken, Finished(0, json.dumps(TIMES)), disagree, ended)
    assert [each.wrong for each in (first, check, bench)] == [
        "first step: RuntimeError: no GPU",
        "groundup check 4: exit code 1",
        "groundup bench --quick: no answer within 30 seconds",
    ]
    assert check.row["output"] == ["stage 4 disagrees"]
    assert not any(each.row["ok"] for each in (first, check, bench))


def test_without_time_the_commands_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nothing = [Finished(None, failure="no answer within 1 seconds")] * 2
    first, *others = found(monkeypatch, tmp_path, *nothing, seconds=0.0)
    assert isinstance(first, Found)
    assert others == [LeftOut(name, "there is no time left") for name in ("groundup check 4", "groundup bench --quick")]


@wide
def test_the_first_step_of_a_process_is_timed_after_its_imports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["first_step", "12-8-4", "8"])
    first_step.main()
    times = json.loads(capsys.readouterr().out)
    assert set(times) == set(TIMES)
    assert all(seconds > 0 for seconds in times.values())
