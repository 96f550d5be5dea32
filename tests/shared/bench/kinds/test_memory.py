"""shared.bench.kinds.memory: what is counted, what is not, and what is said where nothing can be known."""

import json
import mmap
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds import memory
from shared.bench.kinds.steps import Case, model_cases
from shared.bench.measuring import children
from tests.fake_stages import fake_stage, say_of_stage_4
from tests.stages import USABLE_STAGES

SMALL = Case((5, 4, 3), 2, "float32")
linux = pytest.mark.skipif(not (memory.PROCESS / "status").is_file(), reason="only Linux tells what a process holds")


def answers(monkeypatch: pytest.MonkeyPatch, held: dict[str, Any]) -> list[dict[str, Any]]:
    """Let every process answer what stands there under who it is, or fail with it; returns what they were asked."""
    asked = []

    def ask(code: str, request: Any, *, threads: int) -> Any:
        asked.append(request)
        answer = held[request["who"] + (" on device" if request["on_device"] else "")]
        if isinstance(answer, Exception):
            raise answer
        return {"held": None, "reason": None, "device": None} | answer

    monkeypatch.setattr(children, "ask", ask)
    return asked


def test_everyone_is_compared_with_stage_2(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {"stage1_pure_python": {"held": 300}, "stage2_numpy": {"held": 100}, "pytorch": {"held": 250}}
    asked = answers(monkeypatch, held)
    stages = [fake_stage({}, "stage1_pure_python"), fake_stage({})]
    rows = list(memory.memory_rows(stages, cases=[SMALL], threads=2, torch=object()))
    assert [(row.kind, row.stage, row.memory, row.ratio) for row in rows] == [
        ("memory", "stage2_numpy", 100, None),
        ("memory", "stage1_pure_python", 300, 3.0),
        ("memory", "pytorch", 250, 2.5),
    ]
    assert [(row.dtype, row.threads) for row in rows] == [("float32", 2), ("float64", 1), ("float32", 2)]
    assert {(row.name, row.shape, row.samples, row.measurement) for row in rows} == {
        ("5-4-3, batch 2", (5, 4, 3), 2, None)
    }
    assert [request["steps"] for request in asked] == [3, 2, 3]


def test_a_process_that_fails_and_a_system_that_does_not_tell_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "its process ended with exit code 1: MemoryError"
    held = {"stage2_numpy": {"reason": memory.NO_READING}, "pytorch": ChildProcessError(said)}
    answers(monkeypatch, held)
    rows = list(memory.memory_rows([fake_stage({})], cases=[SMALL], threads=1, torch=object()))
    assert [(row.memory, row.skipped) for row in rows] == [(None, memory.NO_READING), (None, said)]


def test_a_gpu_has_a_row_of_its_own_and_so_has_pytorch_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    say_of_stage_4(monkeypatch, "gpu")
    monkeypatch.setattr(memory.gpu, "cuda_torch", object)
    held = {
        "stage4_numba_cuda": {"held": 7, "device": 900},
        "pytorch": {"held": 8},
        "pytorch on device": {"held": 9, "device": 800},
    }
    answers(monkeypatch, held)
    stages = [fake_stage({}, "stage4_numba_cuda")]
    rows = list(memory.memory_rows(stages, cases=[SMALL], threads=1, torch=object()))
    assert [(row.stage, row.variant, row.memory, row.emulated) for row in rows] == [
        ("stage4_numba_cuda", "", 7, False),
        ("stage4_numba_cuda", "on the GPU", 900, False),
        ("pytorch", "", 8, False),
        ("pytorch", "on the GPU", 800, False),
    ]


@linux
@pytest.mark.parametrize("name", [name for name in USABLE_STAGES if name in ("stage1_pure_python", "stage2_numpy")])
def test_a_real_process_answers(name: str) -> None:
    (row,) = memory.memory_rows([contract.load_stage(name)], cases=[Case((400, 300, 10), 4, "float32")], threads=1)
    assert row.skipped is None
    assert row.memory is not None
    weights = 400 * 300 * np.dtype(row.dtype).itemsize
    assert weights < row.memory < 100 * weights


@linux
def test_what_was_held_and_freed_in_between_counts() -> None:
    held = memory.Held()
    size = 64 << 20
    fresh = mmap.mmap(-1, size)  # not an array: it may lie in memory that an earlier test has left to the process
    np.frombuffer(fresh, np.uint8).fill(1)
    fresh.close()
    more, reason = held.more_by_now()
    assert reason is None
    assert more is not None
    assert 0.9 * size < more < 2 * size


def fake_process(folder: Path, held: int, mark: int) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "status").write_text(f"Name:\tpython\nVmHWM:\t{mark << 10} kB\nVmRSS:\t{held << 10} kB\n")
    return folder


def test_the_mark_is_set_back_before_it_is_read(tmp_path: Path) -> None:
    held = memory.Held(fake_process(tmp_path, 70, 70))
    assert (tmp_path / "clear_refs").read_text() == "5"
    fake_process(tmp_path, 80, 95)
    assert held.more_by_now() == (25 << 20, None)


def test_a_system_that_tells_nothing_has_no_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert memory.Held(tmp_path / "nowhere").more_by_now() == (None, memory.NO_READING)


def test_a_process_reads_a_request_and_writes_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    request = {"who": "stage2_numpy", "on_device": False, "case": SMALL._asdict(), "threads": 1, "steps": 2}
    monkeypatch.setattr(sys, "stdin", StringIO(json.dumps(request)))
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # which main changes
    memory.main()
    answer = json.loads(capsys.readouterr().out)
    assert answer.keys() == {"held", "reason", "growth", "device"}
    assert answer["device"] is answer["growth"] is None


def test_what_further_steps_of_stage_3_hold_has_a_row_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch, {"stage2_numpy": {"held": 5}, "stage3_c": {"held": 4, "growth": 0}})
    stages = [fake_stage({}), fake_stage({}, "stage3_c")]
    rows = list(memory.memory_rows(stages, cases=model_cases("lenet5", [32]), threads=1))
    assert [(row.name, row.stage, row.part, row.memory, row.ratio) for row in rows] == [
        ("lenet5, batch 32", "stage2_numpy", "", 5, None),
        ("lenet5, batch 32", "stage3_c", "", 4, 0.8),
        ("lenet5, batch 32", "stage3_c", "growth over 1,000 steps", 0, None),
    ]
    assert [request["more"] for request in asked] == [0, 1000]
