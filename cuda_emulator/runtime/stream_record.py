"""A record of copies, launches and waits, and the races between those that nothing puts in an order.

The emulator does everything at once, in the order of the program. On a device each stream is a queue of its own: two
operations are in an order only if they are in one queue, or if a wait lies between them. Here each operation gets the
list of what is certain to be over when it begins: for each stream, how many of its operations. Two operations of which
neither is certain to be over when the other begins race if they share memory and one of them writes it.

    with recorded() as record:
        array.copy_to_device(pinned, stream=copies)
        kernel[1, 32, compute](array)
    assert "nothing orders" in record.races[0]

A launch reads all its arrays, and writes those that it changes. The host is a queue, too. A copy from host memory reads
it until something has waited for the copy: a record compares what the memory holds then with what it held when the copy
was ordered. The default stream waits for all others, and all others for it, as on a device that has not been told
otherwise (`NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .devicearray import DeviceNDArray
from .streams import Event, Stream, default_stream, observers

Order = dict[Stream, int]
"""How many operations of each stream are certain to be over."""


@dataclass(frozen=True, eq=False)
class Operation:
    """A copy or a launch: the `number`-th of its stream, from 1.

    text: as a sentence names it; over: what is certain to be over when it begins
    reads, writes: memory of the device; host: memory that a copy reads, and what it held when the copy was ordered
    """

    text: str
    stream: Stream
    number: int
    over: Order
    reads: tuple[np.ndarray, ...] = ()
    writes: tuple[np.ndarray, ...] = ()
    host: tuple[np.ndarray, np.ndarray] | None = None

    def is_over_before(self, order: Order) -> bool:
        """Whether the operation is certain to be over where so many of each stream are."""
        return order.get(self.stream, 0) >= self.number


@dataclass(eq=False)
class Record:
    """The operations of a program, in its order.

    host_waits: for each wait of the host (how many operations had been ordered before it, the stream; None: the device)

    races: a sentence for each pair without an order, and for each change of memory that a copy may still read
    """

    operations: list[Operation] = field(default_factory=list)
    host_waits: list[tuple[int, Stream | None]] = field(default_factory=list)
    races: list[str] = field(default_factory=list)
    _host: Order = field(default_factory=dict)
    _streams: dict[Stream, Order] = field(default_factory=dict)
    _events: dict[Event, Order] = field(default_factory=dict)
    _before_launch: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def observe(self, what: str, *details: Any) -> None:
        """What `streams.observe` tells."""
        match what, details:
            case "copy to device", (stream, target, source, from_device):
                host = None if from_device else (source, source.copy())
                reads: tuple[np.ndarray, ...] = (source,) if from_device else ()
                self._add(Operation("a copy to the device", *self._next(stream), reads, (target,), host))
            case "copy to host", (stream, source, target):
                self._add(Operation("a copy to the host", *self._next(stream), (source,)))
                if target is None:  # the caller has the numbers
                    self._wait(stream)
            case "launch", (_, _, arguments):
                arrays = [each._array for each in arguments if isinstance(each, DeviceNDArray)]
                self._before_launch = [(each, each.copy()) for each in arrays]
            case "launched", (stream, name, _):
                changed = [
                    array
                    for array, before in self._before_launch
                    if not np.array_equal(array, before, equal_nan=before.dtype.kind in "fc")
                ]
                reads = tuple(array for array, _ in self._before_launch)
                self._add(Operation(f"the kernel {name}", *self._next(stream), reads, tuple(changed)))
            case "host waits for stream", (stream,):
                self._wait(stream)
            case "host waits for device", ():
                self._wait(None)
            case "event", (event, stream):
                self._events[event] = dict(self._certain(stream))
            case "host waits for event", (event,):
                self._host_knows(self._events.get(event, {}))
            case "stream waits for event", (event, stream):
                _join(self._streams.setdefault(stream, {}), self._events.get(event, {}))

    def _next(self, stream: Stream) -> tuple[Stream, int, Order]:
        """(stream, number, over) of its next operation, which counts as ordered from now on."""
        over = dict(self._certain(stream))
        _join(over, self._host)
        number = over.get(stream, 0) + 1
        self._streams[stream] = {**over, stream: number}
        return stream, number, over

    def _certain(self, stream: Stream) -> Order:
        """What is certain to be over when the stream has done all that is in it."""
        own = self._streams.setdefault(stream, {})
        default = default_stream()
        for other in list(self._streams) if stream is default else [default]:
            _join(own, self._streams.get(other, {}))
        return own

    def _add(self, operation: Operation) -> None:
        memory = (*operation.reads, *operation.writes)
        for other in self.operations:
            if other.is_over_before(operation.over):
                continue
            shares = _overlap(operation.writes, (*other.reads, *other.writes)) or _overlap(other.writes, memory)
            if shares:
                self.races.append(
                    f"{other.text} and, after it in the program, {operation.text} use the same memory of the device, "
                    "and nothing orders them: they are in two streams, and no wait is between them"
                )
        self.operations.append(operation)
        if operation.stream is default_stream() and operation.host is not None:
            self._wait(operation.stream)

    def _wait(self, stream: Stream | None) -> None:
        self.host_waits.append((len(self.operations), stream))
        for each in [stream] if stream is not None else list(self._streams):
            self._host_knows(self._streams.get(each, {}))

    def _host_knows(self, order: Order) -> None:
        before = dict(self._host)
        _join(self._host, order)
        for operation in self.operations:
            if operation.is_over_before(self._host) and not operation.is_over_before(before):
                self._compare(operation)

    def _compare(self, operation: Operation) -> None:
        if operation.host is not None and not np.array_equal(*operation.host):
            self.races.append(
                f"the host changes memory that {operation.text} may still read: nothing has waited for the copy"
            )

    def finish(self) -> None:
        """The end of the program: what copies still read has been compared."""
        self._wait(None)
        self.host_waits.pop()


def _join(order: Order, more: Order) -> None:
    for stream, number in more.items():
        order[stream] = max(order.get(stream, 0), number)


def _overlap(some: tuple[np.ndarray, ...], others: tuple[np.ndarray, ...]) -> bool:
    return any(np.may_share_memory(one, other) for one in some for other in others)


@contextmanager
def recorded() -> Iterator[Record]:
    """Record what the host orders meanwhile."""
    record = Record()
    observers.append(record.observe)
    try:
        yield record
        record.finish()
    finally:
        observers.remove(record.observe)
