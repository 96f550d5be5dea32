"""The GPU report without a GPU: every part on the emulator at tiny sizes, and what happens when one of them fails."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from shared.bench.gpu import Cublas
from stage4_numba_cuda import gpu_report
from stage4_numba_cuda import matmul as matmul_room
from stage4_numba_cuda.arrays import asarray
from stage4_numba_cuda.backend import BACKEND
from stage4_numba_cuda.report import beside_torch
from stage4_numba_cuda.report import charts as report_charts
from stage4_numba_cuda.report import correctness as report_correctness
from stage4_numba_cuda.report import facts as report_facts
from stage4_numba_cuda.report import ladder as report_ladder
from stage4_numba_cuda.report import launches as report_launches
from stage4_numba_cuda.report import process as report_process
from stage4_numba_cuda.report import sanitizer as report_sanitizer
from stage4_numba_cuda.report import steps as report_steps
from stage4_numba_cuda.report import suite as report_suite
from stage4_numba_cuda.report import timing as report_timing
from stage4_numba_cuda.report import training as report_training
from stage4_numba_cuda.report.part import Part, Plan

pytestmark = pytest.mark.skipif(BACKEND.name != "emulator", reason="looks at what the report says without a GPU")

GPU = SimpleNamespace(emulated=False, name="gpu")


def part(name: str, file: Path | None = None, **plan: Any) -> Part:
    return Part(name, Plan(30.0, **plan), file)


def matmul(a: Any, b: Any, out: Any) -> Any:
    """A rung that is right, by NumPy."""
    out.copy_to_device(a.copy_to_host() @ b.copy_to_host())
    return out


def wrong(a: Any, b: Any, out: Any) -> Any:
    """One that forgets the last column."""
    product = a.copy_to_host() @ b.copy_to_host()
    product[:, -1] = 0
    out.copy_to_device(product)
    return out


# ---- the parts


def test_every_row_of_the_emulator_says_so(tmp_path: Path) -> None:
    found = part("launches", tmp_path / "part.json")
    report_launches.run(found)
    document = json.loads((tmp_path / "part.json").read_text())
    assert document["emulated"] is True
    assert [row["kind"] for row in document["rows"]] == ["empty", "six scalars", "six arrays", "looked up"]
    for row in document["rows"]:
        assert row["emulated"] is True
        assert 0 < row["host"]["median"] <= row["done"]["median"]
    assert document["skipped"] == ["replay: skipped: no GPU"]


def test_the_device_comes_with_versions_machine_and_reason() -> None:
    found = part("device")
    report_facts.run(found)
    assert found.facts["backend"] == "emulator"
    assert found.facts["reason"] == BACKEND.reason
    assert found.facts["versions"]["numpy"] == np.__version__
    assert {"cpu", "revision", "date"} <= set(found.facts["environment"])


@pytest.fixture
def only_matmul(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give the correctness part nothing but these rungs of matmul."""

    def give(ladder: Mapping[str, Any], cores: Mapping[str, Any] | None = None) -> None:
        monkeypatch.setattr(report_correctness, "matmul", SimpleNamespace(LADDER=ladder, TENSOR_CORES=cores or {}))
        for name in ("SOFTMAX_LADDER", "SOFTMAX_BACKWARD_LADDER"):
            monkeypatch.setattr(report_correctness.activations, name, {})
        for name in ("COLUMN_SUMS_LADDER", "TOTAL_LADDER"):
            monkeypatch.setattr(report_correctness.reductions, name, {})
        monkeypatch.setattr(report_correctness.network, "STEP_LADDER", {})

    return give


def test_a_wrong_rung_is_named_with_its_place_and_the_others_go_on(only_matmul: Callable[..., None]) -> None:
    def broken(a: Any, b: Any, out: Any) -> Any:
        raise RuntimeError("an illegal address was accessed")

    only_matmul({"right": matmul, "wrong": wrong, "broken": broken, "last": matmul})
    found = part("correctness")
    report_correctness.run(found)
    assert found.status == "failed"
    assert [(row["rung"], row["ok"]) for row in found.rows] == [
        ("right", True),
        ("wrong", False),
        ("broken", False),
        ("last", True),
    ]
    assert "matmul wrong: matmul, index (" in found.error
    assert "matmul broken: matmul: raised RuntimeError: an illegal address was accessed" in found.error


def test_what_a_kernel_does_not_write_is_seen(only_matmul: Callable[..., None]) -> None:
    only_matmul({"lazy": lambda a, b, out: out})
    found = part("correctness")
    report_correctness.run(found)
    assert "got nan" in found.error


