"""Joined operations in planned memory give what a kernel for every operation gives; and a refusal changes nothing."""

import copy
import json
import sys
from typing import Any

import numpy as np
import pytest

from shared.architectures import Architecture, residual_cnn
from shared.layers import Activate, BatchNorm, Conv, Dense, Flatten, MaxPool, Residual
from shared.machine import processes
from stage4_numba_cuda import network, optimizers
from stage4_numba_cuda.arrays import copy as copied
from stage4_numba_cuda.arrays import to_host
from stage4_numba_cuda.network import STEP_LADDER
from stage4_numba_cuda.plans import operation_launches, operation_plan
from stage4_numba_cuda.plans.operation_plan import placed
from stage4_numba_cuda.plans.operation_schedule import schedule
from stage4_numba_cuda.plans.operations import planned
from stage4_numba_cuda.plans.optimizer_update import Update
from tests.layered_forms import FORMS
from tests.stage4_numba_cuda.test_cuda_graphs import Recorder, recorder
from tests.stage4_numba_cuda.test_cuda_graphs import pytestmark as needs_emulator
from tests.wide import wide

__all__ = ["recorder"]

SMALL = Architecture((1, 6, 5), (Conv(2, 3), BatchNorm(), Activate("relu"), Flatten(), Dense(3)))


def hosts(arrays: Any) -> list[np.ndarray]:
    return [np.array(to_host(each)) for each in arrays]


