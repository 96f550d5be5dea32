"""The calls of the CUDA driver in training steps that are replayed from a graph: a step waits once, allocates nothing
and launches only its kernels, and captured copies use pinned memory. This needs numba-cuda and a C compiler, no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.process import run

pytestmark = needs_numba_cuda


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the program called, a line a call."""
    folder = tmp_path_factory.mktemp("machine")
    # 0: the run on the device takes its steps from a graph.
    done = run(["-m", "tests.stage4_numba_cuda.machine.some_steps"], folder, GROUNDUP_PERSISTENT="0")
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return (folder / "log.txt").read_text().splitlines()


def after(log: list[str], mark: str) -> list[str]:
    """The calls between this mark and the next; of a launch without the name of its kernel."""
    begin = log.index(f"# {mark}") + 1
    end = next(i for i in range(begin, len(log)) if log[i].startswith("# "))
    return [line.partition(" _Z")[0] for line in log[begin:end]]


def test_the_driver_found_no_mistake(log: list[str]) -> None:
    assert [line for line in log if line.startswith("FAULT")] == []


@pytest.mark.parametrize("step", [2, 3])
def test_a_step_is_one_graph_and_one_wait(log: list[str], step: int) -> None:
    replayed = ["cuGraphLaunch 6 nodes, 3 of them copies", "cuStreamSynchronize"]
    assert after(log, f"SGD, graph, step {step}") == replayed
    # Adam has another factor in every step, and it is sent to the device first.
    assert after(log, f"Adam, graph, step {step}") == ["cuMemcpyHtoDAsync pinned to device", *replayed]
    replayed[0] = "cuGraphLaunch 4 nodes, 3 of them copies"
    assert after(log, f"SGD, persistent, step {step}") == replayed


@pytest.mark.parametrize("step", [2, 3])
def test_x_that_is_on_the_device_is_copied_there(log: list[str], step: int) -> None:
    assert after(log, f"x on the device, step {step}") == [
        *("cuMemcpyDtoDAsync device to device", "cuGraphLaunch 5 nodes, 2 of them copies", "cuStreamSynchronize"),
    ]


def test_a_capture_takes_no_memory_and_waits_for_nothing(log: list[str]) -> None:
    launched = ["cuLaunchKernelEx, captured:"] * 3
    copies = ["cuMemcpyHtoDAsync pinned to device, captured"] * 2
    assert after(log, "SGD, graph, step 1") == [
        *("cuStreamCreate", "cuStreamBeginCapture"),
        *copies,
        *launched,
        "cuMemcpyDtoHAsync device to pinned, captured",
        *("cuStreamEndCapture", "cuStreamDestroy", "cuGraphInstantiate", "cuGraphDestroy"),
        *("cuGraphLaunch 6 nodes, 3 of them copies", "cuStreamSynchronize"),
    ]


@pytest.mark.parametrize("epoch", [2, 3])
def test_steps_of_a_run_on_the_device_are_graphs_and_nothing_between_them(log: list[str], epoch: int) -> None:
    assert after(log, f"epoch {epoch}") == [
        *["cuMemcpyHtoD pageable to device"] * 2,  # where the epoch stands, and the optimizer's numbers
        *["cuGraphLaunch 3 nodes, 0 of them copies"] * 4,
        "cuMemcpyDtoH device to pageable",  # the losses
    ]


def test_an_interrupted_capture_leaves_no_stream_and_no_graph(log: list[str]) -> None:
    assert after(log, "an interrupted capture") == [
        *("cuStreamCreate", "cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphDestroy", "cuStreamDestroy"),
    ]


@pytest.mark.parametrize(
    ("taken", "given_back"),
    [
        ("cuMemAlloc", "cuMemFree"),
        ("cuMemHostAlloc", "cuMemFreeHost"),
        ("cuGraphInstantiate", "cuGraphExecDestroy"),
    ],
)
def test_a_network_that_is_gone_has_given_everything_back(taken: str, given_back: str, log: list[str]) -> None:
    """The second one: what the first leaves is for all that come. Its stream is left out: numba-cuda keeps a kernel's
    last 128 launch configurations, which hold it."""
    life = log[log.index("# SGD, graph is gone") : log.index("# Adam, graph is gone")]
    calls = [line.partition(" ")[0] for line in life]
    assert calls.count(taken) == calls.count(given_back) > 0


MORE_SHARED_MEMORY = """
import sys

import numpy as np
from numba import types
from stage4_numba_cuda import shared_memory
from stage4_numba_cuda.backend import cuda

vector = types.Array(types.int32, 1, "C")

@cuda.jit
def kernel(out):
    tile = cuda.shared.array(0, np.int32)
    tile[cuda.threadIdx.x] = cuda.threadIdx.x
    out[cuda.threadIdx.x] = tile[cuda.threadIdx.x]

if allowed := int(sys.argv[1]):
    shared_memory.allow(kernel, (vector,), allowed)
kernel[1, 32, 0, int(sys.argv[2])](cuda.to_device(np.zeros(32, np.int32)))
cuda.synchronize()
"""


@pytest.mark.parametrize(
    ("allowed", "given", "capability", "fault"),
    [
        (0, 48 * 1024, "8.6", ""),
        (0, 48 * 1024 + 4, "8.6", "too much shared memory"),
        (72 * 1024, 72 * 1024, "8.6", ""),
        (72 * 1024, 72 * 1024, "7.5", "no device of this kind has 73728 bytes of shared memory for it"),
    ],
)
def test_the_driver_is_asked_before_a_block_has_more_than_48_kb(
    allowed: int, given: int, capability: str, fault: str, tmp_path: Path
) -> None:
    done = run(["-c", MORE_SHARED_MEMORY, str(allowed), str(given)], tmp_path, MACHINE_CAPABILITY=capability)
    assert (done.returncode == 0) == (not fault), done.stderr
    faults = [line for line in (tmp_path / "log.txt").read_text().splitlines() if line.startswith("FAULT")]
    assert len(faults) == bool(fault)
    assert all(fault in line for line in faults)


ORDERS = """
import numpy as np
from stage4_numba_cuda.backend import cuda
from stage4_numba_cuda.plans.resident_host import Orders

for waits in (True, False):
    wrong = 0
    for number in range(20):
        orders, stream = Orders(9), cuda.stream()
        order, found = np.random.default_rng(number).permutation(9), np.zeros(9, np.int32)
        if not waits:
            orders._copies.synchronize = lambda: None
        orders.begin(order)
        orders.now.copy_to_host(found, stream=stream)
        stream.synchronize()
        wrong += not np.array_equal(found, order)
    print(wrong)
"""


def test_an_order_of_samples_has_arrived_when_any_stream_reads_it(tmp_path: Path) -> None:
    """It travels on a stream of its own. The steps of a run find it there even without the wait in `begin`: they come
    behind copies on the default stream."""
    done = run(["-c", ORDERS], tmp_path)
    assert done.returncode == 0, done.stderr
    right, without_wait = map(int, done.stdout.split())
    assert right == 0
    assert 0 < without_wait < 20