@pytest.mark.parametrize(("bits", "ok"), [(11, True), (8, False)])
def test_tensor_cores_may_round_their_operands_and_no_more(
    only_matmul: Callable[..., None], bits: int, ok: bool
) -> None:
    def rounded(x: np.ndarray) -> np.ndarray:
        mantissa, exponent = np.frexp(x)
        return np.ldexp(np.rint(mantissa * 2.0**bits) / 2.0**bits, exponent)

    def tf32(a: Any, b: Any, out: Any) -> None:
        out.copy_to_device((rounded(a.copy_to_host()) @ rounded(b.copy_to_host())).astype(np.float32))

    only_matmul({}, {"tf32": tf32})
    found = part("correctness")
    report_correctness.run(found)
    assert [row["ok"] for row in found.rows] == [ok]


@pytest.mark.slow
def test_the_rungs_of_every_ladder_are_right_on_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    first = dict(list(matmul_room.LADDER.items())[:3])  # test_stage4_matmul.py has the others, long to compile
    monkeypatch.setattr(matmul_room, "LADDER", first)
    monkeypatch.setattr(matmul_room, "TENSOR_CORES", {})
    found = part("correctness")
    report_correctness.run(found)
    assert (found.status, found.error) == ("ok", "")
    assert {row["what"] for row in found.rows} >= {"matmul", "softmax", "column_sums", "total", "step"}


@pytest.fixture
def ladder_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Part]:
    """Run the ladder part as on a GPU, with these rungs and a cuBLAS that is NumPy."""

    def cublas(a: np.ndarray, b: np.ndarray, precision: str) -> Cublas:
        return Cublas("NumPy, for once", lambda: time.sleep(0.001), lambda: a @ b)

    def run(ladder: Mapping[str, Any], **cores: Any) -> Part:
        monkeypatch.setattr(report_ladder, "BACKEND", GPU)
        monkeypatch.setattr(report_ladder, "matmul", SimpleNamespace(LADDER=ladder, TENSOR_CORES=cores))
        monkeypatch.setattr(report_ladder, "cublas", cublas)
        found = part("ladder", tiny=True)
        report_ladder.run(found)
        return found

    return run


def test_rungs_stand_beside_cublas_in_their_own_precision(ladder_on_a_gpu: Callable[..., Part]) -> None:
    found = ladder_on_a_gpu({"right": matmul}, tf32=matmul)
    assert found.status == "ok"
    assert [(row["precision"], row["rung"]) for row in found.rows] == [
        ("float32", "cuBLAS"),
        ("float32", "right"),
        ("tf32", "cuBLAS"),
        ("tf32", "mma"),
    ]
    reference, right = found.rows[:2]
    assert right["share_of_cublas"] == pytest.approx(reference["median"] / right["median"])
    assert right["tflops"] == pytest.approx(2 * 40**3 / right["median"] / 1e12)
    assert right["reference"] == "NumPy, for once"


def test_a_rung_that_computes_something_else_fails_the_ladder(ladder_on_a_gpu: Callable[..., Part]) -> None:
    found = ladder_on_a_gpu({"wrong": wrong})
    assert found.status == "failed"
    assert found.error.startswith("wrong at 40 in float32 is off by ")


def test_the_ladder_on_the_emulator_has_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        report_ladder, "matmul", SimpleNamespace(LADDER={"right": matmul}, TENSOR_CORES={"tf32": wrong})
    )
    found = part("ladder")
    report_ladder.run(found)
    assert [(row["rung"], row["share_of_cublas"], row["emulated"]) for row in found.rows] == [("right", None, True)]
    assert found.skipped == ["cuBLAS and the tensor-core rungs' speed: skipped: no GPU"]


def test_steps_are_timed_and_one_with_other_losses_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ladder = dict(report_steps.network.STEP_LADDER)
    ladder["wrong"] = lambda network, x, y, optimizer, masks: 1.5
    monkeypatch.setattr(report_steps.network, "STEP_LADDER", ladder)
    found = part("steps")
    report_steps.run(found)
    rungs = [row["who"] for row in found.rows]
    assert rungs == [*(name for name in ladder if name != "wrong"), "resident"]
    assert found.status == "failed"
    assert "12-8-4, batch 8, wrong: its losses are [1.5, 1.5, 1.5], stage 2's [" in found.error
    assert "PyTorch: skipped: no GPU" in found.skipped
    assert all(row["against"] == {} and row["emulated"] for row in found.rows)


