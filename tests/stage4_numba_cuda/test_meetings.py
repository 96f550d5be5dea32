"""The barriers between the persistent kernel's blocks, as the host sees them: arrivals are counted on from launch to
launch, and blocks that gave up are told, also where an interruption came between.

What a barrier leaves that gave up, these tests write themselves: the numbers of `meetings`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stage4_numba_cuda.backend import BACKEND
from stage4_numba_cuda.plans import cuda_graphs, persistent
from tests.stage4_numba_cuda.test_persistent import STAGE, _asked_for, run_of, samples
from tests.wide import wide

pytestmark = [wide] if BACKEND.name == "emulator" else []  # it compiles the kernel for twenty seconds

__all__ = ["_asked_for"]


@pytest.mark.parametrize("before", [2**31 - 4, 2**31 - 14, -3], ids=["half way round", "a little later", "round"])
def test_arrivals_at_barriers_are_counted_from_launch_to_launch_and_go_round(before: int) -> None:
    run, other = run_of([70, 20, 3]), run_of([70, 20, 3])  # four blocks
    for each in (run, other):
        each.begin_epoch(np.arange(run.count))
    losses = [other.take(0, [0.1], step)[0] for step in range(3)]
    plan = persistent.plan_of(run.network, run.network.plans.mlp_memory(run.network, run.batch_size), "float64")
    plan.meetings.copy_to_device(np.array([before, 0, before], np.int32))
    assert [run.take(0, [0.1], step)[0] for step in range(3)] == losses
    arrived, gave_up, counted = plan.meetings.copy_to_host().tolist()
    assert gave_up == 0
    assert (counted - before) % 2**32 == 3 * 2 * plan.blocks  # two barriers a step
    assert arrived == (counted if BACKEND.name == "gpu" else before)  # the emulator's barrier does not count


def test_a_barrier_that_waited_in_vain_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU's barrier leaves when it gives up: the second number of `meetings`."""
    run = run_of([6, 5, 3])
    run.begin_epoch(np.arange(run.count))
    run.take(0, [0.1], 0)
    launch = persistent.PersistentPlan.launch

    def gives_up(self: persistent.PersistentPlan, *arguments: Any, **keywords: Any) -> None:
        launch(self, *arguments, **keywords)
        self.meetings.copy_to_device(np.array([0, 1, 0], np.int32))

    monkeypatch.setattr(persistent.PersistentPlan, "launch", gives_up)
    with pytest.raises(RuntimeError, match=r"waited for more than two seconds .* GROUNDUP_PERSISTENT=0"):
        run.take(0, [0.1], 1)


def test_a_launch_that_gave_up_is_told_though_another_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch's last batch is smaller and has a launch of its own, behind the one that gave up."""
    x, labels = samples(12, 6, 3)
    run = STAGE.network.Network([6, 5, 3], dtype="float64").resident(x, labels, STAGE.optimizers.SGD(0.1), 8, 0)
    run.begin_epoch(np.arange(12))
    launch, launches = persistent.PersistentPlan.launch, []

    def gives_up_first(self: persistent.PersistentPlan, *arguments: Any, **keywords: Any) -> None:
        launch(self, *arguments, **keywords)
        if not launches:
            self.meetings.copy_to_device(np.array([0, 1, 0], np.int32))
        launches.append(1)

    monkeypatch.setattr(persistent.PersistentPlan, "launch", gives_up_first)
    with pytest.raises(RuntimeError, match="the persistent kernel gave up"):
        run.take(0, [0.1, 0.1], 0)
    assert len(launches) == 2


def test_a_run_that_was_interrupted_is_asked_before_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = samples(12, 6, 3)
    network = STAGE.network.Network([6, 5, 3], dtype="float64")
    run = network.resident(x, labels, STAGE.optimizers.SGD(0.1), 8, 0)
    run.begin_epoch(np.arange(12))

    def interrupt() -> None:
        raise KeyboardInterrupt

    plan = persistent.plan_of(network, network.plans.mlp_memory(network, 8), str(run.data.values.dtype))
    with pytest.raises(KeyboardInterrupt):
        run.take(0, [0.1], 0, meanwhile=interrupt)
    plan.meetings.copy_to_device(np.array([5, 1, 3], np.int32))
    before = [p.copy_to_host() for p in network.parameters]
    with pytest.raises(RuntimeError, match="the persistent kernel gave up"):
        run.take(0, [0.1], 1)
    for was, now in zip(before, network.parameters, strict=True):
        np.testing.assert_array_equal(was, now.copy_to_host())
    assert np.isfinite(run.take(0, [0.1], 1)).all()


def test_a_step_without_a_graph_is_asked_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graphs, "available", lambda: False)
    x, labels = samples(8, 6, 3)
    network, optimizer = STAGE.network.Network([6, 5, 3], dtype="float64"), STAGE.optimizers.SGD(0.1)

    def step() -> float:
        return float(STAGE.network.STEP_LADDER["persistent"](network, x, labels, optimizer))

    step()
    (plan,) = network.plans.mlp_memory(network, 8).persistent.values()
    assert not plan.unsettled
    for interrupted in (True, False):
        plan.meetings.copy_to_device(np.array([5, 1, 3], np.int32))
        plan.unsettled = interrupted
        steps, before = optimizer._state.steps, network.layers[0].weights.copy_to_host()
        with pytest.raises(RuntimeError, match="the persistent kernel gave up"):
            step()
        assert not plan.unsettled
        assert optimizer._state.steps == steps
        if interrupted:  # nothing was launched
            np.testing.assert_array_equal(network.layers[0].weights.copy_to_host(), before)
    assert np.isfinite(step())
