"""The lock in the folder of a run: a second training is kept out, and nothing outlives the holder."""

import errno
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groundup.cli import main
from shared import contract
from shared.training import run_lock
from shared.training.checkpoints import CheckpointError
from shared.training.run_lock import LOCK, RunInUse, RunLock
from tests.shared.training.small_runs import FULL, QUIET, make, run

ON_UNIX = pytest.mark.skipif(sys.platform == "win32", reason="flock and fork are there on Unix only")

HOLD = """
import sys, time
from pathlib import Path
from shared.training.run_lock import RunLock
with RunLock(Path(sys.argv[1])):
    {meanwhile}
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder: Path, meanwhile: str = "pass") -> "subprocess.Popen[str]":
    """A process that holds the lock of the folder until it is killed. meanwhile: what it does once it has the lock"""
    words = [sys.executable, "-c", HOLD.format(meanwhile=meanwhile), str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def groundup(words: Sequence[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return left.value.code if isinstance(left.value.code, int) else 0


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def test_the_lock_is_there_during_a_training_and_gone_after_it(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    there = []
    run(numpy_stage, make(numpy_stage), folder=tmp_path, hooks=replace(QUIET, on_epoch=lambda record: there.append(
        (tmp_path / LOCK).is_file())))  # fmt: skip
    assert there == [True] * FULL.epochs
    assert not (tmp_path / LOCK).exists()


@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True}], ids=["new", "overwrite", "resume"])
def test_no_floor_trains_into_a_folder_that_is_in_use(
    stage: contract.Stage, tmp_path: Path, how: dict[str, Any]
) -> None:
    with RunLock(tmp_path):
        with pytest.raises(RunInUse, match=f"process {os.getpid()} on .* writes into it since 20"):
            run(stage, make(stage), folder=tmp_path, **how)
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]


@pytest.mark.parametrize("how", [["--run-dir", "{}", "--overwrite"], ["--resume", "{}"]], ids=["overwrite", "resume"])
def test_the_second_program_gets_a_sentence_and_goes_on_once_the_first_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    words = ["train", "numpy", "--dataset", "mnist-subset", "--hidden", "4", "--epochs", "1", "--quiet"]
    folder = str(tmp_path / "run")
    assert groundup([*words, "--run-dir", folder]) == 0
    first = holder(tmp_path / "run")
    try:
        capsys.readouterr()
        assert groundup([*words, *(each.format(folder) for each in how)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"error: {folder} is in use: process {first.pid} on ")
        assert "wait for its end, or choose another folder" in err
        assert "Traceback" not in err
    finally:
        end(first)
    assert (tmp_path / "run" / LOCK).is_file()  # the killed one has left it behind
    assert groundup([*words, *(each.format(folder) for each in how)]) == 0
    assert "Saved in" in capsys.readouterr().out
    assert not (tmp_path / "run" / LOCK).exists()


CLAIM = """
import os, sys, time
from pathlib import Path
from shared.training.run_lock import RunInUse, RunLock
folder, got = Path(sys.argv[1]), 0
last = time.monotonic() + 200
while got < 100 and time.monotonic() < last:
    try:
        with RunLock(folder):
            os.close(os.open(folder / "claimed", os.O_CREAT | os.O_EXCL))  # fails if two have the lock
            os.unlink(folder / "claimed")
            got += 1
    except RunInUse:
        pass
print(got)
"""


@ON_UNIX
def test_of_several_processes_that_try_at_once_one_has_the_lock(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CLAIM, str(tmp_path)]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    told = [process.communicate() for process in [subprocess.Popen(words, **pipes) for _ in range(3)]]
    assert told == [("100\n", "")] * 3
    assert list(tmp_path.iterdir()) == []


@ON_UNIX
@pytest.mark.parametrize(
    "meanwhile",
    [
        "import os; begun = os.pipe(); child = os.fork() or os.write(begun[1], b'.') and time.sleep(60); "
        "os.read(begun[0], 1)",
        "import subprocess; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid",
    ],
    ids=["fork", "another program"],
)
def test_a_child_does_not_hold_the_lock_beyond_the_end_of_its_parent(tmp_path: Path, meanwhile: str) -> None:
    first = holder(tmp_path, f"{meanwhile}; (Path(sys.argv[1]) / 'child').write_text(str(child))")
    child = int((tmp_path / "child").read_text())
    try:
        with pytest.raises(RunInUse, match=f"process {first.pid} on"):
            RunLock(tmp_path).__enter__()
        end(first)
        with RunLock(tmp_path):
            os.kill(child, 0)  # it still runs
    finally:
        os.kill(child, signal.SIGKILL)
        end(first)


def test_without_locks_there_is_one_warning_and_the_training_goes_on(
    numpy_stage: contract.Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(file: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(run_lock, "_lock", none)
    with pytest.warns(UserWarning, match="this file system has no locks") as told:
        assert len(run(numpy_stage, make(numpy_stage), folder=tmp_path).epochs) == FULL.epochs
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(numpy_stage, make(numpy_stage), folder=tmp_path, resume=True)


@pytest.mark.parametrize("text", [b"", b"\0" * 200, b'{"pid": 1e999}', b"[" * 4000, b'{"pid": 4711, "host": 7}'])
def test_a_file_that_was_left_behind_harms_nothing(tmp_path: Path, text: bytes) -> None:
    (tmp_path / LOCK).write_bytes(text)
    with RunLock(tmp_path):
        pass
    assert not (tmp_path / LOCK).exists()


def test_a_run_that_is_not_there_is_not_made_by_resume(numpy_stage: contract.Stage, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        run(numpy_stage, make(numpy_stage), folder=tmp_path / "none", resume=True)
    assert not (tmp_path / "none").exists()
