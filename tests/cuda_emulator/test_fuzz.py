"""Random kernels come out the same however they are run. fuzz_emulator.py does it at length; here are a few seeds."""

import ast
from pathlib import Path

import pytest

from tests.cuda_emulator import fuzz_modes
from tests.cuda_emulator.fuzz_emulator import SHRUNK, Worker, failed, run_seeds, summary
from tests.cuda_emulator.fuzz_kernels import kernel_text
from tests.cuda_emulator.fuzz_modes import MODES, STEP_MODES, Outcome, examine
from tests.cuda_emulator.fuzz_shrink import shrunk
from tests.wide import wide

KEPT = sorted(SHRUNK.glob("*_[0-9]*.py"))


def written(folder: Path, text: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("seed", range(6))
def test_generated_kernels_give_the_same_in_every_order_of_threads(seed: int, tmp_path: Path) -> None:
    assert examine(written(tmp_path, kernel_text(seed)), seed, STEP_MODES) == Outcome("ok")


@wide
def test_generated_kernels_give_the_same_in_every_mode(tmp_path: Path) -> None:
    told: list[str] = []
    outcomes = run_seeds(range(1), 1, 90.0, tuple(MODES), tmp_path, told.append)
    assert not [outcome for outcome in outcomes.values() if failed(outcome)], told
    assert summary(outcomes, 1.0).startswith("1 kernels in 1 s: ")


@wide
@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_kernels_that_once_failed_are_right_now(path: Path) -> None:
    seed = int(path.stem.rsplit("_", 1)[1])
    worker = Worker(tuple(MODES), 90.0)
    try:
        outcome = worker.examine(path, seed)
    finally:
        worker.stop()
    assert not failed(outcome), outcome


def test_the_same_seed_gives_the_same_kernel_and_another_seed_another() -> None:
    assert kernel_text(3) == kernel_text(3)
    assert kernel_text(3) != kernel_text(4)


def test_kernels_ask_for_nothing_that_a_device_may_answer_as_it_likes() -> None:
    assert "activemask" not in "".join(kernel_text(seed) for seed in range(40))


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


@pytest.mark.slow
def test_a_crash_and_a_hang_are_named_and_the_next_kernel_runs(tmp_path: Path) -> None:
    worker = Worker(("step",), 15.0)
    try:
        crash = worker.examine(written(tmp_path, "import os\nos._exit(3)\n"), 0)
        assert crash.kind == "crash"
        assert "the process ended with 3" in crash.message
        worker.limit = 1.0
        assert worker.examine(written(tmp_path, "while True:\n    pass\n"), 0).kind == "hang"
        worker.limit = 30.0
        assert worker.examine(written(tmp_path, kernel_text(5)), 5) == Outcome("ok")
    finally:
        worker.stop()


def test_shrinking_leaves_what_the_failure_needs_and_no_more() -> None:
    def fails(text: str) -> bool:
        functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        calls = [node for node in ast.walk(functions[-1]) if isinstance(node, ast.Call)]
        return any(ast.unparse(call).startswith("cuda.match_any_sync") for call in calls)

    seed = next(seed for seed in range(50) if "match_any" in kernel_text(seed))
    text = shrunk(kernel_text(seed), fails, most=500)
    kernel = ast.parse(text).body[-1]
    assert isinstance(kernel, ast.FunctionDef)
    assert len(kernel.body) == 1
    assert not isinstance(kernel.body[0], ast.If | ast.For | ast.While)