def test_steps_have_their_ratio_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def contenders(torch: Any, parameters: Any, batches: Any, rate: float) -> dict[str, Any]:
        slow = {
            name: report_steps.ours((12, 8, 4), batches, "resident" in name) for name in ("eager", "eager, resident")
        }
        return {name: next(iter(steps.values())) for name, steps in slow.items()}

    monkeypatch.setattr(report_steps, "BACKEND", GPU)
    monkeypatch.setattr(report_steps, "cuda_torch", lambda: "torch")
    monkeypatch.setattr(report_steps, "contenders", contenders)
    found = part("steps", tiny=True)
    report_steps.run(found)
    assert found.status == "ok"
    rows = {row["who"]: row for row in found.rows}
    for mine, theirs in (("graph", "PyTorch eager"), ("resident", "PyTorch eager, resident")):
        assert rows[mine]["against"] == {"eager": pytest.approx(rows[theirs]["median"] / rows[mine]["median"])}
        assert rows[theirs]["against"] == {}


@pytest.mark.parametrize("resident", [False, True])
def test_pytorchs_steps_have_stage_2s_losses(resident: bool) -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(1)
    batches = beside_torch.Batches(random.integers(0, 256, (24, 12), np.uint8), random.integers(0, 4, 24), 8)
    parameters = [random.standard_normal(shape).astype(np.float32) for shape in ((12, 8), (8,), (8, 4), (4,))]
    trainer = beside_torch._Trainer(torch, parameters, batches, report_steps.RATE, False, resident, "cpu")
    assert report_steps.off(trainer, report_steps.expected_losses(parameters, batches, resident), resident) == ""


def test_training_without_the_full_data_takes_the_subset_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = part("training", data_dir=tmp_path / "nowhere")
    report_training.run(found)
    assert found.skipped[0].startswith("mnist: skipped: mnist: missing train-images")
    epoch, summary = found.rows
    assert (epoch["kind"], epoch["dataset"], epoch["epoch"]) == ("epoch", "mnist-subset", 1)
    assert summary["seconds_to_goal"] is None
    assert summary["test_accuracy"] == epoch["test_accuracy"] > 0.2
    assert "warm-up on mnist-subset" in found.facts


def test_time_to_the_goal_is_the_sum_of_the_epochs_until_it_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    accuracies = iter([0.2, 0.9, 0.971, 0.98])

    def train(stage: Any, data: Any, epochs: int, on_epoch: Any) -> None:
        for number in range(1, epochs + 1):
            on_epoch(
                report_training.EpochRecord(number, 0.1, 1.0, None, None, None, 1.0, next(accuracies), 0.5, 1000.0)
            )

    monkeypatch.setattr(report_training, "_run", lambda stage, data, epochs, on_epoch: None)
    data = report_training.limited(report_training.load_dataset("mnist-subset"), 64)
    found = part("training", tiny=False)
    monkeypatch.setattr(report_training, "EPOCHS", 4)
    monkeypatch.setattr(
        report_training,
        "_run",
        lambda stage, some, epochs, note: train(stage, some, epochs, note) if epochs > 2 else None,
    )
    report_training._train(found, data)
    assert found.rows[-1]["seconds_to_goal"] == 1.5
    assert found.rows[-1]["seconds"] == 2.0


# ---- compute-sanitizer and the suite


def test_without_a_gpu_the_sanitizer_is_skipped() -> None:
    found = part("sanitizer")
    report_sanitizer.run(found)
    assert (found.status, found.error) == ("skipped", "no GPU")


def test_what_the_sanitizer_finds_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "memcheck": (86, "Invalid __global__ write of size 4 bytes\n========= ERROR SUMMARY: 1 error\n"),
        "racecheck": (0, "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"),
        "initcheck": (0, "========= ERROR SUMMARY: 0 errors\n"),
        "synccheck": (None, "still at it\n"),
    }

    def run_limited(command: list[str], seconds: float, output: Any) -> int | None:
        assert command[-4:-1] == ["correctness", "--tiny", "--seconds"]
        code, text = said[command[command.index("--tool") + 1]]
        output.write(text)
        return code

    monkeypatch.setattr(report_sanitizer, "BACKEND", GPU)
    monkeypatch.setattr(report_sanitizer, "find", lambda: "/usr/bin/compute-sanitizer")
    monkeypatch.setattr(report_sanitizer, "run_limited", run_limited)
    found = part("sanitizer")
    report_sanitizer.run(found)
    assert found.status == "failed"
    assert "memcheck: ERROR SUMMARY: 1 error; synccheck: stopped after" in found.error
    assert {row["tool"]: row["clean"] for row in found.rows} == {
        "memcheck": False,
        "racecheck": True,
        "initcheck": True,
        "synccheck": False,
    }
    assert "Invalid __global__ write of size 4 bytes" in found.rows[0]["output"]
    monkeypatch.setattr(report_sanitizer, "find", lambda: None)
    missing = part("sanitizer")
    report_sanitizer.run(missing)
    assert missing.error == "compute-sanitizer is neither on the PATH nor in /usr/local/cuda*/bin"


