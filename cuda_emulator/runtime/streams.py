"""Streams and events. On the emulator every launch and copy has finished when its call returns.

On a device a launch is put into a queue, a stream, and the program goes on. The emulator runs each launch and each copy
at once, in the order of the program, which is one of the orders that a device may choose. So `synchronize` never waits,
and the time between two events is the CPU's time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import KernelError

if TYPE_CHECKING:
    import asyncio


observers: list[Callable[..., None]] = []
"""Functions that are told of copies, launches and waits; see runtime/stream_record.py."""


def observe(what: str, *details: Any) -> None:
    """Tell the observers: what happens, and to which stream and arrays."""
    for observer in observers:
        observer(what, *details)


class Stream:
    """A queue of work that is always empty.

    name: the name in its repr
    """

    def __init__(self, name: str = "Stream") -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name} of the emulator>"

    def synchronize(self) -> None:
        """No-op wait: the stream's work has finished."""
        observe("host waits for stream", self)

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """Call synchronize() at the end of the `with`."""
        yield self
        self.synchronize()

    def add_callback(self, callback: Callable[[Stream, int, Any], Any], arg: Any = None) -> None:
        """Call callback(stream, status, arg) at once, since the work so far has finished. status is 0, success."""
        callback(self, 0, arg)

    def async_done(self) -> asyncio.Future[Stream]:
        """A future of the running event loop. It is done already, since the work so far has finished."""
        import asyncio  # who has an event loop has imported it; others do not wait for it

        future: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()
        future.set_result(self)
        return future


class Event:
    """A point in time in a stream. The time between two events is in milliseconds of the CPU's clock.

    timing: False for an event without a time, which is cheaper on a device
    """

    def __init__(self, timing: bool = True) -> None:
        self.timing = timing
        self._seconds: float | None = None

    def record(self, stream: Stream | int = 0) -> None:
        """Record the current time: all earlier work has finished."""
        observe("event", self, checked_stream(stream))
        self._seconds = time.perf_counter()

    def synchronize(self) -> None:
        """No-op wait: the event has happened."""
        observe("host waits for event", self)

    def wait(self, stream: Stream | int = 0) -> None:
        """No-op wait of `stream` for this event: it has happened."""
        observe("stream waits for event", self, checked_stream(stream))

    def query(self) -> bool:
        """Always True: all work before the event has finished."""
        return True

    def elapsed_time(self, event: Event) -> float:
        """Milliseconds from this event to `event`. Raises ValueError if one is not recorded or has no time."""
        return (_seconds(event, "second") - _seconds(self, "first")) * 1e3


def _seconds(event: Any, which: str) -> float:
    """The time of the event."""
    if not isinstance(event, Event):
        raise TypeError(f"elapsed_time: expected an event of cuda.event(), got a {type(event).__name__}")
    if not event.timing:
        raise ValueError(f"elapsed_time: the {which} event was made with timing=False and keeps no time")
    if event._seconds is None:
        raise ValueError(f"elapsed_time: the {which} event has not been recorded: call its record() first")
    return event._seconds


_DEFAULT = Stream("Default stream")


def checked_stream(stream: Any) -> Stream:
    """The stream of an argument `stream`: 0 and None mean the default stream. Raises TypeError for other values."""
    if isinstance(stream, Stream):
        return stream
    if stream is None or (isinstance(stream, int) and stream == 0):
        return _DEFAULT
    raise TypeError(f"stream: expected 0 or a stream of cuda.stream(), got {stream!r}, a {type(stream).__name__}")


def stream() -> Stream:
    """A new stream."""
    return Stream()


def default_stream() -> Stream:
    """The stream of operations without a stream argument."""
    return _DEFAULT


def legacy_default_stream() -> Stream:
    """The default stream; on a device it waits for all other streams."""
    return _DEFAULT


def per_thread_default_stream() -> Stream:
    """The default stream; on a device each host thread has its own."""
    return _DEFAULT


def external_stream(ptr: int) -> Stream:
    """Raises KernelError: a stream of another library belongs to a device, and there is none."""
    raise KernelError(
        "cuda.external_stream() is not supported by the emulator: the stream belongs to a device, and there is none"
    )


def event(timing: bool = True) -> Event:
    """A new event."""
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Milliseconds from one recorded event to another."""
    return evtstart.elapsed_time(evtend)


def synchronize() -> None:
    """No-op wait for the device: every launch has finished when its call returns."""
    observe("host waits for device")
