"""Stage 4: the step is a list of launches and copies, and a mark is put before and after each of them.

Where a GPU runs the kernels, a mark is an event in its queue, so that the times are the device's own. On the emulator a
launch has ended when it returns, and a mark is this computer's clock: such times say nothing about a GPU.

An mlp takes a few large kernels, each an entry of its own. Any other network launches operation by operation
(stage4_numba_cuda/plans/operation_launches.py), and what an operation launches is one entry here. A CUDA graph cannot
be looked into, so on a GPU the step is the rung below it: the same kernels, launched one by one.

Import this module only where stage 4 is measured: its backend decides about the device.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shared.bench.kinds.steps import Case, batch_of
from shared.bench.measuring import device_clock, gpu
from shared.contract import Stage, load_part
from shared.profile.kernel_work import Kernels, Launched
from shared.profile.operations import Operation
from shared.profile.python_step import STANDSTILL
from shared.profile.step_profile import Noted

MARKS_FOR_COST = 200


@dataclass
class _Open:
    """What is being launched: its place in the list, and how many launches it has had."""

    place: int
    calls: int = 0


class Marks:
    """Notes when each launch and copy began and ended, by the device's clock where there is one."""

    def __init__(self, on_device: bool) -> None:
        self._on_device = on_device
        self.entries: list[tuple[Launched, Any, Any]] = []
        self._open: _Open | None = None
        self.calls: list[int] = []
        self.begin = self._now()

    def _now(self) -> Any:
        if not self._on_device:
            return time.perf_counter_ns()
        event = device_clock.cuda.event()
        event.record()
        return event

    def around(self, entry: Launched, call: Callable[[], Any]) -> Any:
        """Call with a mark before and after; a launch inside of another entry is only counted."""
        if self._open is not None:
            self._open.calls += entry.kind == "launch"
            return call()
        self._open = _Open(len(self.entries))
        try:
            begin = self._now()
            result = call()
            self.entries.append((entry, begin, self._now()))
        finally:
            self.calls.append(max(1, self._open.calls))
            self._open = None
        return result

    def spans(self) -> list[tuple[float, float]]:
        """(began, seconds) of each entry."""
        if self._on_device and self.entries:
            self.entries[-1][2].synchronize()
        return [(self._between(self.begin, begin), self._between(begin, end)) for _, begin, end in self.entries]

    def _between(self, one: Any, other: Any) -> float:
        return float(one.elapsed_time(other)) / 1e3 if self._on_device else (other - one) / 1e9


class KernelStep:
    """A Listener of stage 4."""

    def __init__(self, stage: Stage, case: Case) -> None:
        self._on_device = gpu.on_gpu(stage)
        self.clock = gpu.CLOCK if self._on_device else "wall"
        self._stage = stage
        self._network = stage.network.Network(case.network, dtype=case.dtype)
        x, y = batch_of(case)
        self._x, self._y = stage.arrays.asarray(x, case.dtype), y
        self._optimizer = stage.optimizers.SGD(STANDSTILL)
        self._launches = load_part(stage.name, "plans.operation_launches").LAUNCH
        self._update = load_part(stage.name, "plans.optimizer_update").Update
        self.step()  # compiles the kernels
        marks = self._noted()[1]
        kernels = Kernels(self._network, case.batch, 4 if case.dtype == "float32" else 8)
        found = kernels.operations([what for what, _, _ in marks.entries])
        self._expected = [what.name for what, _, _ in marks.entries]
        self.operations: Sequence[Operation] = [
            replace(each, calls=calls) for each, calls in zip(found, marks.calls, strict=True)
        ]
        self.notes = 1 + 2 * len(self.operations)

    def step(self) -> object:
        """Take a step without listening to it."""
        return self._stage.network.STEP_LADDER["few_kernels"](self._network, self._x, self._y, self._optimizer)

    def noted_step(self) -> Noted:
        """Take a step with a mark before and after every launch and copy."""
        total, marks = self._noted()
        names = [what.name for what, _, _ in marks.entries]
        if names != self._expected:
            raise RuntimeError(f"profile: a step launched {len(names)} things, not the {len(self._expected)} before it")
        return Noted(total, marks.spans())

    def cost_of_a_note(self) -> float:
        """Seconds between two marks with nothing between them."""
        marks = Marks(self._on_device)
        nothing = Launched("copy", "")
        for _ in range(MARKS_FOR_COST):
            marks.around(nothing, lambda: None)
        return float(np.median([seconds for _, seconds in marks.spans()]))

    def _noted(self) -> tuple[float, Marks]:
        marks = Marks(self._on_device)
        with self._marked(marks):
            begin = time.perf_counter()
            marks.begin = marks._now()
            self.step()
            total = time.perf_counter() - begin
        return total, marks

    @contextmanager
    def _marked(self, marks: Marks) -> Iterator[None]:
        """Within this block every launch and copy of the process is marked."""
        launches, update = self._launches, self._update
        configured = type(device_clock.sleep[1, 1])
        arrays = type(self._x)
        before = dict(launches)
        owners = {name: _owner(arrays, name) for name in ("copy_to_device", "copy_to_host")}
        methods = {name: vars(owner)[name] for name, owner in owners.items()}
        launch: Any = configured.__call__
        moved: Any = update.launch

        def launched(own: Any, *arguments: Any, **options: Any) -> Any:
            entry = Launched("launch", own.dispatcher.py_func.__name__, shapes=_shapes(arguments))
            return marks.around(entry, lambda: launch(own, *arguments, **options))

        def copied(name: str) -> Callable[..., Any]:
            original = methods[name]

            def copy(own: Any, *arguments: Any, **options: Any) -> Any:
                size = math.prod(own.shape) * np.dtype(own.dtype).itemsize
                entry = Launched("copy", name.replace("_", " "), shapes=(tuple(own.shape),), bytes=size)
                return marks.around(entry, lambda: original(own, *arguments, **options))

            return copy

        def ordered(kind: str) -> Callable[..., Any]:
            original = before[kind]

            def order(step: Any, *arguments: Any) -> Any:
                return marks.around(Launched("operation", kind, step=step), lambda: original(step, *arguments))

            return order

        def updated(own: Any, stream: Any) -> Any:
            return marks.around(Launched("update", "update"), lambda: moved(own, stream))

        try:
            configured.__call__ = launched
            for name, owner in owners.items():
                setattr(owner, name, copied(name))
            launches.update({kind: ordered(kind) for kind in before})
            update.launch = updated
            yield
        finally:
            configured.__call__ = launch
            for name, owner in owners.items():
                setattr(owner, name, methods[name])
            launches.update(before)
            update.launch = moved


def _owner(kind: type, name: str) -> type:
    """The class that has the method of this name."""
    return next(each for each in kind.__mro__ if name in vars(each))


def _shapes(arguments: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(each.shape) for each in arguments if hasattr(each, "shape") and len(each.shape) > 1)
