"""The parts of the GPU report without a GPU: on the emulator at tiny sizes, and what they say where something fails."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from groundup.gpu_report import report_parts
from groundup.gpu_report.part import BACKEND, Part
from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import summarise
from shared.bench.on_gpu import gpu_plan
from shared.bench.on_gpu.gpu_plan import GpuPlan
from shared.checks.rungs import RungCheck
from shared.checks.tolerance import compare, failed
from shared.machine.processes import Finished
from tests.wide import wide

pytestmark = pytest.mark.skipif(BACKEND.name != "emulator", reason="looks at what the report says without a GPU")

GPU = SimpleNamespace(emulated=False, name="gpu", reason="NVIDIA T4, compute capability 7.5")


def part(file: Path | None = None, **plan: Any) -> Part:
    return Part(GpuPlan(30.0, **({"tiny": True} | plan)), file)


def test_every_row_of_the_emulator_says_so(tmp_path: Path) -> None:
    found = part(tmp_path / "part.json")
    report_parts.PARTS["launches"](found)
    document = json.loads((tmp_path / "part.json").read_text())
    assert document["emulated"] is True
    assert [row["kind"] for row in document["rows"]] == ["empty", "six scalars", "six arrays", "looked up"]
    for row in document["rows"]:
        assert row["emulated"] is True
        assert 0 < row["host"]["median"] <= row["done"]["median"]
    assert document["skipped"] == ["replay: skipped: no GPU"]


def test_a_trial_kernel_that_fails_ends_the_report_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = SimpleNamespace(works=False, said="AttributeError: numpy has no attribute row_stack")
    monkeypatch.setattr(report_parts, "trial", lambda what: answer)
    monkeypatch.setattr(report_parts, "BACKEND", GPU)
    found = part()
    report_parts.device(found)
    assert (found.status, found.rows) == ("error", [])
    assert found.error == (
        "a trial kernel does not run on NVIDIA T4, compute capability 7.5: "
        "AttributeError: numpy has no attribute row_stack"
    )


def test_a_gpu_that_is_not_found_is_no_reason_to_rehearse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rehearsal would take all the time for which the GPU is lent."""
    monkeypatch.setattr(report_parts, "nvidia_gpus", lambda: [{"name": "NVIDIA H100"}])
    monkeypatch.delenv("GROUNDUP_CUDA", raising=False)
    found = part()
    report_parts.device(found)
    assert found.status == "error"
    assert found.error.startswith("this machine has a GPU (NVIDIA H100), but ")
    assert found.error.endswith("GROUNDUP_CUDA=emulator rehearses")


def test_a_wrong_rung_fails_the_part_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [
        RungCheck("matmul", "wrong", "float32", lambda: [failed("matmul", "raised RuntimeError: no")]),
        RungCheck("matmul", "right", "float32", lambda: [compare("matmul", [1.0], [1.0], "float32", 1)]),
    ]
    monkeypatch.setattr(report_parts, "rung_checks", lambda stage, reference, dtype, sizes: iter(checks))
    monkeypatch.setattr(report_parts, "image_rung_checks", lambda stage, reference, dtype, tiny: iter(()))
    found = part()
    report_parts.correctness(found)
    assert found.status == "failed"
    assert [(row["rung"], row["ok"]) for row in found.rows] == [("wrong", False), ("right", True)]
    assert found.error == "matmul wrong: matmul: raised RuntimeError: no; no rounding explains that"
    assert found.skipped[0].startswith("equivalence: skipped: ")


def test_a_part_without_time_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def right() -> list[Any]:
        clock[0] += 20.0
        return [compare("matmul", [1.0], [1.0], "float32", 1)]

    clock = [0.0]
    monkeypatch.setattr(gpu_plan.time, "monotonic", lambda: clock[0])
    checks = [RungCheck("matmul", name, "float32", right) for name in ("first", "second", "third")]
    monkeypatch.setattr(report_parts, "rung_checks", lambda stage, reference, dtype, sizes: iter(checks))
    monkeypatch.setattr(report_parts, "image_rung_checks", lambda stage, reference, dtype, tiny: iter(()))
    found = Part(GpuPlan(30.0, tiny=True, begin=0.0))
    report_parts.correctness(found)
    assert [row["rung"] for row in found.rows] == ["first", "second"]
    assert (found.status, found.error) == ("out of time", "there was no time left")
    assert found.skipped == ["the other checks: skipped: there was no time left"]


