"""shared.bench.kinds.step_parts: that the parts make up the step, what they cost, and who is timed on them."""

from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.bench.kinds import step_parts
from shared.bench.kinds.steps import Case, batch_of
from shared.bench.measuring.compared_candidates import Effort
from tests.shared.bench.kinds.test_operations import numpy_as

SMALL = Case((6, 5, 4), 3, "float64")
DEEP = Case((6, 5, 4, 3), 7, "float64")
NUMPY, C, CUDA = "stage2_numpy", "stage3_c", "stage4_numba_cuda"

NAMES = [
    "dense 1 forward",
    "relu forward",
    "dense 2 forward",
    "softmax cross-entropy",
    "softmax cross-entropy backward",
    "dense 2 backward",
    "relu backward",
    "dense 1 backward",
    "SGD step",
    "whole step",
]


def rows_of(stages: list[contract.Stage], case: Case = SMALL, **more: Any) -> list[step_parts.BenchRow]:
    settings: dict[str, Any] = {"effort": Effort(1, 4.0, 0.0, 1), **more}
    return list(step_parts.part_rows(stages, cases=[case], **settings))


def test_parts_are_named_in_the_order_of_a_step() -> None:
    assert step_parts.part_names(2) == NAMES
    assert step_parts.part_names(1) == [
        *("dense 1 forward", "softmax cross-entropy", "softmax cross-entropy backward", "dense 1 backward"),
        *("SGD step", "whole step"),
    ]
    assert step_parts.part_names(3)[:5] == [
        *("dense 1 forward", "relu 1 forward", "dense 2 forward", "relu 2 forward", "dense 3 forward")
    ]
    assert step_parts.part_names(3)[7:12] == [
        *("dense 3 backward", "relu 2 backward", "dense 2 backward", "relu 1 backward", "dense 1 backward")
    ]


@pytest.mark.parametrize("case", [SMALL, DEEP], ids=lambda case: case.name)
def test_the_parts_one_after_the_other_give_the_gradients_of_the_network(stage: contract.Stage, case: Case) -> None:
    x, y = batch_of(case)
    parts, gradients = step_parts.parts_of(stage, case, x, y)
    assert list(parts) == step_parts.part_names(len(case.layer_sizes) - 1)
    network = stage.network.Network(list(case.layer_sizes), dtype="float64")
    expected = network.gradients(stage.arrays.asarray(x, "float64"), y)
    for again in range(3):  # they write into the same memory each time, and the weights do not move
        assert len(gradients) == len(expected)
        for got, right in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(stage.arrays.to_host(got), stage.arrays.to_host(right), rtol=1e-9, atol=1e-12)
        for part in reversed(parts.values()) if again else parts.values():
            part.call()


def test_every_part_of_every_stage_is_timed(stage: contract.Stage) -> None:
    rows = rows_of([stage])
    emulated = contract.is_emulated(stage.name)
    assert [row.part for row in rows] == NAMES
    for row in rows:
        assert (row.kind, row.stage, row.name, row.skipped) == ("part", stage.name, "6-5-4, batch 3", None)
        assert (row.shape, row.samples, row.emulated, row.clock) == ((6, 5, 4), 3, emulated, "wall")
        assert row.seconds is not None
        assert row.seconds > 0
        if stage.name == NUMPY:
            assert (row.reference, row.ratio) == ("stage 2, float64", 1.0)
        elif emulated:
            assert (row.reference, row.ratio) == ("nothing: emulated on the CPU", None)


@pytest.mark.parametrize("case", [SMALL, DEEP], ids=lambda case: case.name)
def test_the_work_of_the_parts_is_that_of_the_whole_step(case: Case) -> None:
    parts, _ = step_parts.parts_of(contract.load_stage("2"), case, *batch_of(case))
    whole = parts.pop(step_parts.WHOLE)
    assert sum(part.flops for part in parts.values()) == whole.flops == case.flops
    assert sum(part.bytes for part in parts.values()) == whole.bytes


def test_each_part_has_its_own_work() -> None:
    parts, _ = step_parts.parts_of(contract.load_stage("2"), SMALL, *batch_of(SMALL))
    work = {name: (part.flops, part.bytes // 8) for name, part in parts.items()}
    assert work["dense 1 forward"] == (2 * 3 * 6 * 5, 18 + 30 + 5 + 15)
    assert work["relu forward"] == (0, 15 + 15)
    assert work["softmax cross-entropy"] == (0, 12 + 3 + 1)
    assert work["dense 2 backward"] == (2 * 2 * 3 * 5 * 4, 15 + 12 + 20 + 15 + 20 + 4)
    assert work["relu backward"] == (0, 15 + 15 + 15)
    assert work["dense 1 backward"] == (2 * 3 * 6 * 5, 18 + 15 + 30 + 5)
    assert work["SGD step"] == (0, 3 * (30 + 5 + 20 + 4))


def test_a_stage_whose_parts_make_no_step_is_not_timed() -> None:
    def wrong(grad: Any, z: Any, output: Any, out: Any = None) -> Any:
        return np.array(grad) if out is None else out

    rows = rows_of([contract.load_stage("2"), numpy_as(C, activations={"relu_backward": wrong})])
    refused = [row for row in rows if row.stage == C]
    assert [row.part for row in refused] == NAMES
    for row in refused:
        assert (row.measurement, row.ratio, row.against) == (None, None, {})
        assert row.skipped is not None
        assert row.skipped.startswith("gradient 1 of the parts, index (")
        assert row.skipped.endswith("; not timed")
    assert all(row.measurement for row in rows if row.stage == NUMPY)
