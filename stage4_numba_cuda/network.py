"""A network: layers in a row, and a loss at the end. Everything stays on the device.

    x -> layer 1 -> layer 2 -> … -> outputs -> loss

`forward` takes x through the layers in order. `backward` takes dL/doutputs through them in reverse: each layer turns
dL/d(its output) into dL/d(its input), which is dL/d(output) of the layer before it. A kernel for every operation, each
result in new memory: this is the way that is easy to follow, and the first rung of the ladder of steps. The other rungs
are the plans of plans/, which give the same numbers with fewer kernels; plans/choice.py says which network takes which.

What the arguments mean and how they are checked stands in shared/network_base.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from shared import layers as described
from shared.contract import ImageChanges
from shared.network_base import NetworkBase
from shared.shapes import check_several

from . import losses
from . import precision as precisions
from .arrays import Array, address, asarray, checked_array, checked_labels, copy, empty, on_device, sent
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .packed_parameters import Packed
from .parts import Activate, AveragePool, Dropout, Flatten, MaxPool, added
from .plans import choice
from .plans.choice import STEP_LADDER
from .plans.resident import ResidentRun

__all__ = ["STEP_LADDER", "Network"]


@dataclass(frozen=True)
class Pass:
    """What the layers are told on one pass through the network.

    training: whether batch normalisation uses the batch's own statistics
    masks: the dropout masks (batch, numbers of one sample) of the Dropout layers that are still to come; None drops
        nothing
    precision: what convolutions and dense layers round their factors to; None: nothing is rounded
    bias_apart: whether a dense layer adds its bias in a kernel of its own
    """

    training: bool
    masks: Iterator[Array] | None
    precision: str | None = None
    bias_apart: bool = False


def forward(layers: Sequence[Any], x: Array, this_pass: Pass) -> list[Array]:
    """x through the layers, one after the other. Returns the output of each."""
    outputs = []
    for layer in layers:
        match layer:
            case BatchNorm():
                x = layer.forward(x, this_pass.training)
            case Dropout():
                x = layer.forward(x, None if this_pass.masks is None else next(this_pass.masks))
            case Residual():
                x = layer.forward(x, this_pass)
            case Conv2d():
                x = layer.forward(x, precision=this_pass.precision)
            case Dense():
                x = layer.forward(x) if this_pass.bias_apart else layer.forward_fused(x, precision=this_pass.precision)
            case _:
                x = layer.forward(x)
        outputs.append(x)
    return outputs


def backward(layers: Sequence[Any], grad: Array, this_pass: Pass, needs_grad_input: bool = True) -> Array | None:
    """dL/d(last output) through the layers in reverse, after `forward` -> dL/dx, or None if not needed.

    Afterwards the layers with weights have their gradients. The first layer of a network need not compute dL/dx.
    """
    signal: Any = grad
    for i, layer in reversed(list(enumerate(layers))):
        match layer:
            case Conv2d() | Dense():
                signal = layer.backward(signal, needs_grad_input or i > 0, precision=this_pass.precision)
            case _:
                signal = layer.backward(signal)
    return signal if needs_grad_input else None


class Residual:
    """layers(x) + x: a small network inside. The gradient takes both ways, and its two shares are added."""

    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers

    def forward(self, x: Array, this_pass: Pass) -> Array:
        """x of any shape (N, …) -> the same shape."""
        self._pass = this_pass
        return added(forward(self.layers, x, this_pass)[-1], x)

    def backward(self, grad_output: Array) -> Array:
        """dL/dx from dL/doutput."""
        grad = backward(self.layers, grad_output, self._pass)
        assert grad is not None
        return added(grad, grad_output)


class Network(NetworkBase):
    """A network in CUDA kernels. It works in memory of its own, so only one thread at a time may use it; different
    networks do not mind.

    precision: "tf32" or "bf16": convolutions and dense layers round their factors so that tensor cores multiply them.
        None, the default: nothing is rounded. It may be set between two calls, for float32; precision.py has the rules
    plans: the faster ways that it has taken, with their memory
    told: how the latest run of `resident` takes its steps, as a line for people; "" where there is no choice

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
    told = ""
    steps_keep_gradients = False
    """Whether a step leaves its gradients in `layer_gradients`: the kernels of this stage's optimizers use them up."""

    def _build(self, *arguments: Any) -> None:
        super()._build(*arguments)
        placed = self.architecture.placed()
        self._normalised = [p.input_shape for p in placed if isinstance(p.layer, described.BatchNorm)]
        self._precision = None if self.is_mlp else precisions.at_first(self.dtype)
        self._checked: list[Array] = []
        self._addresses: tuple[int, ...] = ()
        self.plans = choice.Plans()
        self._pack()

    # ---- the plain way

    def _forward(self, x: Array, masks: Sequence[Array] | None, training: bool) -> list[Array]:
        self.check_unchanged(x.shape[0], training)
        own_masks = None if masks is None else iter([_on_device(mask) for mask in masks])
        return forward(self.layers, _on_device(x), Pass(training, own_masks, self._precision))

    def _step(self, x: Array, y: Any, optimizer: Any, masks: Sequence[Array] | None) -> float:
        """One step of training: forward, loss, backward, and then the optimizer moves the parameters, if there is one.

        Returns the loss of this batch before the parameters move.
        """
        own_masks = None if masks is None else iter([_on_device(mask) for mask in masks])
        x, y = _on_device(x), _on_device(y)
        this_pass = Pass(True, own_masks, self._precision, bias_apart=self.is_mlp and self._precision is None)
        outputs = forward(self.layers, x, this_pass)[-1]
        loss = losses.loss_of(self.loss_name, outputs, y)
        grad = losses.gradient_of(self.loss_name, outputs, y, empty(outputs.shape, outputs.dtype))
        backward(self.layers, grad, this_pass, needs_grad_input=False)
        if optimizer is not None:
            optimizer.step(self.parameters, self.layer_gradients)
        return loss

    def _classes(self, outputs: Array, threshold: float) -> np.ndarray:
        numbers = outputs.copy_to_host()
        return (numbers[:, 0] > threshold).astype(np.int64) if numbers.shape[1] == 1 else numbers.argmax(axis=1)

    # ---- the plans

    @property
    def is_mlp(self) -> bool:
        """Whether it is dense layers with an activation between them, and perhaps dropout: only then it has the plans
        of an mlp."""
        return self.activation != ""

    @property
    def dense_layers(self) -> list[Dense]:
        """Of an mlp its dense layers, in order."""
        return self._trained

    def normalisations(self) -> list[tuple[float, float]]:
        """(momentum, epsilon) of each batch normalisation. They may be set between two calls, and are checked here."""
        return [described.normalisation_numbers(part.momentum, part.epsilon) for part in self._normalising]

    def addresses(self) -> tuple[int, ...]:
        """Where parameters, gradients and running statistics lie, as of the latest `check_unchanged`: the same tuple as
        long as they are the same arrays."""
        return self._addresses

    @property
    def precision(self) -> str | None:
        """As in the class's description."""
        return self._precision

    @precision.setter
    def precision(self, chosen: str | None) -> None:
        self._precision = precisions.checked("precision", chosen, self.dtype)

    def _checked_step(self, x: Any, y: Any, optimizer: Any, dropout_masks: Sequence[Any] | None) -> float:
        if any(part.whole_batch is not None for part in self._normalising):  # other processes are asked between layers
            return STEP_LADDER["op_by_op"](self, x, y, optimizer, dropout_masks)
        rows = x.shape[0] if getattr(x, "shape", ()) else 0  # of whatever it is: the rung checks it
        return choice.rung_in_use(optimizer, rows)(self, x, y, optimizer, dropout_masks)

    def _last_outputs(self, x: Array, masks: Sequence[Array] | None, training: bool, tracking: bool) -> Array:
        return choice.outputs(self, x, masks or [], training, tracking)

    def resident(
        self,
        x: Any,
        labels: Any,
        optimizer: Any,
        batch_size: int,
        seed: int,
        augmentation: ImageChanges | None = None,
    ) -> ResidentRun | None:
        """A training run whose data stays on the device: see plans/resident.py; None if it cannot change the images as
        `augmentation` says. Dropout layers drop at their own rates."""
        run = choice.resident_run(self, x, labels, optimizer, batch_size, seed, augmentation)
        self.told = "" if run is None else run.told
        return run

    @property
    def packed(self) -> tuple[Array, Array] | None:
        """All parameters as one vector, and all gradients as another; None where one of their arrays was replaced, and
        where there are none."""
        parameters, gradients = self._packed
        there = self._parameter_places and parameters.holds(self.parameters) and gradients.holds(self.layer_gradients)
        return (parameters.flat, gradients.flat) if there else None

    def _pack(self) -> None:
        """Move parameters and gradients into one piece of memory each, so that an optimizer needs one launch."""
        shapes = [array.shape for array in self.parameters]
        self._packed = Packed(shapes, self.dtype), Packed(shapes, self.dtype)
        for (part, name), own, slope in zip(
            self._parameter_places, *(each.arrays for each in self._packed), strict=True
        ):
            for attribute, array in ((name, own), (f"grad_{name}", slope)):
                array.copy_to_device(getattr(part, attribute))
                setattr(part, attribute, array)

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes plans of its own: these hold on to the layers and to views of one piece of memory."""
        return self.__dict__ | {"plans": choice.Plans(), "_checked": [], "_packed": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pack()

    # ---- checks: kernels believe what they are given

    def checked(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None) -> tuple[Array, Any, list[Array] | None]:
        """x, y and the masks as NumPy arrays to be sent to the device, or the device arrays that they are; or an error
        that says what is wrong with them. Afterwards a step in training can be launched."""
        x, y, masks = super().checked(x, y, dropout_masks)
        self.check_unchanged(x.shape[0], training=True)
        return x, y, masks

    def check_unchanged(self, rows: int, training: bool) -> None:
        """ValueError or TypeError if what plans are made from was changed, or training would normalise single numbers:
        kernels would read and write past their memory, or find out when something has changed already.

        All that computes with the network begins here. So this raises RuntimeError where a launch of the persistent
        kernel was interrupted, and its blocks had given up (MlpMemory.settle).
        """
        self.plans.settle()
        self._check_as_built()
        for part, shape in zip(self._normalising, self._normalised if training else (), strict=False):
            if part.whole_batch is None:
                check_several((rows, *shape))
        arrays = self._kept_arrays()
        if list(map(id, arrays)) != list(map(id, self._checked)):  # kept, so that an id stays its own
            names = [parameter.name.rpartition(":")[0] for parameter in self.architecture.parameters()]
            for part, name in zip(self._trained, names[::2], strict=True):
                part.check_memory(f"Network: {name}", np.dtype(self.dtype))
            _check_apart(arrays)
            self._checked, self._addresses = arrays, tuple(map(address, arrays))

    def _check_arrays(self) -> None:
        """`check_unchanged` does, before a launch."""

    # ---- what the checks in shared/network_base.py have to know about device arrays

    def _asarray(self, values: Any, dtype: str) -> Array:
        return asarray(values, dtype)

    def _as_input(self, values: Any) -> Array:
        return checked_array(values, self.dtype)

    def _own_copy(self, array: Array) -> Array:
        return copy(array)

    def _put_back(self, array: Array, values: Array) -> None:
        array.copy_to_device(values)

    def _checked_labels(self, labels: Any, rows: int, classes: int) -> np.ndarray:
        return checked_labels(self.loss_name, labels, rows, classes)


def _on_device(array: Array) -> Array:
    """The array on the device, copied there if it is not."""
    return array if on_device(array) else sent(array, empty(array.shape, array.dtype))


def _check_apart(arrays: Sequence[Array]) -> None:
    """ValueError where two of a network's parameters and gradients share memory: kernels write them at once."""
    ranges = sorted((address(array), address(array) + array.nbytes) for array in arrays)
    for (_, end), (begin, _) in pairwise(ranges):
        if begin < end:
            raise ValueError(
                "Network: two of the layers' weights, biases and gradients share memory; give each memory of its own"
            )
