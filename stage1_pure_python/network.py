"""A network: layers in a row, and a loss at the end.

    x -> layer 1 -> layer 2 -> … -> outputs -> loss

`forward` takes x through the layers in order. `backward` takes dL/doutputs through them in reverse: each layer turns
dL/d(its output) into dL/d(its input), which is dL/d(output) of the layer before it. The list of layers is the graph:
each layer keeps from its `forward` what its `backward` needs.

The way of a gradient from the loss to the first weight:

    Network.train_step      in shared/network_base.py: `_checked_step` checks x and y, and calls `_step`
    Network._step           forward; then the derivative of the loss, such as losses.hinge_backward: dL/doutputs
    backward                through the layers in reverse, down to the second one
    Dense.backward          of the first layer, called by `_step`: dL/dW = xᵀ dL/dy, kept as `grad_weights`
    optimizer.step          changes each array of `parameters` by the array at the same place in `layer_gradients`

shared/layers.py describes layers, such as Dense(10), and computes nothing. The classes in `layer_classes` compute; a
network makes one of them for each description, and `self.layers` is the list of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from shared import layers as described
from shared.network_base import NetworkBase

from . import losses
from .arrays import Array, Matrix, as_list, asarray, copied, from_rows, own_shape, shape_of
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .parts import Activate, AveragePool, Dropout, Flatten, MaxPool, added


def forward(layers: Sequence[Any], x: Array, training: bool, masks: Iterator[Matrix] | None) -> list[Array]:
    """x through the layers, one after the other. Returns the output of each.

    Three kinds of layer take more than x: BatchNorm takes `training`, which says whether it uses the statistics of the
    batch; Dropout takes the next of the masks, or None where there are none; and Residual, which has
    layers inside, takes both.
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
    """dL/d(last output) through the layers in reverse -> dL/dx.

    Afterwards the layers with weights have the gradients of this batch. They replace those of the batch before: nothing
    is added up, and nothing has to be set to zero.
    """
    for layer in reversed(layers):
        grad = layer.backward(grad)
    return grad


class Residual:
    """layers(x) + x. x is used twice, so its gradient is the sum of two: through the layers, and past them."""

    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers

    def forward(self, x: Array, training: bool, masks: Iterator[Matrix] | None) -> Array:
        """x of any shape (N, …) -> the same shape."""
        return added(forward(self.layers, x, training, masks)[-1], x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        return added(backward(self.layers, grad_output), grad_output)


class Network(NetworkBase):
    """A network on lists of floats.

    >>> network = Network([2, 3, 1], activation="tanh", loss="mean_squared_error", seed=1)
    >>> len(network.forward([[0.5, -0.5]])[0])
    1
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

    def _forward(self, x: Array, masks: Sequence[Matrix] | None, training: bool) -> list[Array]:
        return forward(self.layers, x, training, None if masks is None else iter(masks))

    def _step(self, x: Array, y: Any, optimizer: Any, masks: Sequence[Matrix] | None) -> float:
        """One step of training: forward, loss, backward, and then the optimizer moves the parameters.

        y: labels, or targets; optimizer: None where only the gradients are wanted. Returns the loss before the step.
        """
        outputs = self._forward(x, masks, training=True)[-1]  # (batch, out_features)
        loss: float = self._loss(outputs, y)  # such as losses.softmax_cross_entropy
        grad = self._loss_backward(outputs, y)  # dL/doutputs, (batch, out_features)
        first, *others = self.layers
        grad = backward(others, grad)  # dL/d(output of the first layer)
        if isinstance(first, Dense | Conv2d):
            first.backward(grad, needs_grad_input=False)  # no layer comes before it: dL/dx is of no use
        else:
            first.backward(grad)
        if optimizer is not None:
            optimizer.step(self.parameters, self.layer_gradients)  # dL/d(weights), which the layers have kept
        return loss

    def _classes(self, outputs: Matrix, threshold: float) -> list[int]:
        if len(outputs[0]) == 1:
            return [int(row[0] > threshold) for row in outputs]
        return [_index_of_largest(row) for row in outputs]

    # What the checks in shared/network_base.py have to know about lists:
    _asarray = staticmethod(asarray)
    writes_gradients_in_place = False
    _as_input = staticmethod(as_list)
    _shape = staticmethod(shape_of)
    _reshaped = staticmethod(from_rows)
    _own_copy = staticmethod(copied)

    def _form(self, array: Any) -> str:
        return str(own_shape(array) or "")

    def _put_back(self, array: Array, values: Array) -> None:
        array[:] = values


def _index_of_largest(row: list[float]) -> int:
    """Where the largest value stands. NaN counts as the largest, as it does for NumPy and PyTorch."""
    return next((j for j, value in enumerate(row) if value != value), row.index(max(row)))
