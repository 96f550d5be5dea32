"""Launching: who runs the blocks, which fault is told, Ctrl-C, several threads, fork. Compiled kernels are fakes."""

import _thread
import os
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from cuda_emulator.errors import KernelError, KernelWarning
from cuda_emulator.runtime.launch import Ready, launch
from tests import interrupts
from tests.cuda_emulator.emulator_fakes import ADD, DIVIDE, FAIL, SPIN, FakeKernel, by_block

BLOCK = (32, 1, 1)


def start(what: np.ndarray, cores: int, ready: Ready | None = None, **fake: object) -> np.ndarray:
    out = np.zeros(what.size, np.int64)
    run(out, what, cores, ready or Ready(FakeKernel(by_block, **fake), "kernel"))  # type: ignore[arg-type]
    return out


def run(out: np.ndarray, what: np.ndarray, cores: int, ready: Ready) -> None:
    launch(ready, [out, what], (what.size, 1, 1), BLOCK, 0, cores)


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("blocks", [1, 2, 7, 1000])
def test_every_block_runs_once(blocks: int, cores: int) -> None:
    assert start(np.full(blocks, ADD), cores).tolist() == [1] * blocks


def test_a_short_kernel_runs_in_the_calling_thread_once_its_time_is_known() -> None:
    seen = []

    def recording(*arguments: object) -> None:
        seen.append(threading.current_thread())
        by_block(*arguments)

    ready = Ready(FakeKernel(recording), "kernel")
    for _ in range(2):
        start(np.full(1, ADD), 2, ready)
    assert threading.main_thread() not in seen
    ready.seconds = 1e-9
    start(np.full(1, ADD), 2, ready)
    assert seen[-1] is threading.main_thread()
    ready.seconds = 1.0
    start(np.full(64, ADD), 2, ready)
    assert threading.main_thread() not in seen[3:]


def test_the_time_of_a_thread_is_that_of_all_cores_together(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.0, 10.0, 13.0])  # when the first launch begins, when the second one begins and ends
    clock = SimpleNamespace(perf_counter=lambda: next(seconds))
    monkeypatch.setattr("cuda_emulator.runtime.launch.time", clock)
    ready = Ready(FakeKernel(by_block), "kernel")
    for cores, expected in ((2, None), (2, 2 * 3.0 / (64 * 32))):  # the first launch may include compiling
        start(np.full(64, ADD), cores, ready)
        assert ready.seconds == expected


def test_a_kernel_that_may_loop_runs_on_a_worker_however_short_it_was() -> None:
    seen = []

    def recording(*arguments: object) -> None:
        seen.append(threading.current_thread())
        by_block(*arguments)

    ready = Ready(FakeKernel(recording, may_loop=True), "kernel")
    ready.seconds = 1e-9
    start(np.full(1, ADD), 2, ready)
    assert threading.main_thread() not in seen


@pytest.mark.parametrize("cores", [1, 4])
def test_the_fault_of_the_lowest_block_is_told(cores: int) -> None:
    what = np.full(500, ADD)
    what[[37, 38, 200, 499]] = FAIL
    for _ in range(20):
        with pytest.raises(KernelError, match=r"^block 37 failed$"):
            start(what, cores)


def test_a_fault_stops_blocks_that_would_never_end() -> None:
    what = np.full(2, ADD)
    what[0], what[1] = FAIL, SPIN
    for _ in range(5):
        with pytest.raises(KernelError, match="block 0 failed"):
            start(what, 2)


def test_blocks_after_a_fault_do_not_run_on_one_core() -> None:
    what = np.full(100, ADD)
    what[10] = FAIL
    out = np.zeros(100, np.int64)
    with pytest.raises(KernelError):
        run(out, what, 1, Ready(FakeKernel(by_block), "kernel"))
    assert out.tolist() == [1] * 11 + [0] * 89


@pytest.mark.parametrize("known", [None, 1e-9], ids=["on a worker", "in the calling thread"])
def test_an_exception_of_numba_becomes_a_kernel_error_at_the_launch(known: float | None) -> None:
    ready = Ready(FakeKernel(by_block), "halve")
    ready.seconds = known
    with pytest.raises(KernelError, match="halve raised ZeroDivisionError") as raised:
        start(np.full(1, DIVIDE), 1, ready)
    assert raised.value.filename == __file__
    assert raised.value.kernel == "halve"


@interrupts.heard()
@pytest.mark.parametrize("cores", [1, 2])
def test_ctrl_c_ends_a_kernel_that_would_never_end(cores: int) -> None:
    what = np.full(8, SPIN)
    out = np.zeros(8, np.int64)

    def press() -> None:
        while not out.any():
            pass
        _thread.interrupt_main()

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run(out, what, cores, Ready(FakeKernel(by_block), "kernel"))
    assert 1 <= out.sum() <= cores
    assert start(np.full(8, ADD), cores).tolist() == [1] * 8


def test_several_threads_launch_at_once() -> None:
    ready = Ready(FakeKernel(by_block), "kernel")
    failures = []

    def many() -> None:
        for _ in range(50):
            if start(np.full(64, ADD), 2, ready).tolist() != [1] * 64:
                failures.append("a block is missing")

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_workers_of_its_own() -> None:
    start(np.full(64, ADD), 2)
    child = os.fork()
    if child == 0:
        ended_well = start(np.full(64, ADD), 2).tolist() == [1] * 64
        os._exit(0 if ended_well else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_kernel_that_prints_runs_its_blocks_in_order() -> None:
    order = []

    def recording(out: object, what: object, grid: object, block: object, first: int, end: int, *rest: object) -> None:
        order.append((first, end))

    start(np.full(64, ADD), 4, Ready(FakeKernel(recording, prints=True), "kernel"))
    assert order == [(0, 64)]


def test_notes_become_warnings_at_the_launch() -> None:
    with pytest.warns(KernelWarning, match="threads had returned") as caught:
        start(np.full(2, ADD), 1, said=("5 threads had returned",))
    assert caught[0].filename == __file__


def test_what_is_no_error_passes_through() -> None:
    def leaves(*arguments: object) -> None:
        sys.exit(3)

    with pytest.raises(SystemExit):
        start(np.full(2, ADD), 2, Ready(FakeKernel(leaves), "kernel"))
