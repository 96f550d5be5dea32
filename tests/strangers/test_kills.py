"""SIGKILL at random moments: a training goes on bit for bit, and what was built or put into a cache is made again.

The wide cases are 60 kills: 36 of trainings on stages 2, 3 and 4, and 24 while stage 3's library is built, while the
emulator compiles, and while either writes its cache. A process that has ended before its kill does not count.
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

from stage3_c.build import BUILDING
from tests.shared.training.small_runs import assert_same_run
from tests.stages import REASONS, USABLE_STAGES
from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = shlex.split(
    "--hidden 24,12 --optimizer adam --dropout 0.2 --schedule cosine --warmup-epochs 0.5 --validation 0.2 --epochs 3 "
    "--batch-size 16 --seed 11 --checkpoint-every 3 --quiet"
)
FEWER_STEPS = shlex.split("--epochs 2 --batch-size 64")
"""Of stage 4, which computes on the emulator here, and of the case that is not wide."""

WHOLE = {"last.safetensors", "best.safetensors", "metrics.jsonl", "steps.jsonl", "run.json"}
TRAIN = "import sys; sys.argv[0] = 'groundup'; from groundup.entry import main; main()"
KILLS_A_RUN = 3
MOST_SECONDS = 120.0

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")


def start(arguments: list[str], **variables: str) -> subprocess.Popen[str]:
    """A process that leads a group, so that the compilers that it starts can be killed with it."""
    # One thread: how BLAS divides a sum among threads is the one thing that a seed does not fix.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)} | variables
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, start_new_session=True, **pipes)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=MOST_SECONDS)
    finally:
        process.kill()
    return process.returncode, out, err


def killed(process: subprocess.Popen[str], folder: Path, rng: random.Random, seconds: float) -> bool:
    """Kill the process at a random moment of its `seconds`, or just after it has changed a file in the folder. Whether
    it still ran."""
    moment = time.monotonic() + rng.uniform(0.0, seconds)
    if rng.random() < 0.5:
        before = newest(folder)
        while newest(folder) == before and process.poll() is None:
            time.sleep(0.001)
        moment = time.monotonic() + rng.uniform(0.0, 0.02)
    while time.monotonic() < moment and process.poll() is None:
        time.sleep(0.0005)
    running = process.poll() is None
    if running and rng.random() < 0.5:
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.communicate()
    return running and process.returncode == -signal.SIGKILL


def newest(folder: Path) -> tuple[int, int]:
    """How many files there are, and when the last of them was changed."""
    found = []
    for path in folder.rglob("*"):
        try:
            found.append(path.stat().st_mtime_ns)
        except OSError:  # a temporary file that has got its name
            continue
    return len(found), max(found, default=0)


def trainings(stage: str, kills: int, folder: Path, seed: int) -> None:
    """Runs that are killed up to three times each, and end as one that was left alone."""
    options = [*OPTIONS, *(FEWER_STEPS if stage == "stage4_numba_cuda" or kills == 1 else ())]
    whole = folder / "whole"
    train = ["-c", TRAIN, "train", stage]
    began = time.monotonic()
    assert finish(start([*train, *options, "--run-dir", str(whole)]))[::2] == (0, "")
    if stage == "stage4_numba_cuda":  # the first run compiled
        began = time.monotonic()
        assert finish(start([*train, *options, "--run-dir", str(whole), "--overwrite"]))[::2] == (0, "")
    seconds = time.monotonic() - began
    rng, counted, number = random.Random(f"{stage} {seed}"), 0, 0
    while counted < kills:
        run = folder / f"run{number}"
        number += 1
        assert number <= 3 * kills + 3, f"only {counted} of {number} runs could be killed"
        for _ in range(KILLS_A_RUN):
            process = start([*train, *how(run, options)])
            counted += killed(process, run, rng, seconds)
            if counted == kills:
                break
        assert finish(start([*train, *how(run, options)]))[::2] == (0, "")
        assert_same_run(run, whole)
        assert {path.name for path in run.iterdir()} - {"run.lock"} == WHOLE


def how(run: Path, options: list[str]) -> list[str]:
    """The arguments that begin the run, or go on with it."""
    saved = (run / "last.safetensors").exists()
    return ["--resume", str(run), "--quiet"] if saved else [*options, "--run-dir", str(run)]


@pytest.mark.parametrize(
    ("stage", "kills"),
    [
        pytest.param("stage3_c", 1, marks=wide),
        pytest.param("stage2_numpy", 14, marks=wide),
        pytest.param("stage3_c", 12, marks=wide),
        pytest.param("stage4_numba_cuda", 10, marks=wide),
    ],
)
def test_a_training_that_is_killed_ends_bit_for_bit_as_one_that_is_not(stage: str, kills: int, tmp_path: Path) -> None:
    if stage not in USABLE_STAGES:
        pytest.skip(REASONS.get(stage) or "not installed")
    trainings(stage, kills, tmp_path, seed=22)


BUILD = "from stage3_c import activations; import numpy as np; print(activations.relu(np.ones((1, 2), np.float32)))"
COMPILE = """
import numpy as np
from cuda_emulator import cuda
@cuda.jit
def first(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = 2 * x[i]
@cuda.jit
def second(x, out):
    tile = cuda.shared.array(32, np.float64)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[31 - t] + 1
x, out = np.arange(32.0), np.zeros(32)
first[1, 32](x, out)
second[1, 32](out.copy(), out)
print(out.tolist() == (2 * x[::-1] + 1).tolist())
"""
MADE = {"library": (BUILD, "[[1. 1.]]\n"), "kernels": (COMPILE, "True\n")}


def leftovers(cache: Path) -> list[Path]:
    """Folders in which stage 3's library was being built. Temporary files of the emulator stay for an hour."""
    return list(cache.rglob(f"{BUILDING}*"))


@wide
@pytest.mark.parametrize(("what", "kills"), [("library", 12), ("kernels", 12)])
def test_what_was_being_made_at_a_kill_is_made_again_silently(what: str, kills: int, tmp_path: Path) -> None:
    if what == "library" and "stage3_c" not in USABLE_STAGES:
        pytest.skip(REASONS["stage3_c"] or "not installed")
    code, expected = MADE[what]
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")
    rng, counted, number, seconds = random.Random(f"{what} {kills}"), 0, 0, 2.0
    while counted < kills:
        cache = tmp_path / f"cache{number}"
        number += 1
        assert number <= 3 * kills + 3, f"only {counted} of {number} processes could be killed"
        for _ in range(rng.randint(1, KILLS_A_RUN)):
            counted += killed(start([str(script)], GROUNDUP_CACHE=str(cache)), cache, rng, seconds)
            if counted == kills:
                break
        began = time.monotonic()
        assert finish(start([str(script)], GROUNDUP_CACHE=str(cache))) == (0, expected, "")
        seconds = time.monotonic() - began
        assert finish(start([str(script)], GROUNDUP_CACHE=str(cache))) == (0, expected, "")
        assert leftovers(cache) == []
