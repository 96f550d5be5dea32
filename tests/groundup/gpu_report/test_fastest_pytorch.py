"""The part of the GPU report about PyTorch at its fastest: which steps and ways, and their ratios to it."""

import pytest

from groundup.gpu_report.part import BACKEND, Part
from groundup.gpu_report.report_parts import PARTS
from shared.bench.on_gpu.gpu_plan import GpuPlan

pytestmark = pytest.mark.skipif(BACKEND.name != "emulator", reason="looks at what the report says without a GPU")


def test_without_a_gpu_the_part_says_what_is_missing() -> None:
    found = Part(GpuPlan(30.0, tiny=True))
    PARTS["fastest_pytorch"](found)
    assert (found.status, found.rows, found.skipped) == ("ok", [], ["PyTorch: skipped: no GPU"])
