"""The driver by itself: each call answers with the error that a device's driver would give. What it writes down as a
mistake is never the success of the call."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Iterator
from ctypes import byref, c_void_p
from pathlib import Path
from typing import Any

import pytest

from tests.stage4_numba_cuda.machine.image import build_driver
from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda

pytestmark = needs_numba_cuda

OK, INVALID, NOT_FOUND, CAPTURE, CAPTURE_ENDS = 0, 1, 500, 900, 906
APART = 1
"""CU_STREAM_NON_BLOCKING: a stream that neither waits for the default stream nor is waited for."""


class Driver:
    """The driver's calls; numbers given to them are 64 bits wide."""

    def __init__(self, library: Path, log: Path) -> None:
        self.library, self.log = ctypes.CDLL(str(library)), log

    def call(self, name: str, *arguments: Any) -> int:
        """The result of a call."""
        wide = (ctypes.c_uint64(value) if isinstance(value, int) else value for value in arguments)
        return int(getattr(self.library, name)(*wide))

    def made(self, name: str, *arguments: Any) -> Any:
        """The handle or the address that a call gives by its first argument."""
        handle = c_void_p()
        assert self.call(name, byref(handle), *arguments) == OK
        return handle

    def faults(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith("FAULT")]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    build_driver(path)
    return path


