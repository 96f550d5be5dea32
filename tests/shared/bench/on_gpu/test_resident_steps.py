"""shared.bench.on_gpu.resident_steps: a stage and PyTorch take the steps of stage 2, and wrong losses are not timed."""

from statistics import fmean

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds.steps import LEARNING_RATE, Case, expected_losses, start_parameters
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.on_gpu import resident_steps
from shared.bench.peers import pytorch_device
from tests.wide import wide

CASE = Case((12, 8, 4), 8, "float32")
QUICK = Effort(repeats=1, minimum_sample=0.0, threads=1)


@wide
def test_a_stage_with_resident_data_has_a_row_for_one_step_and_others_have_none() -> None:
    stages = [contract.load_stage("2"), contract.load_stage("4")]
    rows = resident_steps.resident_rows(stages, cases=[CASE], effort=QUICK, steps=4)
    row, *below = (each for each in rows if each.stage != "pytorch")  # which is there where there is a GPU
    assert [each.variant for each in below] == ["resident, graph"] * gpu.on_gpu(stages[1])
    assert (row.stage, row.variant, row.name, row.skipped) == (stages[1].name, "resident", "12-8-4, batch 8", None)
    assert row.measurement is not None
    assert row.measurement.calls % 4 == 0  # four steps in a call, and the time of one


def test_a_call_takes_the_steps_that_a_stage_takes_between_two_readings() -> None:
    order = contract.load_part("stage4_numba_cuda", "plans.resident_host")
    for batch in (1, 64, 200, 1024, 100_000):
        assert resident_steps.steps_in_a_call(batch) == order.steps_between_readings(batch)


@wide
def test_a_contender_with_other_losses_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_steps, "expected_losses", lambda layer_sizes, batches: [7.0])
    rows = list(resident_steps.resident_rows([contract.load_stage("4")], cases=[CASE], effort=QUICK, steps=4))
    assert rows
    for row in rows:
        assert row.measurement is None
        assert row.skipped is not None
        assert row.skipped.endswith("but stage 2 in float64 has 7; not timed")


@pytest.mark.parametrize(
    "way",
    [pytorch_device.Way(), pytorch_device.FUSED, pytest.param(pytorch_device.COMPILED, marks=wide)],
    ids=lambda way: way.name,
)
def test_pytorchs_steps_have_stage_2s_losses(way: pytorch_device.Way, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr(pytorch_device, "captured", lambda torch, step, kept: step)
    random = np.random.default_rng(1)
    images, labels = random.integers(0, 256, (24, 12), np.uint8), random.integers(0, 4, 24)
    start = start_parameters(CASE.layer_sizes, "float32")
    take = pytorch_device.resident_steps(torch, start, images, labels, 8, LEARNING_RATE, way, "cpu")
    x = images.astype(np.float32) / np.float32(255)
    expected = expected_losses(CASE.layer_sizes, [(x[i : i + 8], labels[i : i + 8]) for i in (0, 8, 16)])
    assert take(3) == pytest.approx(fmean(expected), rel=1e-5)