def test_the_suites_failures_and_the_reasons_of_its_skips_are_told(tmp_path: Path) -> None:
    file = tmp_path / "test_three.py"
    file.write_text(
        "import os, pytest\n"
        "def test_right():\n    assert os.environ['GROUNDUP_CUDA'] == 'emulator'\n"
        "def test_wrong():\n    assert 1 == 2\n"
        "def test_elsewhere():\n    pytest.skip('needs two GPUs')\n"
    )
    found = part("suite")
    report_suite.run(found, [str(file), f"--rootdir={tmp_path}"])
    assert (found.status, found.error) == ("failed", "1 passed, 1 failed, 1 skipped")
    (row,) = found.rows
    assert row["failures"] == ["test_three::test_wrong"]
    assert list(row["skips"].values()) == [1]
    assert any("assert 1 == 2" in line for line in row["output"])


def test_a_file_of_tests_that_needs_a_missing_package_is_skipped_and_one_that_is_broken_is_not(tmp_path: Path) -> None:
    (tmp_path / "test_needs.py").write_text("import no_such_package\ndef test_it(): pass\n")
    (tmp_path / "test_fine.py").write_text("def test_it(): pass\n")
    found = part("suite")
    report_suite.run(found, [str(tmp_path), f"--rootdir={tmp_path}"])
    assert (found.status, found.rows[0]["passed"]) == ("ok", 1)
    assert found.rows[0]["skips"] == {"needs the package no_such_package": 1}
    (tmp_path / "test_broken.py").write_text("import shared.no_such_module\n")
    found = part("suite")
    report_suite.run(found, [str(tmp_path), f"--rootdir={tmp_path}"])
    assert (found.status, found.error) == ("failed", "1 passed, 1 failed, 1 skipped")


# ---- all of them together


def command(*arguments: str, out: Path) -> int:
    return gpu_report.main(["--out", str(out), *arguments])


def written(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / gpu_report.JSON_NAME).read_text())
    return document


def test_the_command_writes_one_document_labelled_as_emulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GROUNDUP_CUDA", "emulator")
    assert command("--only", "launches", out=tmp_path) == 0
    document = written(tmp_path)
    assert (document["kind"], document["complete"], document["emulated"]) == ("groundup gpu report", True, True)
    assert list(document["parts"]) == ["device", "launches"]
    assert document["device"]["name"] == "groundup emulator"
    assert document["charts"] == []
    assert document["parts"]["launches"]["budget"] > 0


def test_a_gpu_that_was_asked_for_and_is_not_there_ends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDUP_CUDA", "none")
    assert command(out=tmp_path) == 2
    assert "choose one of gpu, emulator, simulator" in written(tmp_path)["parts"]["device"]["error"]


@pytest.fixture
def endings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let each part's process write this document (None: nothing) and end with this code (None: it was stopped)."""

    def give(**parts: tuple[int | None, dict[str, Any] | None]) -> None:
        def run_limited(command: list[str], seconds: float, output: Any = None) -> int | None:
            code, document = parts[command[command.index("--part") + 1]]
            if document is not None:
                Path(command[command.index("--result") + 1]).write_text(json.dumps(document))
            return code

        monkeypatch.setattr(gpu_report, "run_limited", run_limited)

    return give


FINE = {"status": "ok", "error": "", "rows": [], "emulated": False, "skipped": []}


