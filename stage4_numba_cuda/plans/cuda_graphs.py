"""CUDA graphs: a list of launches recorded once, then given to the device as one order.

A launch by Numba takes 19 to 70 microseconds of the host's time (NVIDIA H100 80GB HBM3, 2026-11-22), most of it for the
arguments; a small network's kernels take less than that. A captured graph has its arguments inside and is launched by
one call of the driver (cuGraphLaunch). Its disadvantage: every replay has the same addresses and numbers. So values
that change from step to step have to lie in device memory, where the kernels read them.

Needs a GPU. The calls are those of the CUDA driver API, section "Graph Management", through cuda.bindings, which
comes with numba-cuda.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..arrays import Array, address
from ..backend import BACKEND, cuda

SWITCHES = ("NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM", "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM")
PER_THREAD = any(os.environ.get(name, "0") not in ("", "0") for name in SWITCHES)
"""Whether each thread has a default stream of its own, which waits for no other. numba-cuda looks once, too."""

MOST = 16
"""Graphs that are kept: one for each batch size, optimizer and so on that is in use."""


def available() -> bool:
    """Whether this backend has graphs, and its default stream waits for the others, which copies here rely on."""
    return BACKEND.name == "gpu" and not PER_THREAD


class Graphs:
    """Captured steps by a key of whatever their arguments depend on, on one stream."""

    def __init__(self) -> None:
        self.stream = cuda.stream() if available() else 0
        self._captured: dict[Hashable, Any] = {}
        self._seen: set[Hashable] = set()
        self._pinned: dict[Hashable, list[Any]] = {}
        # Not at exit: the driver may be gone by then, and takes everything with it anyway.
        weakref.finalize(self, _destroy_all, self._captured).atexit = False

    def launch(self, key: Hashable, launches: Callable[[Any], None], times: int = 1) -> None:
        """Launch what `launches(stream)` launches, so many times: as it stands the first time, from a graph after that.

        The first time compiles the kernels and loads them, which must not happen while a graph is captured.
        """
        if key not in self._captured and key not in self._seen:
            launches(self.stream)
            self._seen.add(key)
            times -= 1
        if times and key not in self._captured:
            if len(self._captured) >= MOST:
                destroy(self._captured.pop(next(iter(self._captured))))
            self._captured[key] = capture(launches)
        for _ in range(times):
            replay(self._captured[key], self.stream)

    def pinned(self, key: Hashable, arrays: Sequence[Array]) -> list[Any]:
        """The host's memory for copies of these arrays in a captured step, which the system may not move; the same for
        a key as long as it is among the last MOST. Graphs of such a step have keys that are tuples with `key` first."""
        if key not in self._pinned:
            oldest = [next(iter(self._pinned))] if len(self._pinned) >= MOST else []
            for gone in (key, *oldest):  # graphs that copy from memory that nobody holds any more
                self._pinned.pop(gone, None)
                for each in [other for other in self._captured if isinstance(other, tuple) and other[0] == gone]:
                    destroy(self._captured.pop(each))
            self._pinned[key] = [cuda.pinned_array(array.shape, array.dtype) for array in arrays]
        return self._pinned[key]


def capture(launches: Callable[[Any], None]) -> Any:
    """What `launches(stream)` launches, as a graph that can be replayed. Nothing runs yet.

    The stream is one for this alone, and waits for no other: a capture on a stream that does would be broken by any
    copy on the default stream, another thread's too. Numba's freeing of memory is put off for the same reason.
    """
    from cuda.bindings import driver

    (stream,) = _check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    handle = int(stream)
    try:
        with cuda.defer_cleanup():
            _check(driver.cuStreamBeginCapture(handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
            try:
                launches(cuda.external_stream(handle))
            except BaseException:  # Ctrl-C, too
                _check(driver.cuGraphDestroy(*_check(driver.cuStreamEndCapture(handle))))
                raise
            (graph,) = _check(driver.cuStreamEndCapture(handle))
    finally:
        _check(driver.cuStreamDestroy(handle))
    try:
        (executable,) = _check(driver.cuGraphInstantiate(graph, 0))
    finally:
        _check(driver.cuGraphDestroy(graph))
    return executable


def replay(executable: Any, stream: Any) -> None:
    """Give the captured launches to the device; returns at once."""
    from cuda.bindings import driver

    _check(driver.cuGraphLaunch(executable, int(stream.handle)))


def copy_on_device(source: Array, target: Array, stream: Any) -> None:
    """Copy an array of the device into another that has as many numbers of the same dtype.

    numba-cuda's copy_to_device slices both arrays first, which was most of the host's part of a step: 96 of the 140 ms
    that 300 steps took under a profiler (NVIDIA H200, 2026-11-26).
    """
    if BACKEND.name != "gpu" or not source.is_c_contiguous():
        target.copy_to_device(source.reshape(target.shape), stream=stream)
        return
    from cuda.bindings import driver

    _check(driver.cuMemcpyDtoDAsync(address(target), address(source), target.nbytes, int(stream.handle)))


def destroy(executable: Any) -> None:
    """Give back what a captured graph holds."""
    from cuda.bindings import driver

    _check(driver.cuGraphExecDestroy(executable))


def _destroy_all(captured: dict[Hashable, Any]) -> None:
    for executable in captured.values():
        destroy(executable)


def _check(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """A driver call's results; RuntimeError with the driver's own name for what went wrong."""
    from cuda.bindings import driver

    error, *results = answer
    if error != driver.CUresult.CUDA_SUCCESS:
        _, name = driver.cuGetErrorName(error)
        raise RuntimeError(f"CUDA graphs: the driver says {name.decode() if name else error}")
    return tuple(results)
