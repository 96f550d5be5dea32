"""A network: layers in a row, and a loss at the end.

    x -> layer 1 -> layer 2 -> … -> outputs -> loss

`forward` takes x through the layers in order. `backward` takes dL/doutputs through them in reverse: each layer turns
dL/d(its output) into dL/d(its input), which is dL/d(output) of the layer before it. All of them write into memory that
the network keeps, so that after the first step a step allocates nothing that grows with the batch. `forward`,
`outputs` and `gradients` of the network return copies, which are yours.

What the arguments mean and how they are checked stands in shared/network_base.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from shared import layers as kinds_of_layers
from shared.network_base import NetworkBase

from . import losses
from .arrays import Array, Scratch, asarray
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .parts import Activation, AveragePooling, Dropping, Flattening, MaxPooling, Pass


def forward(layers: Sequence[Any], x: Array, way: Pass) -> list[Array]:
    """x through the layers, one after the other: the output of each, in the memory of the way."""
    outputs = []
    for layer in layers:
        way.shapes[id(layer)] = x.shape
        match layer:
            case Dense():
                x = layer.forward(x, way.array(layer, "output", (len(x), layer.out_features), x))
            case Conv2d():
                x = layer.forward(x, way.array(layer, "output", layer.output_shape(x.shape), x), way.memory)
            case BatchNorm():
                x = layer.forward(x, way.training, way.array(layer, "output", x.shape, x))
            case _:
                x = layer.forward(x, way)
        outputs.append(x)
    return outputs


def backward(layers: Sequence[Any], grad: Any, way: Pass, needs_grad_input: bool = True) -> Array | None:
    """dL/d(last output) through the layers in reverse, after `forward` on the same way -> dL/dx, or None if not needed.

    Afterwards the layers with weights have their gradients. The first layer of a network need not compute dL/dx.
    """
    for i, layer in reversed(list(enumerate(layers))):
        needed = needs_grad_input or i > 0
        match layer:
            case Dense():
                grad = layer.backward(grad, needed, way.grad(layer, grad) if needed else None)
            case Conv2d():
                grad = layer.backward(grad, needed, way.grad(layer, grad) if needed else None, way.memory)
            case BatchNorm():
                grad = layer.backward(grad, way.grad(layer, grad))
            case _:
                grad = layer.backward(grad, way)
    return grad if needs_grad_input else None


class ResidualBlock:
    """parts(x) + x: a small network inside. The gradient is the sum of two: through the parts, and the shortcut."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def forward(self, x: Array, way: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        return np.add(forward(self.parts, x, way)[-1], x, out=way.array(self, "output", x.shape, x))

    def backward(self, grad_output: Array, way: Pass) -> Array:
        """dL/dx from dL/doutput."""
        grad: Any = backward(self.parts, grad_output, way)
        return np.add(grad, grad_output, out=way.grad(self, grad_output))


class Network(NetworkBase):
    """A network on NumPy arrays.

    >>> network = Network([2, 3, 1], activation="tanh", loss="mean_squared_error", seed=1)
    >>> network.forward([[0.5, -0.5]]).shape
    (1, 1)
    """

    losses = losses
    kinds: ClassVar = {
        kinds_of_layers.Dense: Dense,
        kinds_of_layers.Conv: Conv2d,
        kinds_of_layers.BatchNorm: BatchNorm,
        kinds_of_layers.Activate: Activation,
        kinds_of_layers.MaxPool: MaxPooling,
        kinds_of_layers.AveragePool: AveragePooling,
        kinds_of_layers.Flatten: Flattening,
        kinds_of_layers.Dropout: Dropping,
        kinds_of_layers.Residual: ResidualBlock,
    }
    _asarray = staticmethod(asarray)

    def _build(self, *arguments: Any) -> None:
        super()._build(*arguments)
        self._memory = Scratch()

    def _way(self, training: bool, masks: Sequence[Array] | None) -> Pass:
        return Pass(training, None if masks is None else iter(masks), self._memory)

    def _forward(self, x: Array, masks: Sequence[Array] | None, training: bool) -> list[Array]:
        return forward(self.layers, x, self._way(training, masks))

    def _step(self, x: Array, y: Any, optimizer: Any, masks: Sequence[Array] | None) -> float:
        """One step of training: forward, loss, backward, and then the optimizer moves the parameters."""
        way = self._way(True, masks)
        outputs = forward(self.layers, x, way)[-1]
        loss = self._loss_of(outputs, y)
        grad = self._memory("grad of outputs", outputs.shape, self.dtype)
        self._loss_backward(outputs, y, out=grad, scratch=self._memory)
        backward(self.layers, grad, way, needs_grad_input=False)
        if optimizer is not None:
            optimizer.step(self.parameters, self.layer_gradients)
        return loss

    def _loss_of(self, outputs: Array, targets: Any) -> float:
        loss: float = self._loss(outputs, targets, scratch=self._memory)
        return loss

    def _classes(self, outputs: Array, threshold: float) -> Array:
        if outputs.shape[1] == 1:
            return (outputs[:, 0] > threshold).astype(np.int64)
        return outputs.argmax(axis=1)
