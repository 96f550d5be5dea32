"""The record of streams: what races, and what a wait, an event or the default stream puts in an order."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda
from cuda_emulator.inspection import stream_record

KERNEL_OR_COPY = "use the same memory of the device, and nothing orders them"


@cuda.jit
def double(values, out):
    i = cuda.grid(1)
    if i < values.size:
        out[i] = 2 * values[i]


@pytest.fixture
def on() -> Any:
    """Two streams, pinned memory, two arrays, and what may be done with them."""
    of = SimpleNamespace(copies=cuda.stream(), compute=cuda.stream(), pinned=cuda.pinned_array(4), event=cuda.event())
    of.values, of.out = cuda.to_device(np.ones(4)), cuda.to_device(np.ones(4))
    of.pinned[:] = 1
    of.send = lambda: of.values.copy_to_device(of.pinned, stream=of.copies)
    of.launch = lambda: double[1, 4, of.compute](of.values, of.out)
    of.fetch = lambda: of.out.copy_to_host(stream=of.compute)
    of.change = lambda: of.pinned.__setitem__(slice(None), of.pinned + 1)
    return of


def races(*steps: Callable[[], Any]) -> list[str]:
    with stream_record.recorded() as record:
        for step in steps:
            step()
    return record.races


def test_a_copy_and_a_kernel_in_two_streams_race_unless_something_waits(on: Any) -> None:
    (race,) = races(on.send, on.launch)
    assert race.startswith(f"a copy to the device and, after it in the program, the kernel double {KERNEL_OR_COPY}")
    (race,) = races(on.launch, on.send)
    assert race.startswith(f"the kernel double and, after it in the program, a copy to the device {KERNEL_OR_COPY}")
    for wait in (on.copies.synchronize, cuda.synchronize):
        assert races(on.send, wait, on.launch) == []
    assert races(on.send, on.compute.synchronize, on.launch) != []
    assert races(on.launch, on.fetch, on.send) == []  # the values are there, so the kernel is over


def test_an_event_orders_what_was_before_it_in_its_stream(on: Any) -> None:
    def record() -> None:
        on.event.record(on.copies)

    def wait() -> None:
        on.event.wait(on.compute)

    assert races(on.send, record, wait, on.launch) == []
    assert races(on.send, record, on.event.synchronize, on.launch) == []
    assert races(record, on.send, wait, on.launch) != []
    assert races(on.send, record, on.launch, wait) != []


def test_the_default_stream_waits_for_all_others_and_they_for_it(on: Any) -> None:
    def launch() -> None:
        double[1, 4](on.values, on.out)

    assert races(on.send, launch) == []
    assert races(launch, on.send) == []
    assert races(on.send, launch, on.launch) == []
    assert races(on.send, cuda.default_stream().synchronize, on.launch) != []  # it waits for what is in it: nothing


def test_two_reads_and_two_arrays_race_with_nothing(on: Any) -> None:
    other, result = cuda.to_device(np.ones(4)), cuda.to_device(np.ones(4))
    assert races(on.send, lambda: double[1, 4, on.compute](other, on.out)) == []
    assert races(on.launch, lambda: double[1, 4, on.copies](on.values, result)) == []
    on.out.copy_to_device(np.zeros(4))
    assert races(on.launch, lambda: double[1, 4, on.copies](on.out[:2], result[:2])) != []  # a part of what it writes


def test_the_host_must_not_change_what_a_copy_may_still_read(on: Any) -> None:
    (race,) = races(on.send, on.change)
    assert race == "the host changes memory that a copy to the device may still read: nothing has waited for the copy"
    assert races(on.send, on.copies.synchronize, on.change) == []
    assert races(on.change, on.send) == []
    assert races(lambda: on.values.copy_to_device(on.pinned), on.change) == []  # in the default stream the host waits


def test_waits_are_noted_with_what_was_ordered_before(on: Any) -> None:
    with stream_record.recorded() as record:
        on.send()
        on.copies.synchronize()
        on.launch()
        cuda.synchronize()
    assert record.host_waits == [(1, on.copies), (2, None)]
    assert [operation.text for operation in record.operations] == ["a copy to the device", "the kernel double"]


def test_nothing_is_recorded_afterwards_not_even_after_an_error(on: Any) -> None:
    with pytest.raises(ZeroDivisionError), stream_record.recorded() as record:
        raise ZeroDivisionError
    on.send()
    assert record.operations == []
