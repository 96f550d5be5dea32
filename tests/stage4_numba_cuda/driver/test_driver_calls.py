"""The calls of the CUDA driver in training steps that are replayed from a graph: a step waits once, allocates nothing
and launches only its kernels, and captured copies use pinned memory. This needs numba-cuda and a C compiler, no GPU."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).with_name("pretend_cuda.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
    pytest.mark.skipif(sys.platform != "linux", reason="the driver is found as libcuda.so.1"),
]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the program called, a line a call."""
    folder = tmp_path_factory.mktemp("driver")
    library, written = folder / "libcuda.so.1", folder / "log.txt"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("GROUNDUP_", "NUMBA_", "CUDA_"))}
    places = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    variables |= {"LD_LIBRARY_PATH": places, "PRETEND_LOG": str(written), "PYTHONPATH": str(ROOT)}
    # The kernels of the graph alone: the persistent one takes long to compile.
    variables |= {"GROUNDUP_CUDA": "gpu", "GROUNDUP_PERSISTENT": "0", "GROUNDUP_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "tests.stage4_numba_cuda.driver.steps_on_a_driver"]
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return written.read_text().splitlines()


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
    assert after(log, f"SGD, step {step}") == replayed
    # Adam has another factor in every step, and it is sent to the device first.
    assert after(log, f"Adam, step {step}") == ["cuMemcpyHtoDAsync pinned to device", *replayed]


def test_a_capture_takes_no_memory_and_waits_for_nothing(log: list[str]) -> None:
    launched = ["cuLaunchKernelEx, captured:"] * 3
    copies = ["cuMemcpyHtoDAsync pinned to device, captured"] * 2
    assert after(log, "SGD, step 1") == [
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


def test_memory_is_given_back_and_no_graph_outlives_its_network(log: list[str]) -> None:
    assert log.count("cuGraphInstantiate") == log.count("cuGraphExecDestroy")
