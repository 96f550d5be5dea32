"""The driver by itself: each call answers with the error that a device's driver would give. What it writes down as a
mistake is never the success of the call."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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


def test_memory_of_the_host_is_not_filled_by_the_device(driver: Driver) -> None:
    assert driver.call("cuMemsetD8", HOST, 0, 8) == INVALID


def test_what_is_known_of_memory_ends_when_it_is_freed(driver: Driver) -> None:
    begin, size = c_void_p(), ctypes.c_uint64()
    memory = driver.made("cuMemAlloc", 64)
    inside = c_void_p(memory.value + 60)
    assert driver.call("cuMemGetAddressRange", byref(begin), byref(size), inside) == OK
    assert (begin.value, size.value) == (memory.value, 64)
    assert driver.call("cuMemFree", memory) == OK
    assert driver.call("cuMemGetAddressRange", byref(begin), byref(size), inside) == NOT_FOUND
    assert driver.call("cuPointerGetAttribute", byref(begin), 2, inside) == INVALID
    assert driver.call("cuMemFree", memory) == INVALID


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


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cuLibraryLoadData", (byref(c_void_p()), b".version", 0, 0, 0, 0, 0, 0)),
        ("cuCtxSynchronize", ()),
        ("cuMemFree", (HOST,)),
    ],
)
def test_what_may_not_happen_during_a_capture_is_refused(name: str, arguments: tuple[Any, ...], driver: Driver) -> None:
    assert driver.call("cuStreamBeginCapture", driver.made("cuStreamCreate", APART), 0) == OK
    assert driver.call(name, *arguments) == CAPTURE


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


def test_a_wait_for_a_stream_finishes_its_work_and_perhaps_some_of_the_others(driver: Driver) -> None:
    both, pinned = set(), ctypes.cast(driver.made("cuMemHostAlloc", 2, 0), ctypes.POINTER(ctypes.c_uint8))
    places = [c_void_p(ctypes.addressof(pinned.contents) + i) for i in range(2)]
    for number in range(1, ROUNDS + 1):
        made = Memories(driver, APART, APART)
        for place, stream in zip(places, made.streams, strict=True):
            made.fill(place, number, stream)
        assert driver.call("cuStreamSynchronize", made.streams[0]) == OK
        assert pinned[0] == number
        both.add(pinned[1] == number)
        made.numbers()
        assert pinned[1] == number
    assert both == {True, False}


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


def test_an_event_is_reached_when_it_is_asked_for_often_enough(driver: Driver) -> None:
    made = Memories(driver, APART, APART)
    event = driver.made("cuEventCreate", 0)
    assert driver.call("cuEventQuery", event) == OK  # it was never recorded
    for stream in made.streams:
        for _ in range(5):
            made.fill(made.a, 1, stream)
    assert driver.call("cuEventRecord", event, made.streams[1]) == OK
    answers = [driver.call("cuEventQuery", event) for _ in range(12)]
    assert answers[:4] == [600] * 4  # CUDA_ERROR_NOT_READY
    assert answers[-1] == OK


def test_a_stream_that_was_destroyed_gets_no_more_work(driver: Driver) -> None:
    made = Memories(driver, 0)
    made.fill(made.a, 5, made.streams[0])
    assert driver.call("cuStreamDestroy", made.streams[0]) == OK
    assert driver.call("cuMemsetD8Async", made.a, 6, 1, made.streams[0]) == 400  # CUDA_ERROR_INVALID_HANDLE
    assert driver.call("cuStreamDestroy", made.streams[0]) == 400
    assert made.numbers()[0] == 5


@pytest.mark.parametrize(("mib", "expected"), [(1, b"\xff"), (257, b"\0")])
def test_new_memory_is_full_of_nan_unless_it_is_large(mib: int, expected: bytes, driver: Driver) -> None:
    memory = driver.made("cuMemAlloc", mib << 20)
    assert driver.call("cuMemcpyDtoH", HOST, c_void_p(memory.value + (mib << 20) - 64), 64) == OK
    assert HOST.raw[:64] == expected * 64


def test_threads_may_call_it_at_once(driver: Driver) -> None:
    """Each sees its own memory only, and what it has written there."""

    def rounds(number: int) -> bool:
        mine, right = ctypes.create_string_buffer(bytes([number]) * 999), True
        stream = driver.made("cuStreamCreate", APART)
        for _ in range(500):
            found = ctypes.create_string_buffer(999)
            first, second = (driver.made("cuMemAlloc", 999) for _ in range(2))
            assert driver.call("cuMemcpyHtoDAsync", first, mine, 999, stream) == OK
            assert driver.call("cuMemcpyDtoDAsync", second, first, 999, stream) == OK
            assert driver.call("cuMemcpyDtoHAsync", found, second, 999, stream) == OK
            right &= found.raw == mine.raw[:999]
            assert driver.call("cuMemFree", first) == driver.call("cuMemFree", second) == OK
        return right

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(rounds, range(1, 5)))


def test_another_thread_may_load_and_free_while_one_captures(driver: Driver) -> None:
    memory = driver.made("cuMemAlloc", 64)
    assert driver.call("cuStreamBeginCapture", driver.made("cuStreamCreate", APART), 0) == OK
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(driver.call, "cuMemFree", memory).result() == OK


def test_contexts_lie_upon_one_another_up_to_a_limit(driver: Driver) -> None:
    assert [driver.call("cuCtxPushCurrent", 1) for _ in range(66)] == [OK] * 64 + [INVALID] * 2
    context = c_void_p()
    assert [driver.call("cuCtxPopCurrent", byref(context)) for _ in range(65)] == [OK] * 64 + [201]
