"""What a launch costs the host, and what a CUDA graph saves.

    empty          a kernel without arguments
    six scalars    six float32 numbers
    six arrays     six device arrays: Numba looks at each again in every launch
    looked up      six arrays, with kernel[grid, block] written out in the loop, as learners write it
    replay         a captured graph of one launch with six arrays
    replay of 20   a captured graph of twenty: the cost of each of them

host: until the call has returned. done: until the device has finished, with many calls in its queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from shared.bench.timing import summarise

from .. import graphs
from ..arrays import zeros
from ..backend import cuda
from .part import NO_GPU, Part

LAUNCHES = 200
"""In one sample: far fewer than the queue holds, so that the host never waits for it."""

IN_GRAPH = 20


@cuda.jit
def empty() -> None:
    """Nothing."""


@cuda.jit
def six_scalars(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> None:
    """Nothing, with six arguments that are numbers or arrays alike."""


@cuda.jit
def six_arrays(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> None:
    """One thread adds one number, so that the arrays are used."""
    a[0] = b[0] + c[0] + d[0] + e[0] + f[0]


def run(part: Part) -> None:
    """A row for each kind of launch."""
    arrays = [zeros((32,), np.float32) for _ in range(6)]
    numbers = [np.float32(i) for i in range(6)]
    nothing, scalars, configured = empty[1, 32], six_scalars[1, 32], six_arrays[1, 32]
    kinds: dict[str, tuple[Callable[[], object], int]] = {
        "empty": (lambda: nothing(), 1),
        "six scalars": (lambda: scalars(*numbers), 1),
        "six arrays": (lambda: configured(*arrays), 1),
        "looked up": (lambda: six_arrays[1, 32](*arrays), 1),
    }
    for call, _ in kinds.values():
        call()
    if graphs.available():
        stream = cuda.stream()
        for name, count in (("replay", 1), (f"replay of {IN_GRAPH}", IN_GRAPH)):

            def launches(on: Any, count: int = count) -> None:
                for _ in range(count):
                    six_arrays[1, 32, on](*arrays)

            launches(stream)
            captured = graphs.capture(launches)
            kinds[name] = (lambda captured=captured: graphs.replay(captured, stream)), count  # type: ignore[misc]
    else:
        part.skip("replay", NO_GPU)
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for _ in range(5 if part.plan.tiny else 25):
        for name, (call, _) in kinds.items():
            samples[name].append(_sample(call, 20 if part.plan.tiny else LAUNCHES))
    for name, (_, count) in kinds.items():
        host, done = (summarise([seconds / count for seconds in each]) for each in zip(*samples[name], strict=True))
        part.add(
            f"{name}: {host.median * 1e6:.3g} µs on the host, {done.median * 1e6:.3g} µs until done",
            kind=name, host=asdict(host), done=asdict(done),
        )  # fmt: skip
    part.finish("ok")


def _sample(call: Callable[[], object], launches: int) -> tuple[float, float]:
    """Seconds of one launch: (until the host goes on, until the device is done)."""
    cuda.synchronize()
    start = time.perf_counter()
    for _ in range(launches):
        call()
    returned = time.perf_counter()
    cuda.synchronize()
    return (returned - start) / launches, (time.perf_counter() - start) / launches