@pytest.fixture
def driver(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """A driver that nothing has been asked of yet: a copy of the library is loaded beside those of other tests."""
    monkeypatch.setenv("MACHINE_LOG", str(tmp_path / "log.txt"))
    return Driver(Path(shutil.copy(library, tmp_path)), tmp_path / "log.txt")


def freed(driver: Driver) -> Any:
    memory = driver.made("cuMemAlloc", 64)
    assert driver.call("cuMemFree", memory) == OK
    return memory


HOST = ctypes.create_string_buffer(4096)


@pytest.mark.parametrize("size", [8, 65])
@pytest.mark.parametrize("name", ["cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD", "cuMemsetD8"])
def test_memory_that_was_freed_or_is_too_small_is_refused(name: str, size: int, driver: Driver) -> None:
    memory = driver.made("cuMemAlloc", 64) if size > 64 else freed(driver)
    given = {
        "cuMemcpyHtoD": (memory, HOST),
        "cuMemcpyDtoH": (HOST, memory),
        "cuMemcpyDtoD": (driver.made("cuMemAlloc", 128), memory),
        "cuMemsetD8": (memory, 0),
    }
    assert driver.call(name, *given[name], size) == INVALID
    assert len(driver.faults()) == 1
    if size > 64:
        assert driver.call("cuMemcpyDtoH", HOST, memory, 64) == OK
        assert HOST.raw[:64] == b"\xff" * 64  # nothing was written


def captured(driver: Driver, name: str, *arguments: Any) -> Any:
    """A graph of one call, whose last argument is the stream."""
    stream = driver.made("cuStreamCreate", APART)
    assert driver.call("cuStreamBeginCapture", stream, 0) == OK
    assert driver.call(name, *arguments, stream) == OK
    graph = c_void_p()
    assert driver.call("cuStreamEndCapture", stream, byref(graph)) == OK
    return driver.made("cuGraphInstantiate", graph, 0)


@pytest.mark.parametrize("name", ["cuMemcpyDtoDAsync", "cuMemsetD8Async"])
def test_a_graph_that_uses_freed_memory_is_not_launched(name: str, driver: Driver) -> None:
    memory, kept = driver.made("cuMemAlloc", 64), driver.made("cuMemAlloc", 64)
    graph = captured(driver, name, memory, 0 if "Memset" in name else kept, 64)
    assert driver.call("cuGraphLaunch", graph, 0) == OK
    assert driver.call("cuMemFree", memory) == OK
    assert driver.call("cuGraphLaunch", graph, 0) == INVALID
    assert driver.call("cuCtxSynchronize") == OK


def test_the_default_stream_and_one_that_waits_for_it_are_not_captured(driver: Driver) -> None:
    assert driver.call("cuStreamBeginCapture", 0, 0) == CAPTURE
    assert driver.call("cuStreamBeginCapture", driver.made("cuStreamCreate", 0), 0) == CAPTURE_ENDS
    memory = driver.made("cuMemAlloc", 64)
    assert driver.call("cuMemsetD8", memory, 7, 64) == OK  # no capture has begun
    assert driver.call("cuMemcpyDtoH", HOST, memory, 64) == OK
    assert HOST.raw[:64] == b"\x07" * 64


ROUNDS = 24
"""So often is tried what may go wrong: which stream goes on is drawn by lot."""


class Memories:
    """Three pieces of device memory of one number each, and streams."""

    def __init__(self, driver: Driver, *flags: int) -> None:
        self.driver = driver
        self.a, self.b, self.c = (driver.made("cuMemAlloc", 1) for _ in range(3))
        self.streams = [driver.made("cuStreamCreate", flag) for flag in flags]

    def fill(self, memory: Any, value: int, stream: Any) -> None:
        assert self.driver.call("cuMemsetD8Async", memory, value, 1, stream) == OK

    def copy(self, to: Any, source: Any, stream: Any) -> None:
        assert self.driver.call("cuMemcpyDtoDAsync", to, source, 1, stream) == OK

    def numbers(self) -> tuple[int, ...]:
        """What they hold when all work is done."""
        assert self.driver.call("cuCtxSynchronize") == OK
        found = []
        for memory in (self.a, self.b, self.c):
            assert self.driver.call("cuMemcpyDtoH", HOST, memory, 1) == OK
            found.append(HOST.raw[0])
        return tuple(found)


@pytest.mark.parametrize("flags", [(0, 0), (APART, APART), (0, APART)])
@pytest.mark.parametrize("by", ["nothing", "an event", "its own stream", "a destroyed event and stream"])
def test_a_stream_reads_what_another_wrote_only_behind_its_event(
    flags: tuple[int, int], by: str, driver: Driver
) -> None:
    found = set()
    for number in range(1, ROUNDS + 1):
        made = Memories(driver, *flags)
        writes, reads = made.streams
        made.fill(made.a, number, writes)
        if by != "nothing":
            event = driver.made("cuEventCreate", 0)
            assert driver.call("cuEventRecord", event, writes) == OK
            assert driver.call("cuStreamWaitEvent", writes if by == "its own stream" else reads, event, 0) == OK
            made.fill(made.c, 1, writes)
            assert driver.call("cuEventRecord", event, reads) == OK  # which changes nothing for the wait
            if "destroyed" in by:
                assert driver.call("cuEventDestroy", event) == OK
                assert driver.call("cuStreamDestroy", writes) == OK
        made.copy(made.b, made.a, reads)
        found.add(made.numbers()[1] == number)
    assert found == ({True} if by in ("an event", "a destroyed event and stream") else {True, False})


@pytest.mark.parametrize(
    ("flag", "expected"), [(0, {(1, 1, 3)}), (APART, {(1, 1, 3), (1, 255, 3), (1, 1, 2), (1, 255, 2)})]
)
def test_the_default_stream_and_others_wait_for_one_another(flag: int, expected: set[Any], driver: Driver) -> None:
    """Unless a stream was made to be apart."""
    found = set()
    for _ in range(4 * ROUNDS):
        made = Memories(driver, flag)
        (stream,) = made.streams
        made.fill(made.a, 1, stream)
        made.copy(made.b, made.a, 0)  # reads what the stream writes
        made.fill(made.c, 2, 0)
        made.fill(made.c, 3, stream)
        found.add(made.numbers())
    assert found == expected


def test_a_graph_is_work_of_the_stream_that_it_is_launched_in(driver: Driver) -> None:
    found = set()
    for number in range(1, ROUNDS + 1):
        made = Memories(driver, APART, APART)
        graph = captured(driver, "cuMemcpyDtoDAsync", made.b, made.a, 1)
        made.fill(made.a, number, made.streams[0])
        assert driver.call("cuGraphLaunch", graph, made.streams[number % 2]) == OK
        assert driver.call("cuGraphExecDestroy", graph) == OK
        found.add((number % 2, made.numbers()[1] == number))
    assert found == {(0, True), (1, True), (1, False)}
