"""Stage 3: the step is a single call into C, which notes the clock after each of its operations (step_notes.py there).

What C does at once is one operation here: a convolution with its bias and activation, a layer's way back with the slope
of its activation, the loss with its gradient.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from shared.bench.kinds.operation_table import Work
from shared.bench.kinds.steps import Case, batch_of
from shared.contract import Stage, load_part
from shared.layers import Activate, Placed, parameters_of
from shared.profile import work
from shared.profile.operations import BACKWARD, BOTH, FORWARD, LOSS, Operation, combined, of_loss, of_update
from shared.profile.python_step import STANDSTILL
from shared.profile.step_profile import Noted


class CStep:
    """A Listener of stage 3."""

    clock = "wall"

    def __init__(self, stage: Stage, case: Case) -> None:
        self._notes = load_part(stage.name, "step_notes")
        self._network = stage.network.Network(case.network, dtype=case.dtype)
        x, y = batch_of(case)
        self._x, self._y = stage.arrays.asarray(x, case.dtype), y
        self._optimizer = stage.optimizers.SGD(STANDSTILL)
        done = self._notes.operations(self._network, case.batch)
        self._busy = [i for i, each in enumerate(done) if each is not None]
        self.notes = 1 + len(done)
        shapes = _Shapes(self._network.architecture.placed(), case.batch, self._x.itemsize)
        self.operations = [shapes.operation(done[i]) for i in self._busy]

    def step(self) -> object:
        """Take a step without listening to it."""
        return self._network.train_step(self._x, self._y, self._optimizer)

    def noted_step(self) -> Noted:
        """Take a step while C notes the clock: the same that time.time_ns reads."""
        with self._notes.listening(self.notes) as notes:
            begin = time.time_ns()
            self._network.train_step(self._x, self._y, self._optimizer)
            end = time.time_ns()
        if not notes.all():
            raise RuntimeError(f"profile: C noted {np.count_nonzero(notes)} times in a step, expected {self.notes}")
        began, lasted = (notes[:-1] - begin) / 1e9, np.diff(notes) / 1e9
        return Noted((end - begin) / 1e9, [(float(began[i]), float(lasted[i])) for i in self._busy])

    def cost_of_a_note(self) -> float:
        """Seconds of a note in C."""
        return float(self._notes.cost_of_a_note())


class _Shapes:
    """Turns what C says that it does into operations with names, shapes and work."""

    def __init__(self, placed: list[Placed], batch: int, itemsize: int) -> None:
        self._placed: Mapping[str, Placed] = {each.number: each for each in placed}
        self._input, self._classes = placed[0].input_shape, placed[-1].output_shape[0]
        self._first = next((each for each in placed if list(parameters_of(each))), None)
        self._batch, self._itemsize = batch, itemsize

    def operation(self, done: Any) -> Operation:
        """done: a NotedOperation of stage3_c/step_notes.py"""
        batch, itemsize = self._batch, self._itemsize
        if done.direction == "loss":
            return of_loss(BOTH, batch, self._classes, work.loss(LOSS, batch, self._classes, itemsize)[2])
        members = [self._placed[number] for number in done.layers]
        if done.direction == "update":
            count = sum(int(np.prod(each.shape)) for each in parameters_of(members[0]))
            return of_update(members[0].number, count, itemsize, calls=2)
        if done.kind == "arrange":
            shape = (batch, *self._input)
            moved = Work(0, 2 * itemsize * int(np.prod(shape)))
            return Operation("arrange side by side", "", FORWARD, shape, shape, *moved)
        if done.kind == "join" and done.direction == BACKWARD:  # the gradients are added where the block began
            members = members[1:]
        # Of a maximum pool with the ReLU that was before it, the pool.
        main = next((each for each in members if not isinstance(each.layer, Activate)), members[0])
        return self._of_layers(done, members, main)

    def _of_layers(self, done: Any, members: list[Placed], main: Placed) -> Operation:
        batch, itemsize = self._batch, self._itemsize
        back = done.direction == BACKWARD
        needed = main is not self._first
        sizes: dict[str, Any] = {"index_bytes": itemsize}
        if back:
            own = work.backward(main, batch, itemsize, needs_grad_input=needed, **sizes)
        else:
            own = work.forward(main, batch, itemsize, **sizes)
        for each in members:
            if each is not main and isinstance(each.layer, Activate):
                numbers = batch * int(np.prod(main.output_shape))
                second = work.activation(each.layer.name, numbers, itemsize)[back]
                own = work.fused(own, second, done.in_pass)
        return combined(members, main, BACKWARD if back else FORWARD, batch, own, needed)
