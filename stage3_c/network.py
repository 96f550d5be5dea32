"""A network in C: its parts, one after the other, and the plan by which a whole step is a single call into C.

    x -> part 1 -> part 2 -> … -> outputs -> loss

The architecture (shared/architectures.py) says which parts there are. Backward goes through the parts in reverse, each
turning dL/d(its output) into dL/d(its input). `_forward` and `_step` are this plain way, a call into C for each part in
each direction. Its numbers are those of the plan up to rounding, and the plan (plan.py, csrc/network.c) is the faster
way: every architecture has one, so `_last_outputs` and `_checked_step` always take it. steps.py has the ladder between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from shared import layers
from shared.network_base import NetworkBase

from . import library, losses, parts
from .arrays import Array, aligned_copy, as_labels, asarray
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .plan import Plan
from .steps import STEP_LADDER, mask_addresses

__all__ = ["STEP_LADDER", "Network"]

NOTHING_TO_PUT_BACK = contextlib.nullcontext()


class Network(NetworkBase):
    __doc__ = f"""{NetworkBase.__doc__}
    A network works in memory of its own, so only one thread at a time may use it; different networks do not mind.

    >>> network = Network([2, 3, 1], activation="tanh", loss="mean_squared_error", seed=1)
    >>> network.forward([[0.5, -0.5]]).shape
    (1, 1)
    """

    losses: ClassVar = losses
    kinds: ClassVar = {
        layers.Conv: Conv2d,
        layers.MaxPool: parts.MaxPooling,
        layers.AveragePool: parts.AveragePooling,
        layers.BatchNorm: BatchNorm,
        layers.Activate: parts.Activation,
        layers.Flatten: parts.Flattening,
        layers.Dense: Dense,
        layers.Dropout: parts.Dropping,
        layers.Residual: parts.ResidualBlock,
    }

    _plan: Plan | None

    # ---- the plain way

    def _forward(self, x: Array, masks: Sequence[Array] | None, training: bool) -> list[Array]:
        self._check_as_built()
        return parts.forward(self.layers, x, parts.Pass(training, None if masks is None else iter(masks)))

    def _step(self, x: Array, y: Any, optimizer: Any, masks: Sequence[Array] | None) -> float:
        outputs = self._forward(x, masks, training=True)[-1]
        loss: float = self._loss(outputs, y)
        parts.backward(self.layers, self._loss_backward(outputs, y), needs_grad_input=False)
        if optimizer is not None:
            optimizer.step(self.parameters, self.layer_gradients)
        return loss

    # ---- by the plan

    def _last_outputs(self, x: Array, masks: Sequence[Array] | None, training: bool, tracking: bool) -> Array:
        """The last layer's outputs, in the plan's memory."""
        plan = self.plan_for(len(x), training)
        x, masks = plan.apart(x), [plan.apart(mask) for mask in masks or ()]
        library.function("network_forward", self.dtype)(
            library.pool(),
            len(plan.operations),
            plan.c_operations,
            len(x),
            x,
            mask_addresses(masks),
            training,
            tracking,
        )
        return plan.output[: len(x)]

    def _checked_step(self, x: Any, y: Any, optimizer: Any, dropout_masks: Sequence[Any] | None) -> float:
        return STEP_LADDER["one_call"](self, x, y, optimizer, dropout_masks)

    def plan_for(self, rows: int, training: bool) -> Plan:
        """The operations and memory for so many samples, pointing to the network's arrays as they are now: those of
        the last time if they are large enough."""
        self._check_as_built()
        plan = self._plan
        if plan is None or plan.capacity < rows:
            plan = self._plan = Plan(self.architecture, self.layers, self.dtype, rows)
        if training:
            plan.check_trainable(rows)
        plan.point_to_network()
        return plan

    def _classes(self, outputs: Array, threshold: float) -> Array:
        classes = np.empty(len(outputs), np.int64)
        library.function("predict", self.dtype)(*outputs.shape, outputs, threshold, classes)
        return classes

    # ---- what the plan relies on

    def _build(self, *arguments: Any) -> None:
        super()._build(*arguments)
        self._plan = None
        self._has_statistics = bool(self.running_statistics)
        self._as_built = (self.architecture, self.dtype, *self.layer_sizes, *self.layers)

    def _check_as_built(self) -> None:
        """ValueError if what the plan's sizes come from was changed: C would read and write past its memory."""
        if (self.architecture, self.dtype, *self.layer_sizes, *self.layers) != self._as_built:
            raise ValueError(
                "Network: its architecture, dtype, layer_sizes or layers were changed; make a new network with these"
            )

    def _statistics_put_back(self, always: bool) -> Any:
        return super()._statistics_put_back(always) if self._has_statistics else NOTHING_TO_PUT_BACK

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes a plan of its own: this one holds addresses."""
        return self.__dict__ | {"_plan": None}

    # ---- this stage's arrays

    def _asarray(self, values: Any, dtype: str) -> Array:
        return asarray(values, dtype)

    def _own_copy(self, array: Array) -> Array:
        return aligned_copy(array, self.dtype)

    def _put_back(self, array: Array, values: Array) -> None:
        if array.flags.writeable:  # one that is not was the error, and holds what it held
            array[...] = values

    def _checked_labels(self, labels: Any, rows: int, classes: int) -> Array:
        return as_labels(self.loss_name, labels, rows, classes)
