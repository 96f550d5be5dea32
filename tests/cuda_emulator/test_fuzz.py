"""Random kernels come out the same however they are run: compiled, in shuffled orders, on two cores, step by step.

At length, in two processes, one of which may crash:

    GROUNDUP_SEEDS=0:1000 pytest -m "wide or not wide" -n 2 tests/cuda_emulator/test_fuzz.py
"""

import os
from pathlib import Path

import pytest

from tests.cuda_emulator import fuzz_modes
from tests.cuda_emulator.fuzz_kernels import kernel_text
from tests.cuda_emulator.fuzz_modes import MODES, STEP_MODES, Outcome, examine, failed
from tests.wide import wide

KEPT = sorted((Path(__file__).parent / "emulator_kernels" / "shrunk").glob("*_[0-9]*.py"))
SEEDS = range(*map(int, os.environ.get("GROUNDUP_SEEDS", "0:6").split(":")))
COMPILED = SEEDS if "GROUNDUP_SEEDS" in os.environ else SEEDS[:1]


def written(folder: Path, text: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_kernels_give_the_same_in_every_order_of_threads(seed: int, tmp_path: Path) -> None:
    assert examine(written(tmp_path, kernel_text(seed)), seed, STEP_MODES) == Outcome("ok")


@wide
@pytest.mark.parametrize("seed", COMPILED)
def test_generated_kernels_give_the_same_in_every_mode(seed: int, tmp_path: Path) -> None:
    outcome = examine(written(tmp_path, kernel_text(seed)), seed)
    assert not failed(outcome), outcome


@wide
@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_kernels_that_once_failed_are_right_now(path: Path) -> None:
    """Made small they read memory that nobody has written, which check mode refuses."""
    outcome = examine(path, int(path.stem.rsplit("_", 1)[1]), tuple(mode for mode in MODES if mode != "check"))
    assert not failed(outcome), outcome


def test_kernels_hold_what_they_are_meant_to_hold() -> None:
    everything = "\n".join(kernel_text(seed) for seed in range(200))
    wanted = [
        *(
            "cuda.syncthreads()",
            "cuda.syncthreads_count(",
            "cuda.syncthreads_or(",
            "cuda.shfl_down_sync(",
            "shfl_xor_sync(",
        ),
        *(
            "cuda.ballot_sync(",
            "cuda.match_any_sync(",
            "cuda.match_all_sync(",
            "while ",
            "while True:",
        ),
        *("cuda.atomic.add(sa,", "cuda.atomic.xor(", "cuda.atomic.inc(", "return\n", "break\n", "continue\n", "elif "),
        *("rotated(s0,", "neighbours(t,", "warp_sum(a)", "several(", "mixed(", "np.uint32(", "loc[", "s2[", "w = h"),
    ]
    assert [text for text in wanted if text not in everything] == []


@wide
def test_a_kernel_without_its_barriers_is_found_to_race(tmp_path: Path) -> None:
    """Not every kernel needs its barriers; among these some do."""
    kinds = []
    for seed in range(40):
        text = kernel_text(seed).replace("cuda.syncthreads()", "t = t + 0")
        kinds.append(examine(written(tmp_path, text), seed, STEP_MODES).kind)
        if kinds[-1] == "race":
            break
    assert kinds[-1] == "race"


def test_a_mode_that_computes_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(module, values):  # type: ignore[no-untyped-def]
        MODES["step"](module, values)
        values[6][1] += 1

    monkeypatch.setitem(fuzz_modes.MODES, "compiled", wrong)
    outcome = examine(written(tmp_path, kernel_text(0)), 0, ("step", "compiled"))
    assert (outcome.kind, outcome.mode) == ("mismatch", "compiled")
    assert outcome.message.startswith("out[1]: expected ")
    assert outcome.message.endswith("(1 differ)")
    assert failed(outcome)


def test_only_what_is_not_supported_may_be_refused() -> None:
    assert failed(Outcome("refused", "compiled", "'x' has two types"))
    assert not failed(Outcome("refused", "compiled", "try is not supported by the emulator inside a kernel"))
