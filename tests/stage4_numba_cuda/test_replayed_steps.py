"""The host's part of a replayed step, counted: copies, waits, and what is looked up again. Times need a GPU.

Graphs are played by test_cuda_graphs' recorder, on the emulator's streams."""

from __future__ import annotations

import copy
import gc
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stage4_numba_cuda.plans import cuda_graphs, optimizer_update, persistent, replayed_steps
from tests.stage4_numba_cuda.test_cuda_graphs import SIZES, STAGE, Recorder, batch, pytestmark, recorder
from tests.wide import wide, widely

__all__ = ["pytestmark", "recorder"]


@pytest.fixture
def counted(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What a step does from now on: copies, each on the step's stream or not, waits for a stream, and look-ups."""
    from cuda_emulator.inspection import devicearray, streams

    found: Counter[str] = Counter()

    def count(owner: Any, name: str, what: Any) -> None:
        original = getattr(owner, name)

        def noted(self: Any, *arguments: Any, **named: Any) -> Any:
            found[what(named) if callable(what) else what] += 1
            return original(self, *arguments, **named)

        monkeypatch.setattr(owner, name, noted)

    count(devicearray.DeviceNDArray, "copy_to_device", lambda named: "sent" if named.get("stream") else "sent, waiting")
    count(devicearray.DeviceNDArray, "copy_to_host", lambda named: "read" if named.get("stream") else "read, waiting")
    count(streams.Stream, "synchronize", "waits")
    count(optimizer_update.Update, "__init__", "updates made")
    count(cuda_graphs.Graphs, "launch", "graphs")
    return found


def warm(optimizer: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A network that has taken three steps, and its batch."""
    network = STAGE.network.Network(SIZES, seed=1, dtype="float64")
    x, y = batch(8, seed=0)
    for _ in range(3):
        network.train_step(x, y, optimizer)
    return network, x, y


@pytest.mark.parametrize("wanted", widely(["0", "1"]), ids=["three kernels", "the persistent kernel"])
def test_a_step_is_one_graph_with_its_copies_and_one_wait(
    counted: Counter[str], monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    monkeypatch.setenv(persistent.VARIABLE, wanted)
    optimizer = STAGE.optimizers.SGD(0.1)
    network, x, y = warm(optimizer)
    counted.clear()
    for _ in range(5):
        network.train_step(x, y, optimizer)
    assert counted == {"waits": 5, "graphs": 5}


@wide
def test_a_step_that_took_long_is_asked_whether_its_blocks_gave_up(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do so after two seconds; to ask after every step would cost a copy each."""
    monkeypatch.setenv(persistent.VARIABLE, "1")
    optimizer = STAGE.optimizers.SGD(0.1)
    network, x, y = warm(optimizer)
    (plan,) = network.plans.mlp_memory(network, 8).persistent.values()
    plan.meetings.copy_to_device(np.array([5, 1, 3], np.int32))
    network.train_step(x, y, optimizer)
    monkeypatch.setattr(replayed_steps, "SLOW", 0.0)
    with pytest.raises(RuntimeError, match=r"the persistent kernel gave up: .* GROUNDUP_PERSISTENT=0"):
        network.train_step(x, y, optimizer)
    before = network.loss(x, y)
    assert network.train_step(x, y, optimizer) == pytest.approx(before, rel=1e-12)  # nothing is left of it


def test_what_is_on_the_device_is_copied_there_and_a_new_rate_is_one_copy_more(counted: Counter[str]) -> None:
    optimizer = STAGE.optimizers.SGD(0.1)
    network, x, y = warm(optimizer)
    own_x = STAGE.arrays.asarray(x, "float64")
    for _ in range(2):  # plainly, then captured: it is another graph, without the copy of x
        network.train_step(own_x, y, optimizer)
    counted.clear()
    optimizer.learning_rate = 0.05
    network.train_step(own_x, y, optimizer)
    assert counted == {"sent": 2, "waits": 1, "graphs": 1}


def test_a_step_that_is_prepared_anew_goes_on_with_its_graph(recorder: Recorder) -> None:
    optimizer = STAGE.optimizers.SGD(0.0)
    network, x, y = warm(optimizer)
    for rows in (x, x[::-1]):
        network.plans.replayed = replayed_steps.ReplayedSteps()
        expected = network.loss(rows, y)
        assert network.train_step(rows, y, optimizer) == pytest.approx(expected, rel=1e-12)
    assert recorder.captured == 1


def test_a_copied_network_takes_its_own_steps_and_not_those_of_the_original(recorder: Recorder) -> None:
    network, x, y = warm(STAGE.optimizers.SGD(0.1))
    copied, before = copy.deepcopy(network), [p.copy_to_host() for p in network.parameters]
    mine = STAGE.optimizers.SGD(0.1)
    losses = [copied.train_step(x, y, mine) for _ in range(3)]
    for p, b in zip(network.parameters, before, strict=True):
        np.testing.assert_array_equal(p.copy_to_host(), b)
    theirs = STAGE.optimizers.SGD(0.1)
    assert [network.train_step(x, y, theirs) for _ in range(3)] == losses
    for p, q in zip(network.parameters, copied.parameters, strict=True):
        np.testing.assert_array_equal(p.copy_to_host(), q.copy_to_host())


def test_graphs_go_with_the_pinned_memory_that_they_copy_from(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_graphs, "MOST", 2)
    kept, arrays = cuda_graphs.Graphs(), [STAGE.arrays.asarray(np.zeros((2, 3)), "float64")]
    first = kept.pinned("a", arrays)
    assert [(array.shape, array.dtype) for array in first] == [((2, 3), np.float64)]
    for _ in range(2):  # plainly, then captured
        kept.launch(("a", 0), lambda stream: None)
    kept.pinned("b", arrays)
    assert kept.pinned("a", arrays) is first
    assert recorder.destroyed == []
    kept.pinned("c", arrays)
    assert len(recorder.destroyed) == 1
    assert kept.pinned("a", arrays) is not first


class Still:
    """An optimizer of nobody's, which moves nothing: the kernels see it as they see none."""

    def step(self, parameters: Any, gradients: Any) -> None:
        pass


def test_two_steps_with_one_graph_send_from_the_memory_that_it_copies_from(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, x, y = warm(STAGE.optimizers.SGD(0.1))
    monkeypatch.setattr(cuda_graphs, "MOST", 1)  # so that the memory is soon given up
    network.gradients(x, y)
    network.train_step(x, y, STAGE.optimizers.SGD(0.0))
    still = Still()
    for _ in range(3):  # the graph is captured with this step's memory
        network.train_step(x, y, still)
    other = batch(8, seed=7)
    fresh = STAGE.network.Network.from_parameters([p.copy_to_host() for p in network.parameters], dtype="float64")
    for got, expected in zip(network.gradients(*other), fresh.gradients(*other), strict=True):
        np.testing.assert_array_equal(got.copy_to_host(), expected.copy_to_host())


def test_another_optimizer_other_weights_and_another_batch_size_are_looked_up_anew(counted: Counter[str]) -> None:
    optimizer = STAGE.optimizers.Adam(0.1)
    network, x, y = warm(optimizer)
    for change in ("optimizer", "weights", "rows", "state"):
        counted.clear()
        if change == "optimizer":
            optimizer = STAGE.optimizers.Adam(0.1)
        elif change == "weights":
            network.layers[0].weights = STAGE.arrays.copy(network.layers[0].weights)
        elif change == "rows":
            x, y = batch(5, seed=2)
        else:
            optimizer.load_state(optimizer.state())
        network.train_step(x, y, optimizer)
        assert counted["updates made"] == 1, change
        network.train_step(x, y, optimizer)
        assert counted["updates made"] == 1, change


def test_replayed_steps_end_where_launched_ones_end(recorder: Recorder) -> None:
    ended = []
    for rung in ("few_kernels", "graph"):
        network = STAGE.network.Network(SIZES, seed=1, dtype="float64", loss="mean_squared_error")
        optimizers = STAGE.optimizers.SGD(0.1, momentum=0.5), STAGE.optimizers.RMSProp(0.01)
        losses = []
        for i in range(12):
            optimizers[0].momentum = 0.5 if i < 8 else 0.0  # another formula, with the same optimizer
            x, _ = batch(8 if i % 4 else 5, seed=i)
            targets = np.random.default_rng(i).standard_normal((len(x), SIZES[-1]))
            losses.append(STAGE.network.STEP_LADDER[rung](network, x, targets, optimizers[i % 2], None))
        ended.append((losses, [p.copy_to_host() for p in network.parameters]))
    assert ended[0][0] == ended[1][0]
    for prepared, replayed in zip(ended[0][1], ended[1][1], strict=True):
        np.testing.assert_array_equal(prepared, replayed)


def test_errors_are_told_in_later_steps_too(recorder: Recorder) -> None:
    optimizer = STAGE.optimizers.SGD(0.1)
    network, x, y = warm(optimizer)
    before = [p.copy_to_host() for p in network.parameters]
    wrong = y.copy()
    wrong[3] = SIZES[-1]
    with pytest.raises(ValueError, match=r"labels\[3\] is 3, expected 0 to 2"):
        network.train_step(x, wrong, optimizer)
    with pytest.raises(ValueError, match=r"Network: x is \(8, 20\), expected \(batch, 21\)"):
        network.train_step(x[:, :-1], y, optimizer)
    with pytest.raises(ValueError, match="expected 8 labels, one a row"):
        network.train_step(x, y[:-1], optimizer)
    for old, new in zip(before, network.parameters, strict=True):
        np.testing.assert_array_equal(old, new.copy_to_host())


def test_after_an_interruption_the_next_step_waits_before_it_sends(
    counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizer = STAGE.optimizers.SGD(0.1)
    network, x, y = warm(optimizer)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(cuda_graphs.Graphs, "launch", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            network.train_step(x, y, optimizer)
    counted.clear()
    network.train_step(x, y, optimizer)
    assert counted["waits"] == 2


@pytest.mark.parametrize("following", ["fewer rows", "more rows", "a run", "another rung"])
def test_a_step_that_was_interrupted_is_asked_by_the_next_of_any_kind(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, following: str
) -> None:
    """Blocks that gave up have counted to no end, from which the next launch would go on; and where that counts in
    memory of its own, it would go on from parameters between two steps."""
    monkeypatch.setenv(persistent.VARIABLE, "1")
    optimizer = STAGE.optimizers.SGD(0.1)
    network, x, y = warm(optimizer)
    network.train_step(x[:5], y[:5], optimizer)
    run = network.resident(x, np.zeros(8, np.int64), optimizer, 8, 0)
    run.begin_epoch(np.arange(8))
    plan = network.plans.mlp_memory(network, 8).persistent["float64"]
    with monkeypatch.context() as interrupted:
        interrupted.setattr(replayed_steps.ReplayedStep, "_wait", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            network.train_step(x, y, optimizer)
    plan.meetings.copy_to_device(np.array([5, 1, 3], np.int32))
    before = np.concatenate([p.copy_to_host().ravel() for p in network.parameters])
    after: dict[str, Callable[[], object]] = {
        "fewer rows": lambda: network.train_step(x[:5], y[:5], optimizer),
        "more rows": lambda: network.train_step(*batch(20, seed=1), optimizer),
        "a run": lambda: run.take(0, [0.1], 0),
        "another rung": lambda: STAGE.network.STEP_LADDER["few_kernels"](network, x, y, optimizer),
    }
    with pytest.raises(RuntimeError, match="the persistent kernel gave up"):
        after[following]()
    np.testing.assert_array_equal(np.concatenate([p.copy_to_host().ravel() for p in network.parameters]), before)
    after[following]()
    assert np.any(np.concatenate([p.copy_to_host().ravel() for p in network.parameters]) != before)


def raise_interrupt(*_: Any, **__: Any) -> None:
    """What Ctrl-C does while the host waits."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("rung", widely(["graph", "persistent"]))
def test_a_network_that_is_gone_gives_its_memory_back_at_once(recorder: Recorder, rung: str) -> None:
    network, x, y = warm(STAGE.optimizers.SGD(0.1))
    STAGE.network.STEP_LADDER[rung](network, x, y, STAGE.optimizers.SGD(0.1), None)
    alive = weakref.ref(network.plans.mlp_memory(network, 8))
    gc.disable()
    try:
        del network
        assert alive() is None
    finally:
        gc.enable()
