"""The part of the GPU report about PyTorch at its fastest: which steps and ways, and their ratios to it."""

from collections.abc import Iterator
from typing import Any

import pytest

from groundup.gpu_report import fastest_pytorch
from groundup.gpu_report.part import BACKEND, Part
from groundup.gpu_report.report_parts import PARTS
from shared.bench.measuring import gpu
from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import summarise
from shared.bench.on_gpu.gpu_plan import GpuPlan
from shared.bench.peers.pytorch_device import FASTEST_DENSE_WAYS, FASTEST_MODEL_WAYS

pytestmark = pytest.mark.skipif(BACKEND.name != "emulator", reason="looks at what the report says without a GPU")


def test_without_a_gpu_the_part_says_what_is_missing() -> None:
    found = Part(GpuPlan(30.0, tiny=True))
    PARTS["fastest_pytorch"](found)
    assert (found.status, found.rows, found.skipped) == ("ok", [], ["PyTorch: skipped: no GPU"])


def test_every_step_is_measured_beside_the_graph_the_fused_and_the_compiled_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def row(stage: str, variant: str, seconds: float, case: Any) -> BenchRow:
        shape, measured = tuple(case.layer_sizes), summarise([seconds])
        return BenchRow("step", stage, case.name, "float32", shape, 0, measured, variant=variant, samples=case.batch)

    def rows(stages: Any, *, cases: Any, effort: Any, ways: Any) -> Iterator[BenchRow]:
        for case in cases:
            assert ways == (FASTEST_MODEL_WAYS if case.model else FASTEST_DENSE_WAYS)
            for place, way in enumerate(ways):
                yield row("pytorch", f"{way.name} on the GPU", 4e-4 - 1e-5 * place, case)
            yield row("stage4_numba_cuda", "graph", 1e-4, case)

    monkeypatch.setattr(gpu, "on_gpu", lambda stage: True)
    monkeypatch.setattr(gpu, "cuda_torch", lambda: "torch")
    monkeypatch.setattr(fastest_pytorch, "resident_rows", rows)
    monkeypatch.setattr(fastest_pytorch, "step_rows", rows)
    found = Part(GpuPlan(30.0))
    PARTS["fastest_pytorch"](found)
    assert (found.status, found.error) == ("ok", "")
    ours = [each for each in found.rows if each["who"] == "graph"]
    dense, models = ([each for each in ours if ("model" in each) is model] for model in (False, True))
    assert [(each["network"], each["batch"]) for each in dense] == [
        (list(sizes), batch) for sizes in ((784, 128, 10), (784, 512, 512, 10)) for batch in (64, 256, 1024)
    ]
    assert [(each["model"], each["batch"]) for each in models] == [
        *(("lenet5", 64), ("fashion_cnn", 64), ("residual_cnn", 64)),
    ]
    assert all(list(each["against"]) == ["graph", "fused", "compiled"] for each in ours)
    assert dense[0]["against"]["compiled"] == pytest.approx(3.8)
    assert models[0]["against"]["compiled"] == pytest.approx(3.5)  # of either layout the faster