def test_kernels_are_compiled_side_by_side_before_they_are_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    answers = [Finished(0, 'a warning\n{"line": "5 kernels", "compiled": 5, "seconds": 2.5}\n')]
    answers.append(Finished(1, "", "Traceback\nKeyError: no"))

    def run(command: list[str], seconds: float, **settings: Any) -> Finished:
        assert 20 < float(command[-1]) < seconds <= 30  # nearly all that the part has
        asked.append(command[-3:-1])
        return answers.pop(0)

    monkeypatch.setattr(report_parts.processes, "run", run)
    found = part()
    report_parts.compile_kernels(found)
    assert (asked, found.status) == ([], "skipped")  # the emulator
    for module in ("part", "report_parts"):
        monkeypatch.setattr(f"groundup.gpu_report.{module}.BACKEND", GPU)
    found, wrong = (Part(GpuPlan(30.0), report=["ladder", "training"]) for _ in range(2))
    report_parts.compile_kernels(found)
    assert asked == [["groundup.compiling.precompile", "ladder,training"]]
    assert (found.status, found.rows) == ("ok", [{"compiled": 5, "seconds": 2.5}])
    report_parts.compile_kernels(wrong)
    assert (wrong.status, wrong.error) == ("error", "nothing was compiled: KeyError: no")


def test_a_wrong_result_fails_a_measuring_part(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [gpu_plan.Found("fine", {"a": 1}), gpu_plan.Found(wrong="b: off; not timed"), gpu_plan.LeftOut("c", "why")]
    monkeypatch.setitem(gpu_plan.PARTS, "ladder", lambda plan: iter(found))
    kept = part()
    report_parts.PARTS["ladder"](kept)
    assert (kept.status, kept.error) == ("failed", "b: off; not timed")
    assert kept.skipped == ["c: skipped: why"]
    assert kept.rows == [{"a": 1, "emulated": True}]


def test_a_group_that_raises_is_wrong_and_the_next_one_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def step_rows(stages: Any, cases: Any, effort: Any) -> Any:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(gpu_plan, "step_rows", step_rows)
    kept = part()
    report_parts.PARTS["steps"](kept)
    assert (kept.status, kept.error) == ("failed", "12-8-4, batch 8: raised RuntimeError: CUDA out of memory")
    assert [row["who"] for row in kept.rows] == ["resident"]


def ladder_row(**more: Any) -> BenchRow:
    values: dict[str, Any] = {"measurement": summarise([0.002]), "ratio": 2.0, "flops": 2 * 10**9}
    values |= {"reference": "cuBLAS through PyTorch 2.11.0, tf32"}
    return BenchRow("ladder", "stage4_numba_cuda", "mma", "tf32", (1000,) * 3, **(values | more))


def test_a_rung_has_its_share_of_cublas_and_cublas_its_own_row() -> None:
    found = gpu_plan._ladder_row(ladder_row())
    assert isinstance(found, gpu_plan.Found)
    assert found.row is not None
    assert found.line == "1000, tf32, mma: 1 TFLOP/s, 0.500 of cuBLAS"
    assert (found.row["share_of_cublas"], found.row["reference"]) == (0.5, "PyTorch 2.11.0")
    assert gpu_plan._cublas_row(ladder_row()) == {
        "size": 1000, "precision": "tf32", "reference": "PyTorch 2.11.0", "rung": "cuBLAS", "tflops": 2.0,
        "share_of_cublas": 1.0, "median": 0.001,
    }  # fmt: skip
    assert gpu_plan._cublas_row(ladder_row(reference="NumPy a @ b, float32")) is None
    wrong = gpu_plan._ladder_row(ladder_row(measurement=None, skipped="mma: off; not timed"))
    assert wrong == gpu_plan.Found(wrong="mma at 1000 in tf32: mma: off; not timed")
    slow = gpu_plan._ladder_row(ladder_row(measurement=None, skipped="one call would take about 2.0 s"))
    assert slow == gpu_plan.LeftOut("mma at 1000 in tf32", "one call would take about 2.0 s")


def test_steps_have_their_ratio_to_pytorch() -> None:
    def row(stage: str, variant: str, seconds: float) -> BenchRow:
        shape = (784, 128, 10)
        measured = summarise([seconds])
        return BenchRow(
            "step", stage, "784-128-10, batch 64", "float32", shape, 0, measured, variant=variant, samples=64
        )

    rows = [row("stage4_numba_cuda", "graph", 1e-4), row("pytorch", "eager on the GPU", 3e-4)]
    ours, theirs = (found.row for found in gpu_plan.beside_pytorch(rows) if isinstance(found, gpu_plan.Found))
    assert ours is not None
    assert theirs is not None
    assert (ours["who"], ours["batch"], ours["resident"]) == ("graph", 64, False)
    assert ours["against"] == {"eager": pytest.approx(3.0)}
    assert (theirs["who"], theirs["against"]) == ("PyTorch eager", {})


@wide
def test_training_without_the_full_data_takes_the_subset_and_says_so(tmp_path: Path) -> None:
    found = part(data_dir=tmp_path / "nowhere")
    report_parts.PARTS["training"](found)
    assert found.skipped[0].startswith("mnist: skipped: mnist: missing train-images")
    epoch, summary = found.rows
    assert (epoch["kind"], epoch["dataset"], epoch["epoch"]) == ("epoch", "mnist-subset", 1)
    assert summary["seconds_to_goal"] is None
    assert summary["test_accuracy"] == epoch["test_accuracy"] > 0.2
