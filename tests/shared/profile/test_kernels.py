"""Listening to stage 4 on the emulator: every launch and copy is told once, with the work that it does."""

from __future__ import annotations

from typing import Any

import pytest

from shared.bench.kinds.steps import Case
from shared.contract import Stage, is_emulated, load_stage
from shared.profile import measure
from shared.profile.measure import Effort
from shared.profile.python_step import PythonStep
from shared.profile.roofs import Roofs
from tests.shared.profile.test_listening import LAYERED
from tests.stages import REASONS
from tests.wide import widely

SMALL = Case((6, 5, 4), 3, "float64")
DEEP = Case((6, 5, 4, 3), 3, "float64")
ROOFS = Roofs("stage3_c", 1, {"float64": 1e9}, ((10**9, 1e9),), ((10**9, 1e9),))


@pytest.fixture(scope="module")
def stage() -> Stage:
    if reason := REASONS["stage4_numba_cuda"]:
        pytest.skip(reason)
    return load_stage("4")


def listener(stage: Stage, case: Case) -> Any:
    return measure.listener_of(stage, case)


def test_a_stack_of_dense_layers_takes_a_few_kernels(stage: Stage) -> None:
    found = [(each.layer, each.direction, each.name) for each in listener(stage, SMALL).operations]
    assert [name for _, _, name in found if name.startswith("copy")] == ["copy to device", "copy to host"]
    assert [each for each in found if not each[2].startswith("copy")] == [
        ("1", "forward", "forward_partial: dense"),
        ("1, 3", "both", "head: bias + relu, dense, loss, gradient, dx"),
        ("1, 3", "update", "update: dW, db, SGD"),
    ]


@pytest.mark.parametrize("case", widely([pytest.param(each, id=each.name) for each in (SMALL, DEEP, LAYERED)]))
def test_the_work_of_all_launches_is_that_of_the_plain_operations_together(stage: Stage, case: Case) -> None:
    """But for softmax, which is worked out once for the loss and its gradient."""
    plain = sum(each.flops for each in PythonStep(load_stage("2"), case).operations)
    once = 4 * case.batch * case.layer_sizes[-1]
    assert sum(each.flops for each in listener(stage, case).operations) == plain - once


@pytest.mark.parametrize("case", widely([pytest.param(each, id=each.name) for each in (SMALL, LAYERED)]))
def test_a_noted_step_computes_what_a_plain_one_does(stage: Stage, case: Case) -> None:
    plain, noted = (listener(stage, case) for _ in range(2))
    for each in (plain, noted):
        each._optimizer.learning_rate = 0.1
        each.step()  # sends the new rate to the device
    for _ in range(3):
        plain.step()
        total, spans = noted.noted_step()
        assert len(spans) == len(noted.operations)
        assert sum(seconds for _, seconds in spans) <= total
    assert noted.step() == plain.step()
    assert noted._update.launch.__qualname__ == "Update.launch"


def test_nothing_is_said_about_the_roofs_of_an_emulated_gpu(stage: Stage) -> None:
    if not is_emulated(stage.name):
        pytest.skip("a GPU is here")
    found = measure.profile(stage, SMALL, 1, ROOFS, Effort(2, 5.0))
    assert (found.emulated, found.clock) == (True, "wall")
    assert {(each.share_of_peak, each.bound.share, each.bound.roof) for each in found.operations} == {
        (None, None, "emulated")
    }
