"""The cost of a launch for the host, and what a CUDA graph saves.

    empty          a kernel without arguments
    six scalars    six float32 numbers
    six arrays     six device arrays: Numba looks at each of them again in every launch
    looked up      six arrays, with kernel[grid, block] written out in the loop, as learners write it
    replay         a captured graph of one launch with six arrays
    replay of 20   a captured graph of twenty: the cost of each of them

Import this module only to measure or to test it: it makes kernels for the backend of stage 4.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shared.bench.measuring.timing import Measurement, summarise
from shared.contract import STAGES, load_part

arrays, graphs = (load_part(STAGES[3], name) for name in ("arrays", "plans.cuda_graphs"))
cuda = load_part(STAGES[3], "backend").cuda

LAUNCHES = 200
"""In one sample: far fewer than the queue holds, so that the host never waits for it."""

IN_GRAPH = 20


class Launch(NamedTuple):
    """Seconds of one launch. host: until the call has returned; done: until the device has finished, with many calls in
    its queue."""

    kind: str
    host: Measurement
    done: Measurement


@cuda.jit
def empty() -> None:
    """A kernel that does nothing."""


@cuda.jit
def six_scalars(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> None:
    """A kernel with six arguments that does nothing."""


@cuda.jit
def six_arrays(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> None:
    """One thread adds one number, so that the arrays are used."""
    a[0] = b[0] + c[0] + d[0] + e[0] + f[0]


def launches(samples: int = 25, calls: int = LAUNCHES) -> list[Launch]:
    """Every kind of launch, in turns; graphs only where the backend has them. calls: of one sample"""
    own = [arrays.zeros((32,), np.float32) for _ in range(6)]
    numbers = [np.float32(i) for i in range(6)]
    nothing, scalars, configured = empty[1, 32], six_scalars[1, 32], six_arrays[1, 32]
    kinds: dict[str, tuple[Callable[[], object], int]] = {
        "empty": (lambda: nothing(), 1),
        "six scalars": (lambda: scalars(*numbers), 1),
        "six arrays": (lambda: configured(*own), 1),
        "looked up": (lambda: six_arrays[1, 32](*own), 1),
    }
    for call, _ in kinds.values():
        call()
    if graphs.available():
        kinds |= {"replay": (_replay(own, 1), 1), f"replay of {IN_GRAPH}": (_replay(own, IN_GRAPH), IN_GRAPH)}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for _ in range(samples):
        for name, (call, _) in kinds.items():
            taken[name].append(_sample(call, calls))
    measured = []
    for name, (_, count) in kinds.items():
        host, done = (summarise(seconds).of_one(count) for seconds in zip(*taken[name], strict=True))
        measured.append(Launch(name, host, done))
    return measured


def _replay(own: list[Any], count: int) -> Callable[[], object]:
    """A call that replays a graph of so many launches."""
    stream = cuda.stream()

    def launch(on: Any) -> None:
        for _ in range(count):
            six_arrays[1, 32, on](*own)

    launch(stream)
    captured = graphs.capture(launch)
    return lambda: graphs.replay(captured, stream)


def _sample(call: Callable[[], object], calls: int) -> tuple[float, float]:
    """Seconds of one call: (until the host goes on, until the device is done)."""
    cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    returned = time.perf_counter()
    cuda.synchronize()
    return (returned - start) / calls, (time.perf_counter() - start) / calls
