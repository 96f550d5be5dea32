"""Killed at any moment, training goes on from its checkpoint and ends bit for bit where it would have ended.

Real processes, really killed: SIGKILL leaves a program no chance to tidy up.
"""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.training.checkpoints import Checkpoint, load_checkpoint
from tests import interrupts
from tests.shared.training.small_runs import assert_same_run
from tests.wide import WIDE, wide

ROOT = Path(__file__).resolve().parents[3]
EVERY = 5 if WIDE else 20
"""Steps between two checkpoints: to push one to the disk takes longer than the steps do."""
# Enough steps that a run takes a second or two, and everything that could remember something is switched on.
OPTIONS = shlex.split(
    "--hidden 24,12 --optimizer adam --weight-decay 0.0001 --dropout 0.2 --schedule cosine --warmup-epochs 0.5 "
    "--validation 0.2 --epochs 3 --batch-size 16 --seed 11 --quiet "
    f"--checkpoint-every {EVERY}"
)
# Augmented images and the normalisation must come back, too. Running statistics are in test_layered_runs.py.
LAYERED = shlex.split(
    "--model lenet5 --epochs 2 --batch-size 16 --validation 0.9 --seed 11 --checkpoint-every 2 --quiet"
)
CASES = [
    pytest.param(("stage2_numpy", OPTIONS, "3 epochs done"), id="dense"),
    pytest.param(("stage2_numpy", LAYERED, "2 epochs done"), id="layered"),
]
KILLS = 6 if WIDE else 2

pytestmark = [
    wide,  # test_runs.py has them in one process
    pytest.mark.skipif(os.name == "nt", reason="Windows has neither SIGKILL nor a SIGINT for another process"),
]


def start(stage: str, *arguments: str) -> subprocess.Popen[str]:
    # One thread: how BLAS divides a sum among threads is the one thing that a seed does not fix.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", f"{stage}.train", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env=environment, text=True, preexec_fn=interrupts.hear, **pipes)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    return process.returncode, out, err


def wait_for_a_newer_file(path: Path, older: int | None, process: subprocess.Popen[str]) -> bool:
    """Until path is replaced (True), or the process ends by itself (False)."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_mtime_ns != older:
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    raise TimeoutError(f"{path} was not written")


def written_at(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def place(checkpoint: Checkpoint) -> tuple[int, int]:
    position = checkpoint.about_run["position"]
    return position["epoch"], position["step"]


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, list[str], str]:
    """(stage, options, what the last line begins with)"""
    chosen: tuple[str, list[str], str] = request.param
    return chosen


@pytest.fixture(scope="module")
def whole(case: tuple[str, list[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    code, _, err = finish(start(case[0], *case[1], "--run-dir", str(folder)))
    assert (code, err) == (0, "")
    return folder


def test_a_run_killed_again_and_again_ends_where_an_undisturbed_one_ends(
    case: tuple[str, list[str], str], tmp_path: Path, whole: Path
) -> None:
    stage, options, ends = case
    folder = tmp_path / "run"
    last = folder / "last.safetensors"
    delays = random.Random(2024)
    arguments = [*options, "--run-dir", str(folder)]
    places = []
    for _ in range(KILLS):
        process = start(stage, *arguments)
        try:
            # Counted in checkpoints, so that a fast machine gets no further than a slow one; then somewhere in between.
            for _ in range(delays.randint(1, 8)):
                assert wait_for_a_newer_file(last, written_at(last), process), "the run ended before it could be killed"
            time.sleep(delays.uniform(0.0, 0.01))
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert process.returncode == -signal.SIGKILL, "the run ended before it could be killed"
        places.append(place(load_checkpoint(last)))  # loads cleanly, whatever the process was doing
        arguments = ["--resume", str(folder), "--quiet"]
    assert places == sorted(places)
    assert places[-1] > places[0]

    code, out, err = finish(start(stage, *arguments))
    assert (code, err) == (0, "")
    assert out.startswith(ends)
    assert_same_run(folder, whole)
    names = {path.name for path in folder.iterdir()}
    assert names == {"last.safetensors", "best.safetensors", "metrics.jsonl", "steps.jsonl", "run.json"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_the_running_step_and_says_how_to_resume(
    case: tuple[str, list[str], str], tmp_path: Path, whole: Path, number: signal.Signals
) -> None:
    stage, options, _ = case
    folder = tmp_path / "run"
    last = folder / "last.safetensors"
    process = start(stage, *options, "--run-dir", str(folder))
    try:
        assert wait_for_a_newer_file(last, None, process)
        # The first checkpoint is written before the signals are watched; the second one is not.
        assert wait_for_a_newer_file(last, written_at(last), process)
        process.send_signal(number)
    except BaseException:
        process.kill()
        raise
    code, out, err = finish(process)
    assert (code, out) == (2, "")
    epoch, step = place(load_checkpoint(last))
    command = f"groundup train {stage} --resume {folder}"
    assert err == f"interrupted: saved epoch {epoch + 1}, step {step}; resume with: {command}\n"

    code, _, err = finish(start(stage, "--resume", str(folder), "--quiet"))
    assert (code, err) == (0, "")
    assert_same_run(folder, whole)
