"""The parts of the GPU report about convolutional networks: what they measure, and its ratio to PyTorch's."""

import pytest

from groundup.gpu_report import networks
from groundup.gpu_report.part import BACKEND, Part
from groundup.gpu_report.report_parts import PARTS
from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import summarise
from shared.bench.on_gpu import gpu_plan
from shared.bench.on_gpu.gpu_plan import GpuPlan
from tests.wide import wide

pytestmark = pytest.mark.skipif(BACKEND.name != "emulator", reason="looks at what the report says without a GPU")


def part() -> Part:
    return Part(GpuPlan(30.0, tiny=True))


def test_contenders_of_a_network_have_their_ratio_to_pytorchs_best_layout() -> None:
    def row(stage: str, variant: str, seconds: float, name: str = "lenet5, batch 64") -> BenchRow:
        precision = "tf32" if "TF32" in variant else "float32"
        measured = summarise([seconds])
        return BenchRow("step", stage, name, precision, (784, 10), 0, measured, variant=variant, samples=64)

    rows = [
        row("pytorch", "graph on the GPU", 3e-4),
        row("pytorch", "graph channels-last on the GPU", 2e-4),
        row("pytorch", "graph TF32 on the GPU", 1.5e-4),
        row("pytorch", "graph on the GPU", 9e-4, "lenet5, batch 128"),
        row("stage4_numba_cuda", "graph", 1e-4),
    ]
    found = [each.row for each in networks.beside_pytorch(rows, "lenet5") if isinstance(each, gpu_plan.Found)]
    theirs, last, rounded, _, ours = (each for each in found if each is not None)
    assert [each["who"] for each in (theirs, last, rounded, ours)] == [
        *("PyTorch graph", "PyTorch graph channels-last", "PyTorch graph TF32", "graph"),
    ]
    assert ours["against"] == {"graph": pytest.approx(2.0), "graph TF32": pytest.approx(1.5)}
    assert (ours["samples_per_second"], ours["precision"]) == (pytest.approx(64e4), "float32")
    assert (rounded["against"], rounded["precision"]) == ({}, "tf32")
    memory = BenchRow("memory", "pytorch", "lenet5, batch 32", "float32", (784, 10), variant="on the GPU", memory=7)
    (held,) = networks.beside_pytorch([memory], "lenet5")
    assert isinstance(held, gpu_plan.Found)
    assert held.row is not None
    assert (held.row["who"], held.row["memory"]) == ("PyTorch", 7)


@wide
def test_networks_run_on_the_emulator_at_tiny_sizes_and_say_so() -> None:
    found = part()
    PARTS["networks"](found)
    assert (found.status, found.error) == ("ok", "")
    assert found.skipped == ["PyTorch and cuDNN: skipped: no GPU"]
    assert {row["emulated"] for row in found.rows} == {True}
    assert [row["kind"] for row in found.rows[:3]] == ["step", "inference", "inference"]
    assert {row["part"] for row in found.rows[3:]} == {"forward", "backward"}


@wide
def test_a_recipe_is_trained_and_summed_up() -> None:
    found = part()
    PARTS["network_training"](found)
    assert (found.status, found.error) == ("ok", "")
    epoch, summary = found.rows
    assert (epoch["kind"], epoch["model"], epoch["dataset"], epoch["epoch"]) == ("epoch", "lenet5", "mnist-subset", 1)
    assert summary["samples"] == networks.TINY_IMAGES
    assert (summary["seconds"], summary["seconds_to_goal"]) == (epoch["training_seconds"], None)
