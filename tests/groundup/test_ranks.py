"""`groundup train` on several ranks: by --ranks and by mpiexec, killed, resumed, and without what it needs."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from groundup import ranks
from groundup.commands.bench_ranks import bench_ranks
from shared.machine import processes
from shared.training.checkpoints import load_checkpoint
from shared.training.run_facts import read_facts
from shared.training.step_records import read_line
from tests.mpi import needs_mpi, run_ranks
from tests.stages import without_announcement

ENVIRONMENT = processes.finding_our_packages(os.environ) | {"GROUNDUP_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def own_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 small images as a data set."""
    rng = np.random.default_rng(3)
    place = tmp_path_factory.mktemp("set") / "dots.npz"
    y = rng.integers(0, 3, 120)
    x = (rng.random((120, 6, 6)) * 100 + 50 * y[:, None, None]).astype(np.uint8)
    np.savez(place, x_train=x[:100], y_train=y[:100], x_test=x[100:], y_test=y[100:])
    return place


def words(own_set: Path, folder: Path, *more: str) -> list[str]:
    options = ["--hidden", "7", "--batch-size", "16", "--dtype", "float64", "--momentum", "0.9"]
    return ["train", "numpy", "--dataset", str(own_set), *options, "--run-dir", str(folder), *more]


def groundup(*arguments: str, **variables: str) -> processes.Finished:
    return processes.run(processes.python("-m", "groundup", *arguments), 120, variables=ENVIRONMENT | variables)


def parameters(folder: Path) -> np.ndarray:
    return np.concatenate([array.ravel() for array in load_checkpoint(folder / "last.safetensors").parameters])


@needs_mpi
def test_ranks_by_the_option_and_by_mpiexec_train_as_one_and_go_on_on_any_number(own_set: Path, tmp_path: Path) -> None:
    alone = groundup(*words(own_set, tmp_path / "alone", "--epochs", "4"))
    assert alone.code == 0, alone.errors
    by_option = groundup(*words(own_set, tmp_path / "run", "--epochs", "2", "--ranks", "2", "--json"))
    assert (by_option.code, by_option.errors) == (0, ""), by_option.errors
    summary = json.loads(by_option.output)
    assert summary["ranks"] == 2
    assert 0 < summary["communication"] < 1
    by_mpiexec = run_ranks(3, "-m", "groundup", "train", "numpy", "--resume", str(tmp_path / "run"), "--epochs", "3")
    assert by_mpiexec.code == 0, by_mpiexec.errors
    assert by_mpiexec.output.count("epoch     loss") == 1
    assert "3 epochs done on 3 ranks, " in by_mpiexec.output
    last = groundup("train", "numpy", "--resume", str(tmp_path / "run"), "--epochs", "4")
    assert last.code == 0, last.errors
    difference = np.abs(parameters(tmp_path / "run") - parameters(tmp_path / "alone")).max()
    assert 0 < difference < 1e-10
    assert [session.ranks for session in read_facts(tmp_path / "run" / "run.json").sessions] == [2, 3, 1]
    lines = [read_line(line) for line in (tmp_path / "run" / "steps.jsonl").read_text().splitlines()]
    shares = [line.communication for line in lines if line is not None and line.step <= 21]
    assert any(share is not None and 0 < share < 1 for share in shares)


