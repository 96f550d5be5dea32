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

from shared import layers as described
from shared.network_base import NetworkBase

from . import losses
from .arrays import Array, Scratch, asarray, ieee
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .parts import Activate, AveragePool, Dropout, Flatten, MaxPool, Pass


def forward(layers: Sequence[Any], x: Array, this_pass: Pass) -> list[Array]:
    """x through the layers, one after the other: the output of each, in the memory of this pass."""
    outputs = []
    for layer in layers:
        this_pass.shapes[id(layer)] = x.shape
        match layer:
            case Dense():
                x = layer.forward(x, this_pass.array(layer, "output", (len(x), layer.out_features), x))
            case Conv2d():
                x = layer.forward(
                    x, this_pass.array(layer, "output", layer.output_shape(x.shape), x), this_pass.scratch
                )
            case BatchNorm():
                x = layer.forward(x, this_pass.training, this_pass.array(layer, "output", x.shape, x))
            case _:
                x = layer.forward(x, this_pass)
        outputs.append(x)
    return outputs


def backward(layers: Sequence[Any], grad: Any, this_pass: Pass, needs_grad_input: bool = True) -> Array | None:
    """dL/d(last output) through the layers in reverse, after `forward` in the same pass -> dL/dx, or None if unneeded.

    Afterwards the layers with weights have their gradients. The first layer of a network need not compute dL/dx.
    """
    for i, layer in reversed(list(enumerate(layers))):
        needed = needs_grad_input or i > 0
        match layer:
            case Dense():
                grad = layer.backward(grad, needed, this_pass.grad_array(layer, grad) if needed else None)
            case Conv2d():
                grad = layer.backward(
                    grad, needed, this_pass.grad_array(layer, grad) if needed else None, this_pass.scratch
                )
            case BatchNorm():
                grad = layer.backward(grad, this_pass.grad_array(layer, grad))
            case _:
                grad = layer.backward(grad, this_pass)
    return grad if needs_grad_input else None


class Residual:
    """layers(x) + x: a small network inside. The gradient is the sum of two: through the layers, and the shortcut."""

    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers

    def forward(self, x: Array, this_pass: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        return np.add(forward(self.layers, x, this_pass)[-1], x, out=this_pass.array(self, "output", x.shape, x))

    def backward(self, grad_output: Array, this_pass: Pass) -> Array:
        """dL/dx from dL/doutput."""
        grad: Any = backward(self.layers, grad_output, this_pass)
        return np.add(grad, grad_output, out=this_pass.grad_array(self, grad_output))


class Network(NetworkBase):
    """A network on NumPy arrays.

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
    _asarray = staticmethod(asarray)
    _overlap: ClassVar[Any] = staticmethod(np.may_share_memory)

    def _build(self, *arguments: Any) -> None:
        super()._build(*arguments)
        self._scratch = Scratch()

    def _this_pass(self, training: bool, masks: Sequence[Array] | None) -> Pass:
        return Pass(training, None if masks is None else iter(masks), self._scratch)

    @ieee
    def _forward(self, x: Array, masks: Sequence[Array] | None, training: bool) -> list[Array]:
        return forward(self.layers, x, self._this_pass(training, masks))

    @ieee
    def _step(self, x: Array, y: Any, optimizer: Any, masks: Sequence[Array] | None) -> float:
        """One step of training: forward, loss, backward, and then the optimizer moves the parameters."""
        this_pass = self._this_pass(True, masks)
        outputs = forward(self.layers, x, this_pass)[-1]
        loss = self._loss_of(outputs, y)
        grad = self._scratch("grad of outputs", outputs.shape, self.dtype)
        self._loss_backward(outputs, y, out=grad, scratch=self._scratch)
        backward(self.layers, grad, this_pass, needs_grad_input=False)
        if optimizer is not None:
            optimizer.step(self.parameters, self.layer_gradients)
        return loss

    def _loss_of(self, outputs: Array, targets: Any) -> float:
        loss: float = self._loss(outputs, targets, scratch=self._scratch)
        return loss

    def _classes(self, outputs: Array, threshold: float) -> Array:
        if outputs.shape[1] == 1:
            return (outputs[:, 0] > threshold).astype(np.int64)
        return outputs.argmax(axis=1)
