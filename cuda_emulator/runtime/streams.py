"""Streams and events: what is left of them where every call finishes before it returns.

On a device a launch is put into a queue and the program goes on; a stream is such a queue. The emulator runs each
launch and each copy at once, in the order of the program, which is one of the orders that a device may choose. So
`synchronize` has nothing to wait for, and the time between two events is the time that the CPU took.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import KernelError


class Stream:
    """A queue of work that is always empty.

    name: what repr shows
    """

    def __init__(self, name: str = "Stream") -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name} of the emulator>"

    def synchronize(self) -> None:
        """Wait for the stream's work: all of it has been done."""

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """Synchronize at the end of the `with`."""
        yield self
        self.synchronize()

    def add_callback(self, callback: Callable[[Stream, int, Any], Any], arg: Any = None) -> None:
        """Call callback(stream, status, arg) when the work until now is done: that is now. status is 0, success."""
        callback(self, 0, arg)

    def async_done(self) -> asyncio.Future[Stream]:
        """A future of the running event loop that is done when the work until now is: it is done already."""
        future: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()
        future.set_result(self)
        return future


class Event:
    """A moment in a stream; two of them measure the time between, in milliseconds of the CPU's clock.

    timing: False for an event that keeps no time, which is cheaper on a device
    """

    def __init__(self, timing: bool = True) -> None:
        self.timing = timing
        self._seconds: float | None = None

    def record(self, stream: Stream | int = 0) -> None:
        """The moment is now: everything before it is done."""
        checked_stream(stream)
        self._seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Wait until the event has happened: it has."""

    def wait(self, stream: Stream | int = 0) -> None:
        """Let later work of `stream` wait for this event: it has happened."""
        checked_stream(stream)

    def query(self) -> bool:
        """Whether all work before the event is done: always."""
        return True

    def elapsed_time(self, event: Event) -> float:
        """Milliseconds from this event to `event`. Raises ValueError where one was not recorded or keeps no time."""
        return (_seconds(event, "second") - _seconds(self, "first")) * 1e3


def _seconds(event: Any, which: str) -> float:
    """When the event happened."""
    if not isinstance(event, Event):
        raise TypeError(f"elapsed_time: expected an event of cuda.event(), got a {type(event).__name__}")
    if not event.timing:
        raise ValueError(f"elapsed_time: the {which} event was made with timing=False and keeps no time")
    if event._seconds is None:
        raise ValueError(f"elapsed_time: the {which} event has not been recorded: call its record() first")
    return event._seconds


_DEFAULT = Stream("Default stream")


def checked_stream(stream: Any) -> Stream:
    """The stream that an argument called `stream` means: 0 is the default one. TypeError where it is none."""
    if isinstance(stream, Stream):
        return stream
    if isinstance(stream, int) and stream == 0:
        return _DEFAULT
    raise TypeError(f"stream: expected 0 or a stream of cuda.stream(), got {stream!r}, a {type(stream).__name__}")


def stream() -> Stream:
    """A new stream."""
    return Stream()


def default_stream() -> Stream:
    """The stream of whatever names none."""
    return _DEFAULT


def legacy_default_stream() -> Stream:
    """The default stream that on a device waits for all others."""
    return _DEFAULT


def per_thread_default_stream() -> Stream:
    """The default stream that on a device each host thread has one of."""
    return _DEFAULT


def external_stream(ptr: int) -> Stream:
    """Refused: a stream that another library made belongs to a device, and there is none."""
    raise KernelError("cuda.external_stream() is not supported by the emulator: there is no device whose stream it is")


def event(timing: bool = True) -> Event:
    """A new event."""
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Milliseconds from one recorded event to another."""
    return evtstart.elapsed_time(evtend)


def synchronize() -> None:
    """Wait for all work of the device: every launch is done when it returns."""