def test_a_part_that_crashes_or_hangs_costs_only_itself(endings: Callable[..., None], tmp_path: Path) -> None:
    endings(
        device=(0, FINE),
        ladder=(None, FINE | {"status": "running"}),
        launches=(-11, FINE | {"status": "running"}),
        steps=(1, None),
        training=(0, FINE),
    )
    assert command("--only", "ladder,launches,steps,training", out=tmp_path) == 1
    document = written(tmp_path)
    assert document["complete"] is True
    assert {name: each["status"] for name, each in document["parts"].items()} == {
        "device": "ok",
        "ladder": "out of time",
        "launches": "error",
        "steps": "error",
        "training": "ok",
    }
    assert document["parts"]["launches"]["error"] == "its process ended with code -11"


def test_the_document_is_written_after_every_part(
    endings: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[list[str]] = []
    write = gpu_report.write_json
    monkeypatch.setattr(
        gpu_report, "write_json", lambda path, document: seen.append(list(document["parts"])) or write(path, document)
    )
    endings(device=(0, FINE), ladder=(0, FINE))
    command("--only", "ladder", out=tmp_path)
    assert seen == [["device"], ["device", "ladder"], ["device", "ladder"]]


def test_an_interrupt_keeps_the_parts_that_were_done(
    endings: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endings(device=(0, FINE))
    inside = gpu_report._in_process

    def interrupted(name: str, budget: float, given: argparse.Namespace) -> dict[str, Any]:
        if name == "ladder":
            raise KeyboardInterrupt
        return inside(name, budget, given)

    monkeypatch.setattr(gpu_report, "_in_process", interrupted)
    assert command("--only", "ladder", out=tmp_path) == 2
    assert (written(tmp_path)["complete"], list(written(tmp_path)["parts"])) == (False, ["device"])


def test_the_time_is_shared_out_and_fits(endings: Callable[..., None], tmp_path: Path) -> None:
    assert sum(gpu_report.SHARES.values()) < 600
    endings(**dict.fromkeys(gpu_report.SHARES, (0, FINE)))
    assert command("--seconds", "100", out=tmp_path) == 0
    budgets = [each["budget"] for each in written(tmp_path)["parts"].values()]
    assert budgets[0] < 5
    assert budgets[-1] == pytest.approx(100, abs=1)  # nothing before it took any


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="only: expected some of device, correctness, ladder"):
        command("--only", "ladders", out=tmp_path)


def test_only_a_gpus_results_are_recorded(tmp_path: Path) -> None:
    (tmp_path / gpu_report.JSON_NAME).write_text("{}")
    (tmp_path / "a.png").write_text("")
    document = {"emulated": False, "charts": [{"file": "a.png"}]}
    folder = gpu_report.record(tmp_path, document, tmp_path / "kept")
    assert {path.name for path in folder.iterdir()} == {gpu_report.JSON_NAME, "a.png"}
    for emulated in (True, None):
        with pytest.raises(ValueError, match="not results of a GPU"):
            gpu_report.record(tmp_path, document | {"emulated": emulated}, tmp_path / "kept")


@pytest.mark.skipif(sys.platform == "win32", reason="kills a group of processes, which Windows does not have")
def test_what_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    code = f"import subprocess, time; subprocess.Popen(['sh', '-c', 'sleep 2; touch {tmp_path}/alive']); time.sleep(60)"
    begin = time.monotonic()
    assert report_process.run_limited([sys.executable, "-c", code], 1.0) is None
    assert time.monotonic() - begin < 10
    time.sleep(2)
    assert not (tmp_path / "alive").exists()
    assert report_process.run_limited([sys.executable, "-c", "raise SystemExit(7)"], 10.0) == 7


# ---- the device's clock


def test_the_device_sleeps_until_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    class Event:
        def record(self) -> None: ...
        def synchronize(self) -> None: ...

        def query(self) -> bool:
            return slept[-1] < 0.008  # the device woke up before the host had filled the queue

        def elapsed_time(self, other: "Event") -> float:
            return 6.0

    sleeper = report_timing.Sleeper()
    monkeypatch.setattr(report_timing, "BACKEND", GPU)
    monkeypatch.setattr(report_timing, "cuda", SimpleNamespace(event=Event))
    monkeypatch.setattr(report_timing.Sleeper, "lie_down", lambda self: slept.append(self.seconds))
    assert report_timing.device_sample(lambda: None, 3, sleeper) == 0.002
    assert slept == [0.002, 0.004, 0.008]
    assert report_timing.device_sample(lambda: None, 3, sleeper) == 0.002
    assert slept[3:] == [0.008]


def test_candidates_are_timed_in_turns_after_a_warm_up() -> None:
    log: list[str] = []
    candidates = {"a": lambda: log.append("a"), "b": lambda: log.append("b")}
    measured = report_timing.measure_device(candidates, repeats=3, minimum_sample=0.0)
    assert log == ["a", "a", "b", "b"] + ["a", "b"] * 3
    assert measured["a"].samples == 3


def test_the_sleeping_kernel_comes_back() -> None:
    report_timing.sleep[1, 1](np.int64(2))


# ---- charts


def step(who: str, median: float, batch: int, **against: float) -> dict[str, Any]:
    return {
        "network": [784, 128, 10], "batch": batch, "who": who, "resident": "resident" in who, "median": median,
        "against": against,
    }  # fmt: skip


def made_up(emulated: bool = False) -> dict[str, Any]:
    """A document with numbers that nobody measured."""
    ladder = [
        {"size": size, "precision": precision, "rung": rung, "tflops": 48 * share, "share_of_cublas": share}
        for size in (1024, 4096)
        for precision, rung, share in (("float32", "cuBLAS", 1.0), ("float32", "naive", 0.01),
                                       ("float32", "warp_tiled", 0.93), ("bf16", "mma", 0.5))
    ]  # fmt: skip
    steps = [
        each
        for batch in (64, 1024)
        for each in (
            step("graph", 7e-5, batch, eager=4.4, graph=1.2),
            step("PyTorch eager", 3.1e-4, batch),
            step("resident", 1.3e-5, batch, eager=27.0, graph=4.5),
            step("PyTorch graph, resident", 6e-5, batch),
        )
    ]
    training = [
        {"kind": "epoch", "dataset": name, "epoch": i, "test_accuracy": top - 0.1 / i, "training_seconds": 0.02 * i}
        for name, top in (("mnist", 0.98), ("fashion-mnist", 0.89))
        for i in (1, 2, 3)
    ]
    launches = [{"kind": kind, "host": {"median": us * 1e-6}} for kind, us in (("empty", 4.0), ("six arrays", 28.0),
                                                                            ("replay of 20", 0.3))]  # fmt: skip
    rows = {"ladder": ladder, "steps": steps, "launches": launches, "training": training}
    return {
        "emulated": emulated,
        "date": "2026-01-31T00:00:00",
        "device": {"name": "NVIDIA T4", "cards": [{"driver": "580.1"}]},
        "versions": {"numba": "0.68.1"},
        "parts": {name: {"rows": each} for name, each in rows.items()},
    }


def test_charts_come_with_titles_and_a_sentence_for_who_cannot_see_them(tmp_path: Path) -> None:
    charts = {chart["file"]: chart for chart in report_charts.draw(made_up(), tmp_path)}
    assert set(charts) == {
        f"gpu_{name}.{kind}" for name in ("ladder", "steps", "launches", "training") for kind in ("png", "svg")
    }
    assert charts["gpu_ladder.png"]["title"] == "The matmul ladder: warp_tiled reaches 93% of cuBLAS at 4,096"
    assert charts["gpu_ladder.png"]["alt"] == (
        "Share of cuBLAS's speed at 4,096 by 4,096: naive 1.0%, warp_tiled 93.0%, mma bf16 50.0%."
    )
    assert charts["gpu_steps.png"]["title"] == "A step at batch 64: 27 times PyTorch's speed, 4.5 times its graph's"
    assert "resident 13 µs" in charts["gpu_steps.png"]["alt"]
    assert "six arrays 28 µs" in charts["gpu_launches.png"]["alt"]
    assert "mnist ends at 94.67%" in charts["gpu_training.png"]["alt"]
    for name in charts:
        if name.endswith(".png"):
            pixels = imread(tmp_path / name)[..., :3]
            edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
            assert (edges == 1).all(), f"ink at the edge of {name}"


def test_no_time_of_the_emulator_is_drawn(tmp_path: Path) -> None:
    (png, _) = report_charts.draw(made_up(emulated=True), tmp_path)
    assert png["file"] == "gpu_training.png"
    assert png["title"] == "mnist: 94.7% after 3 epochs"
    assert png["alt"].startswith("Test accuracy against epochs, emulated on the CPU: ")
    assert "emulated on the CPU" in (tmp_path / "gpu_training.svg").read_text()


def test_the_poison_is_nan_in_both_dtypes() -> None:
    for dtype in ("float32", "float64"):
        assert np.isnan(report_correctness.poisoned((3, 2), dtype).copy_to_host()).all()
        values = report_correctness.random((5, 4), dtype)
        np.testing.assert_array_equal(asarray(values, dtype).copy_to_host(), values)