def ranks_of(folder: Path) -> dict[int, int]:
    """The processes of the ranks that train into this folder, by their number."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                command, variables = (place / "cmdline").read_bytes(), (place / "environ").read_bytes()
            except OSError:
                continue
            number = next((v[9:] for v in variables.split(b"\0") if v.startswith(b"PMI_RANK=")), None)
            if number is not None and str(folder).encode() in command:
                found[int(number)] = int(place.name)
    return found


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def until(true: object, seconds: float = 600.0) -> None:
    last = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < last, "it did not happen"
        time.sleep(0.02)


@needs_mpi
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the ranks in Linux's /proc")
@pytest.mark.parametrize(
    "killed",
    [
        *(1, "Ctrl-C"),
        *(pytest.param(each, marks=pytest.mark.wide) for each in (0, "the command", "mpiexec", "its proxy", "twice")),
    ],
)
def test_a_killed_rank_ends_all_and_the_run_goes_on(own_set: Path, tmp_path: Path, killed: int | str) -> None:
    run = tmp_path / "run"
    asked = words(own_set, run, "--epochs", "100000", "--checkpoint-every", "3", "--ranks", "2")
    command = processes.python("-m", "groundup", *asked)
    child = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: len(ranks_of(run)) == 2 and (run / "metrics.jsonl").exists())
        until(lambda: (run / "metrics.jsonl").read_text().count("\n") >= 2)
        children = ranks_of(run)
        shared = [line for line in Path(f"/proc/{children[1]}/maps").read_text().splitlines() if "mpich_shm" in line]
        assert all(line.endswith(" (deleted)") for line in shared)  # or it would stay in /dev/shm
        if killed in ("Ctrl-C", "twice"):
            child.send_signal(signal.SIGINT)
            if killed == "twice":
                os.kill(children[1], signal.SIGSTOP)  # so that the first one cannot end the run
                time.sleep(0.1)
                child.send_signal(signal.SIGINT)
        else:
            proxy = parent_of(children[1])
            found = {"the command": child.pid, "mpiexec": parent_of(proxy), "its proxy": proxy}
            os.kill(found[killed] if isinstance(killed, str) else children[killed], signal.SIGKILL)
        out, err = child.communicate(timeout=300)
        until(lambda: not ranks_of(run))
    finally:
        child.kill()
    assert out.startswith("stage 2: NumPy")
    if killed == "Ctrl-C":
        assert child.returncode == 2
        assert err.startswith("interrupted: saved epoch ")
        assert err.endswith(f"resume with: groundup train stage2_numpy --resume {run}\n")
    elif killed != "the command":
        assert child.returncode == 2
        what = {
            "mpiexec": "mpiexec was ended by signal 9, and all ranks with it",
            "its proxy": "mpiexec failed (",
            "twice": "interrupted: all ranks were killed",
        }.get(
            str(killed),
            f"a rank, process {children.get(killed)} on {os.uname().nodename}, was ended by signal 9, and the "  # type: ignore[call-overload]
            "other ranks with it",
        )
        assert err.startswith(f"error: {what}")
        assert err.endswith(f"; go on with: groundup train stage2_numpy --resume {run} --ranks 2\n")
        assert err.count("\n") == 1
    done = load_checkpoint(run / "last.safetensors").about_run["position"]["epoch"] + 2
    resumed = groundup("train", "numpy", "--resume", str(run), "--epochs", str(done), "--ranks", "2", "--quiet")
    assert resumed.code == 0, resumed.errors
    alone = groundup(*words(own_set, tmp_path / "alone", "--epochs", str(done), "--quiet"))
    assert alone.code == 0, alone.errors
    np.testing.assert_allclose(parameters(run), parameters(tmp_path / "alone"), rtol=0, atol=1e-10)


@needs_mpi
def test_an_error_of_all_ranks_is_told_once(own_set: Path, tmp_path: Path) -> None:
    ended = groundup(*words(own_set, tmp_path, "--ranks", "2", "--optimizer", "foo"))
    assert ended.code == 2
    assert ended.errors == "error: unknown optimizer 'foo'; choose one of sgd, rmsprop, adam\n"
    diverged = groundup(*words(own_set, tmp_path, "--ranks", "2", "--learning-rate", "1e300"))
    assert diverged.code == 2
    assert diverged.errors.count("error: ") == 1
    assert "the training diverged; lower the learning rate" in diverged.errors


@needs_mpi
def test_mpiexec_of_another_mpi_and_another_number_get_a_sentence(own_set: Path, tmp_path: Path) -> None:
    asked = words(own_set, tmp_path / "run")
    other = groundup(*asked, OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="0")
    assert other.code == 2
    assert "mpiexec has started 2 ranks, but mpi4py sees 1: it uses " in other.errors
    assert other.errors.endswith("this mpiexec is of another MPI. Start it with groundup train --ranks 2\n")
    three = groundup(*asked, "--ranks", "3", PMI_SIZE="2")
    assert three.code == 2
    assert "--ranks 3: mpiexec has started 2; leave out --ranks, or give mpiexec -n 3" in without_announcement(
        three.errors
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("mpi4py", "mpiexec", "named"),
    [(None, "/usr/bin/mpiexec", "mpi4py"), ("there", None, "mpiexec")],
)
def test_without_the_extra_there_is_one_sentence_with_the_command(
    mpi4py: str | None, mpiexec: str | None, named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: mpi4py)
    monkeypatch.setattr(ranks, "mpiexec", lambda: mpiexec)
    sentence = rf"^several ranks need {named}, which is not installed; install the extra mpi: .*\[mpi\]"
    with pytest.raises(ValueError, match=sentence):
        ranks.launch(2, ["train", "2"], tmp_path, "")


def test_each_rank_gets_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ranks.THREADS, *ranks.HERE, *ranks.SIZE, *ranks.RANK, "MPIR_CVAR_SUPPRESS_ABORT_MESSAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("shared.machine.hardware.usable_cores", lambda: 8)
    monkeypatch.setenv("PMI_SIZE", "6")
    monkeypatch.setenv("MPI_LOCALNRANKS", "3")
    monkeypatch.setenv("GROUNDUP_THREADS", "5")
    ranks.prepare()
    assert (os.environ["GROUNDUP_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]) == ("5", "2")
    for name in (*ranks.THREADS, "MPIR_CVAR_SUPPRESS_ABORT_MESSAGE"):
        monkeypatch.delenv(name, raising=False)


def launched(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> int:
    """What `launch` returns where mpiexec is this shell script."""
    program = folder / "mpiexec"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(ranks, "check_installed", lambda: str(program))
    return ranks.launch(1, ["train", "2"], folder, "the command")


posix = pytest.mark.skipif(sys.platform == "win32", reason="mpiexec is a shell script here")


@posix
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("exit 2", 2, ""),
        ("kill -9 $$", 2, "error: mpiexec was ended by signal 9, and all ranks with it; nothing was saved yet\n"),
        (
            "echo '[mpiexec@here] cannot find itself' >&2; exit 255",
            2,
            "error: mpiexec failed ([mpiexec@here] cannot find itself), and all ranks with it; nothing was saved yet\n",
        ),
    ],
)
def test_an_end_of_mpiexec_itself_gets_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    script: str,
    code: int,
    said: str,
) -> None:
    assert launched(monkeypatch, tmp_path, script) == code
    assert capsys.readouterr().err == said


class Full(io.StringIO):
    """An output whose disk is full."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@posix
def test_an_output_that_cannot_be_written_ends_the_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    began = time.monotonic()
    with pytest.raises(OSError, match="No space left on device"):
        launched(monkeypatch, tmp_path, "echo one; exec sleep 600")
    assert time.monotonic() - began < 300
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it where it was closed
    assert launched(monkeypatch, tmp_path, "echo one") == 0


def test_an_error_before_the_ranks_know_each_other_is_told_by_the_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    with pytest.raises(ValueError, match="--ranks 3: mpiexec has started 2; leave out --ranks"):
        ranks.connected(3)
    with pytest.raises(ValueError, match="bench --ranks starts mpiexec itself; leave the outer mpiexec out"):
        bench_ranks(tmp_path, quick=True, json=False)
    monkeypatch.setenv("PMI_RANK", "1")
    with pytest.raises(SystemExit) as ended:
        ranks.connected(3)
    assert ended.value.code == 2
