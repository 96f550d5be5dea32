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
