"""shared.bench.measuring.device_clock: the device sleeps until the host has filled its queue."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from shared.bench.measuring import device_clock

GPU = SimpleNamespace(emulated=False, name="gpu")


def test_the_device_sleeps_until_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    class Event:
        def record(self) -> None: ...
        def synchronize(self) -> None: ...

        def query(self) -> bool:
            return slept[-1] < 0.008  # the device woke up before the host had filled the queue

        def elapsed_time(self, other: "Event") -> float:
            return 6.0

    put_off: list[bool] = []

    @contextmanager
    def putting_off() -> Iterator[None]:
        put_off.append(True)
        yield
        put_off.append(False)

    def call() -> None:
        assert put_off[-1]  # freeing memory would wait for the device

    sleeper = device_clock.Sleeper()
    monkeypatch.setattr(device_clock, "BACKEND", GPU)
    monkeypatch.setattr(device_clock, "cuda", SimpleNamespace(event=Event, defer_cleanup=putting_off))
    monkeypatch.setattr(device_clock.Sleeper, "lie_down", lambda self: slept.append(self.seconds))
    assert device_clock.device_sample(call, 3, sleeper) == 0.002
    assert slept == [0.002, 0.004, 0.008]
    assert device_clock.device_sample(call, 3, sleeper) == 0.002
    assert slept[3:] == [0.008]


def test_the_sleeping_kernel_comes_back() -> None:
    device_clock.sleep[1, 1](np.int64(2))
