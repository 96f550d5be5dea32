"""A network: layers in a row, and a loss at the end.

    x -> layer 1 -> layer 2 -> … -> outputs -> loss

`forward` takes x through the layers in order. `backward` takes dL/doutputs through them in reverse: each layer turns
dL/d(its output) into dL/d(its input), which is dL/d(output) of the layer before it. This plain way is a call into C for
each layer in each direction.

The faster way is a plan (plan.py): the whole step is a single call, which computes the same numbers up to rounding.
Every architecture has a plan, so `_last_outputs` and `_checked_step` always take it. steps.py has three implementations
of a step, from the plain way (`op_by_op`) to the single call (`one_call`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from shared import layers as described
from shared.network_base import NetworkBase

from . import library, losses
from .arrays import Array, aligned_copy, as_labels, asarray
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .parts import Activate, AveragePool, Dropout, Flatten, MaxPool, added
from .plan import Plan
from .steps import STEP_LADDER, mask_addresses

__all__ = ["STEP_LADDER", "Network"]


def forward(layers: Sequence[Any], x: Array, training: bool, masks: Iterator[Array] | None) -> list[Array]:
    """x through the layers, one after the other. Returns the output of each.

    training: batch normalisation then uses the statistics of the batch; masks: the next of them is for the next Dropout
    layer; None drops nothing
    """
    outputs = []
    for layer in layers:
        match layer:
            case BatchNorm():
                x = layer.forward(x, training)
            case Dropout():
                x = layer.forward(x, None if masks is None else next(masks))
            case Residual():
                x = layer.forward(x, training, masks)
            case _:
                x = layer.forward(x)
        outputs.append(x)
    return outputs


def backward(layers: Sequence[Any], grad: Array) -> Array:
    """dL/d(last output) through the layers in reverse -> dL/dx. Afterwards the layers with weights have gradients."""
    for layer in reversed(layers):
        grad = layer.backward(grad)
    return grad


class Residual:
    """layers(x) + x: a small network inside. The gradient is the sum of two: through the layers, and the shortcut."""

    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers

    def forward(self, x: Array, training: bool, masks: Iterator[Array] | None) -> Array:
        """x of any shape (N, …) -> the same shape."""
        return added(forward(self.layers, x, training, masks)[-1], x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return added(backward(self.layers, grad_output), grad_output)


class Network(NetworkBase):
    """A network in C. It works in memory of its own, so only one thread at a time may use it.

    >>> network = Network([2, 3, 1], activation="tanh", loss="mean_squared_error", seed=1)
    >>> network.forward([[0.5, -0.5]]).shape
    (1, 1)
    """

    losses = losses  # NetworkBase finds the loss and its derivative there by name
    layer_classes: ClassVar = {
        described.Dense: Dense,
        described.Conv: Conv2d,
        described.BatchNorm: BatchNorm,
        described.Activate: Activate,
        described.MaxPool: MaxPool,
        described.AveragePool: AveragePool,
        described.Flatten: Flatten,
        described.Dropout: Dropout,
        described.Residual: Residual,
    }

    _plan: Plan | None

    # ---- the plain way

    def _forward(self, x: Array, masks: Sequence[Array] | None, training: bool) -> list[Array]:
        super()._check_arrays()
        return forward(self.layers, x, training, None if masks is None else iter(masks))

    def _step(self, x: Array, y: Any, optimizer: Any, masks: Sequence[Array] | None) -> float:
        """One step of training: forward, loss, backward, and then the optimizer moves the parameters.

        This is the way to read; `train_step` takes the plan in its place (`_checked_step` below).
        """
        outputs = self._forward(x, masks, training=True)[-1]
        loss: float = self._loss(outputs, y)
        grad = self._loss_backward(outputs, y)  # dL/doutputs, (batch, out_features)
        first, *others = self.layers
        grad = backward(others, grad)
        if isinstance(first, Dense | Conv2d):
            first.backward(grad, needs_grad_input=False)  # no layer comes before it: dL/dx is of no use
        else:
            first.backward(grad)
        if optimizer is not None:
            optimizer.step(self.parameters, self.layer_gradients)
        return loss

    # ---- by the plan

    def _last_outputs(self, x: Array, masks: Sequence[Array] | None, training: bool, tracking: bool) -> Array:
        """The last layer's outputs, in the plan's memory."""
        plan = self.plan_for(len(x), training)
        x, masks = plan.copied_if_overlapping(x), [plan.copied_if_overlapping(mask) for mask in masks or ()]
        library.function("network_forward", self.dtype)(
            library.pool(), len(plan.operations), plan.c_operations,
            len(x), x, mask_addresses(masks), training, tracking,
        )  # fmt: skip
        return plan.output[: len(x)]

    def _checked_step(self, x: Any, y: Any, optimizer: Any, dropout_masks: Sequence[Any] | None) -> float:
        # Where other processes have rows of the batch, too, Python has to ask them between the layers.
        is_whole = all(layer.whole_batch is None for layer in self._normalising)
        return STEP_LADDER["one_call" if is_whole else "op_by_op"](self, x, y, optimizer, dropout_masks)

    def plan_for(self, rows: int, training: bool) -> Plan:
        """A plan for so many samples: the last one if it is large enough. It points to the network's arrays of now."""
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

    def _check_arrays(self) -> None:
        """The plan checks them, before it tells C where they are."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes a plan of its own: this one holds addresses."""
        return self.__dict__ | {"_plan": None}

    # ---- what the checks in shared/network_base.py have to know about this stage's arrays

    _asarray = staticmethod(asarray)
    _overlap: ClassVar[Any] = staticmethod(np.may_share_memory)

    def _own_copy(self, array: Array) -> Array:
        return aligned_copy(array, self.dtype)

    def _put_back(self, array: Array, values: Array) -> None:
        if array.flags.writeable:  # one that is not was the error, and holds what it held
            array[...] = values

    def _checked_labels(self, labels: Any, rows: int, classes: int) -> Array:
        return as_labels(self.loss_name, labels, rows, classes)