def batch(architecture: Architecture, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = architecture.shapes()
    return rng.normal(size=(rows, int(np.prod(shapes[0])))), rng.integers(0, shapes[-1][0], rows)


@pytest.mark.parametrize("name", FORMS)
def test_joined_operations_give_what_each_by_itself_gives(name: str) -> None:
    architecture = Architecture(*FORMS[name])
    one = network.Network(architecture, seed=1, dtype="float64")
    other = copy.deepcopy(one)
    mine, theirs = optimizers.Adam(0.01), optimizers.Adam(0.01)
    rng = np.random.default_rng(0)
    for rows in (3, 5, 2):  # a larger batch, and a smaller one in the same memory
        x, y = batch(architecture, rows, rows)
        masks = [rng.choice([0.0, 2.0], size=(rows, size)) for size, _ in architecture.dropouts()] or None
        loss, expected = one.train_step(x, y, mine, masks), STEP_LADDER["op_by_op"](other, x, y, theirs, masks)
        assert loss == pytest.approx(expected, rel=1e-11)
        gradients = zip(hosts(one.layer_gradients), hosts(other.layer_gradients), strict=True)
        for got, wanted in gradients:
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
        for got, wanted in zip(hosts(one.running_statistics), hosts(other.running_statistics), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)
        for p, q in zip(one.parameters, other.parameters, strict=True):
            p.copy_to_device(q)  # or Adam would turn a rounding of a slope of zero into a step
        for training in (False, True):
            got = to_host(one.forward(x, masks, training))
            np.testing.assert_allclose(got, to_host(other.outputs(x, masks, training)[-1]), rtol=1e-10, atol=1e-11)


def test_the_same_steps_give_the_same_bits() -> None:
    ends = []
    for _ in range(2):
        made, optimizer = network.Network(FORM, seed=1, dtype="float64"), optimizers.SGD(0.1, momentum=0.9)
        losses = [made.train_step(*batch(FORM, 9, i), optimizer) for i in range(3)]
        ends.append([np.array(losses), *hosts(made.parameters), *hosts(made.running_statistics)])
    for one, other in zip(*ends, strict=True):
        assert np.array_equal(one, other)


FORM = Architecture(*FORMS["blocks in blocks"])


def test_memory_is_used_again_once_nobody_reads_it() -> None:
    form = residual_cnn()
    made = planned(form.layers, network.Network(form).layers, form.input_shape, masked=False)
    evaluation = schedule(made, form.input_shape, 8, 10, training=False, labels=True)
    numbers = [size for i, size in enumerate(evaluation.sizes) if i not in evaluation.whole]
    lifetimes = [time for i, time in enumerate(evaluation.lifetimes()) if i not in evaluation.whole]
    places, length = placed(numbers, lifetimes)
    # The input of a residual block, a convolution's output and its normalised one: no more are alive at once.
    assert length <= 3 * 8 * 32 * 28 * 28 + 4096 < sum(numbers) / 2
    for i, (begin, end) in enumerate(lifetimes):
        for j in range(i):
            if lifetimes[j][0] <= end and begin <= lifetimes[j][1]:
                assert places[i] + numbers[i] <= places[j] or places[j] + numbers[j] <= places[i]


def test_operations_are_joined_where_one_kernel_does_both() -> None:
    form = residual_cnn()
    made = planned(form.layers, network.Network(form).layers, form.input_shape, masked=False).found
    kinds = [(each.kind, each.activation) for each in made]
    half = [("convolve", 0), ("normalise", 1), ("convolve", 0), ("normalise", 1), ("convolve", 0), ("normalise", 0)]
    # The ReLU after the block's sum moves behind the maximum; the sum is part of the block's last normalisation.
    assert kinds == [*half, ("max_pool", 1), *half, ("max_pool", 1), ("connect", 1), ("connect", 0)]
    assert [each.added for each in made if each.kind == "normalise"] == [-1, -1, 2, -1, -1, 9]


def test_a_relu_of_what_a_block_reads_twice_stays_in_front_of_the_maximum() -> None:
    form = Architecture((1, 4, 4), (Conv(2, 1), Activate("relu"), Residual((MaxPool(1),)), Flatten(), Dense(2)))
    made = network.Network(form, seed=3, dtype="float64")
    x, _ = batch(form, 3)
    np.testing.assert_allclose(to_host(made.forward(x)), to_host(made.outputs(x)[-1]), rtol=1e-12)


def test_a_second_step_takes_no_new_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made, optimizer = network.Network(FORM, seed=1, dtype="float64"), optimizers.SGD(0.1, momentum=0.9)
    made.train_step(*batch(FORM, 6), optimizer)
    taken: list[Any] = []
    for module in (network, network.choice, operation_plan, operation_launches.batch_norm):
        if hasattr(module, "empty"):
            monkeypatch.setattr(module, "empty", lambda *shape: taken.append(shape))
    made.train_step(*batch(FORM, 6), optimizer)
    assert taken == []


@needs_emulator
@pytest.mark.parametrize("name", ["blocks in blocks", "rows", "every activation"])
def test_replayed_steps_end_where_launched_ones_end(recorder: Recorder, name: str) -> None:
    """The graphs are played by test_cuda_graphs' recorder, so that no GPU is needed."""
    form = Architecture(*FORMS[name])
    ends = []
    for rung in ("fused", "graph"):
        made, optimizer = network.Network(form, seed=1, dtype="float64"), optimizers.Adam(0.01)
        losses = []
        for i, rows in enumerate((6, 6, 4, 6, 4, 6)):
            x, y = batch(form, rows, i)
            rng = np.random.default_rng(i)
            masks = [rng.choice([0.0, 2.0], size=(rows, size)) for size, _ in form.dropouts()] or None
            optimizer.learning_rate = 0.01 if i < 4 else 0.005
            losses.append(STEP_LADDER[rung](made, x, y, optimizer, masks))
        ends.append([np.array(losses), *hosts(made.parameters), *hosts(made.running_statistics)])
        assert optimizer.state()["steps"] == 6
    assert recorder.captured == 2
    assert recorder.replayed == 4
    for got, wanted in zip(*ends, strict=True):
        np.testing.assert_array_equal(got, wanted)


@needs_emulator
def test_everything_of_a_replayed_step_is_launched_on_its_stream(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch on another stream would be missing in the graph."""
    from cuda_emulator.inspection import dispatcher

    made, optimizer = network.Network(FORM, seed=1, dtype="float64"), optimizers.SGD(0.1, momentum=0.9)
    streams: list[Any] = []
    configure = dispatcher.Kernel.configure

    def noted(kernel: Any, grid: Any, block: Any, stream: Any = 0, *more: Any) -> Any:
        streams.append((kernel.py_func.__name__, stream))
        return configure(kernel, grid, block, stream, *more)

    masks = [np.ones((6, size)) for size, _ in FORM.dropouts()]
    made.train_step(*batch(FORM, 6), optimizer, masks)
    monkeypatch.setattr(dispatcher.Kernel, "configure", noted)
    plan = made.plans.operations(made, 6, True, True)
    stream = plan.graphs.stream
    plan.launch(made, plan.own, Update(made, optimizer), stream)
    assert stream != 0
    assert len(streams) > 20
    assert [name for name, each in streams if each is not stream] == []
    streams.clear()
    made.forward(batch(FORM, 6)[0])
    stream = made.plans.operations(made, 6, False, False).graphs.stream
    assert len(streams) > 8
    assert [name for name, each in streams if each is not stream] == []


@needs_emulator
@pytest.mark.parametrize("name", ["blocks in blocks", "rows"])
def test_replayed_outputs_are_those_that_are_launched(recorder: Recorder, name: str) -> None:
    form = Architecture(*FORMS[name])
    made, optimizer = network.Network(form, seed=1, dtype="float64"), optimizers.SGD(0.1)
    other = copy.deepcopy(made)
    for i, rows in enumerate((3, 3, 5, 3, 5)):
        x, y = batch(form, rows, i)
        for training in (False, True):  # the latter changes the running statistics
            expected = to_host(other.outputs(x, None, training)[-1])
            for _ in range(3 if not training else 1):
                np.testing.assert_allclose(to_host(made.forward(x, None, training)), expected, rtol=1e-10)
        np.testing.assert_array_equal(made.predict(x), to_host(made.outputs(x)[-1]).argmax(axis=1))
        if i == 2:  # in other memory: a graph that was captured before would go on with the old numbers
            made.layers[-1].bias = copied(made.layers[-1].bias)
        for each in (made, other):
            STEP_LADDER["fused"](each, x, y, optimizer)
    assert recorder.replayed > recorder.captured > 3


@needs_emulator
@pytest.mark.parametrize("name", ["sgd", "momentum", "rmsprop", "adam"])
def test_an_optimizer_moves_all_parameters_in_one_launch_as_it_would_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cuda_emulator.inspection import dispatcher

    launched: list[str] = []
    configure = dispatcher.Kernel.configure

    def noted(kernel: Any, *how: Any) -> Any:
        launched.append(kernel.py_func.__name__)
        return configure(kernel, *how)

    makes = {
        "sgd": lambda: optimizers.SGD(0.1, weight_decay=0.01),
        "momentum": lambda: optimizers.SGD(0.1, momentum=0.9),
        "rmsprop": optimizers.RMSProp,
        "adam": optimizers.Adam,
    }
    monkeypatch.setattr(dispatcher.Kernel, "configure", noted)
    ends, counts = [], []
    for apart in (False, True):
        made, optimizer = network.Network(FORM, seed=1, dtype="float64"), makes[name]()
        if apart:
            made.layers[0].bias = copied(made.layers[0].bias)
        for i in range(4):
            if i == 2:  # as a run does that goes on: what another optimizer had kept comes from the host
                state = optimizer.state()
                optimizer = makes[name]()
                optimizer.load_state(state)
            launched.clear()
            made.train_step(*batch(FORM, 6, i), optimizer)
        counts.append(launched.count(name))
        buffers = optimizer.state()["buffers"].values()
        ends.append([*hosts(made.parameters), *(array for arrays in buffers for array in arrays)])
    assert counts == [1, len(made.parameters)]
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


@wide
@needs_emulator
def test_the_kernels_and_grids_of_a_gpu_give_what_stage_2_gives() -> None:
    done = processes.run([sys.executable, "-m", "tests.stage4_numba_cuda.as_on_a_gpu"], 600)
    assert done.code == 0, done.errors
    worst = json.loads(done.output)
    assert len(worst) == 3
    assert max(worst.values()) < 1e-10
