"""A stack of dense layers with an activation between them, a loss at the end, and one training step.

    x -> layer 1 -> activation -> (dropout) -> layer 2 -> … -> last layer -> outputs -> loss

Backward goes the same way in reverse, each part turning dL/d(its output) into dL/d(its input).
Everything stays on the device: parameters, gradients, the layers' outputs (buffers.py), the optimizer's buffers.
`train_step` is the last rung of the step ladder in steps.py; on the CPU, where the persistent kernel gains nothing, the
one before it. `forward` and `gradients` return arrays that are yours.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from shared.architectures import Architecture, mlp
from shared.contract import ImageChanges
from shared.initialize import initialize_parameters

from . import losses, matmul
from .activations import softmax
from .arrays import Array, asarray, check_dtype, checked_array, checked_labels, copy, sent
from .buffers import Buffers, check_apart, check_shape, network_shape
from .dense import ACTIVATIONS, Dense
from .layered import LayeredNetwork
from .persistent import wanted
from .ready import ReadySteps
from .resident import Resident
from .steps import LABEL_LOSSES, LOSSES, SOFTMAX, STEP_LADDER, graph, multiply, persistent

__all__ = ["STEP_LADDER", "Network"]


class Stepper(Protocol):
    """Anything with an optimizer's `step`."""

    def step(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None: ...


class Network:
    """A multilayer perceptron in CUDA kernels.

    layer_sizes: [in_features, hidden, …, out_features], or an Architecture (shared/architectures.py)
    activation: after every layer but the last: identity, relu, leaky_relu, sigmoid, tanh or softmax; an Architecture
        has its own
    loss: mean_squared_error, softmax_cross_entropy, sigmoid_cross_entropy or hinge
    initializer, seed: as shared.initialize takes them; a seed gives the same numbers on every floor
    dtype: "float32" or "float64"; inputs of another dtype are converted
    Raises ValueError for an unknown name or impossible sizes, listing what is possible.
    A network works in memory of its own, so only one thread at a time may use it; different networks do not mind.

    Of any other Architecture it makes a LayeredNetwork (layered.py), which is used in the same way.

    told: how the latest run of `resident` takes its steps, as a line for people; "" where there is no choice

    >>> network = Network([2, 3, 1], activation="tanh", loss="mean_squared_error", seed=1)
    >>> network.forward([[0.5, -0.5]]).shape
    (1, 1)
    """

    told = ""

    def __new__(
        cls,
        layer_sizes: Sequence[int] | Architecture,
        activation: str = "relu",
        loss: str = "softmax_cross_entropy",
        initializer: str = "he",
        seed: int = 0,
        dtype: str = "float32",
    ) -> Any:
        """Of an architecture that is no stack of dense layers, make a LayeredNetwork."""
        if isinstance(layer_sizes, Architecture) and layer_sizes.as_layer_sizes() is None:
            layer_sizes.check_activation(activation)
            return LayeredNetwork(layer_sizes, loss, initializer, seed, dtype)
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[list[int]]:
        """The argument of __new__ when Python copies or unpickles a network."""
        return (self.layer_sizes,)

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes memory and graphs of its own: the kept steps are functions of the original's."""
        return self.__dict__ | {"_buffers": None, "_checked": [], "ready": ReadySteps()}

    def __init__(
        self,
        layer_sizes: Sequence[int] | Architecture,
        activation: str = "relu",
        loss: str = "softmax_cross_entropy",
        initializer: str = "he",
        seed: int = 0,
        dtype: str = "float32",
    ) -> None:
        if isinstance(layer_sizes, Architecture):
            layer_sizes, activation = _dense_stack(layer_sizes, activation)
        self._build(initialize_parameters(layer_sizes, initializer, seed), activation, loss, dtype)

    @classmethod
    def from_parameters(
        cls,
        parameters: Sequence[Any],
        activation: str = "relu",
        loss: str = "softmax_cross_entropy",
        dtype: str = "float32",
        architecture: Architecture | None = None,
        running_statistics: Sequence[Any] | None = None,
    ) -> "Network":
        """A network with these weights and biases, [W1, b1, W2, b2, …], copied and cast to dtype.

        architecture: if it is given, the parameters are in the order of its `parameters()`, and it decides about the
            activation; None: a stack of dense layers
        running_statistics: [mean, variance, …] of the architecture's batch normalisations; None: mean 0, variance 1
        """
        sizes = None
        if architecture is not None:
            if architecture.as_layer_sizes() is None:
                architecture.check_activation(activation)
                arguments = parameters, architecture, running_statistics, loss, dtype
                return LayeredNetwork.from_parameters(*arguments)  # type: ignore[return-value]
            sizes, activation = _dense_stack(architecture, activation)
        if running_statistics:
            raise ValueError(
                f"running_statistics: expected none for a stack of dense layers, got {len(running_statistics)} arrays"
            )
        network = object.__new__(cls)
        network._build(parameters, activation, loss, dtype)
        if sizes is not None and network.layer_sizes != sizes:
            raise ValueError(f"parameters: they are of layers {network.layer_sizes}, but the architecture has {sizes}")
        return network

    def _build(self, parameters: Sequence[Any], activation: str, loss: str, dtype: str) -> None:
        if activation not in ACTIVATIONS:
            raise ValueError(f"unknown activation {activation!r}; choose one of {', '.join(ACTIVATIONS)}")
        if loss not in LOSSES:
            raise ValueError(f"unknown loss {loss!r}; choose one of {', '.join(LOSSES)}")
        check_dtype("Network", dtype)
        if not hasattr(parameters, "__len__"):
            raise TypeError(f"parameters: expected a list [W1, b1, W2, b2, …], got {type(parameters).__name__}")
        if len(parameters) < 2 or len(parameters) % 2:
            raise ValueError(f"parameters: expected [W1, b1, W2, b2, …], pairs, got {len(parameters)} arrays")
        self.activation, self.loss_name, self.dtype = activation, loss, dtype
        self.layers = [
            Dense(asarray(w, dtype), asarray(b, dtype)) for w, b in zip(parameters[::2], parameters[1::2], strict=True)
        ]
        for i, (layer, following) in enumerate(pairwise(self.layers), start=1):
            if layer.out_features != following.in_features:
                raise ValueError(
                    f"parameters: layer {i} has {layer.out_features} outputs "
                    f"but layer {i + 1} takes {following.in_features} inputs"
                )
        self.layer_sizes = [self.layers[0].in_features, *(layer.out_features for layer in self.layers)]
        self.ready = ReadySteps()
        self._buffers: Buffers | None = None
        self._checked: list[Array] = []

    @property
    def architecture(self) -> Architecture:
        """The network's form as data."""
        return mlp(self.layer_sizes, self.activation)

    @property
    def running_statistics(self) -> list[Any]:
        """An empty list: a stack of dense layers has no batch normalisation."""
        return []

    @property
    def parameters(self) -> list[Array]:
        """[W1, b1, W2, b2, …]: the network's own arrays; an optimizer changes them in place."""
        return [array for layer in self.layers for array in (layer.weights, layer.bias)]

    steps_keep_gradients = False
    """Whether a step leaves its gradients in `layer_gradients`: the kernels of this floor's optimizers use them up."""

    @property
    def layer_gradients(self) -> list[Array]:
        """The layers' own gradient arrays in the order of `parameters`; the next step overwrites them."""
        return [array for layer in self.layers for array in (layer.grad_weights, layer.grad_bias)]

    def forward(self, x: Any, dropout_masks: Sequence[Array] | None = None, training: bool = False) -> Array:
        """x (batch, features) -> the last layer's raw outputs (batch, out_features).

        dropout_masks: None, or one array for each hidden layer, shaped like its output, of 0 and 1 / (1 - rate)
        training: changes nothing here; a network with batch normalisation takes it, too
        """
        return copy(self._forward(x, dropout_masks))

    def loss(self, x: Any, y: Any, dropout_masks: Sequence[Array] | None = None, training: bool = False) -> float:
        """The loss of forward(x) against y: labels (batch,), or targets shaped like the outputs.

        training: as in `forward`
        """
        outputs = self._forward(x, dropout_masks)
        targets = y if self.loss_name in LABEL_LOSSES else asarray(y, self.dtype)
        return getattr(losses, self.loss_name)(outputs, targets)

    def gradients(self, x: Any, y: Any, dropout_masks: Sequence[Array] | None = None) -> list[Array]:
        """dL/dparameter for every parameter, in the order of `parameters`."""
        graph(self, x, y, None, dropout_masks)
        return [copy(grad) for grad in self.layer_gradients]

    def train_step(self, x: Any, y: Any, optimizer: Stepper, dropout_masks: Sequence[Array] | None = None) -> float:
        """Forward, backward, one step of the optimizer. Returns the loss before the step."""
        if not hasattr(optimizer, "step"):
            raise TypeError(f"train_step: optimizer: expected an optimizer, got {type(optimizer).__name__}")
        return (persistent if wanted() else graph)(self, x, y, optimizer, dropout_masks)

    def predict(self, x: Any) -> Array:
        """The class of each row: the column of its largest output. With a single output column, 1 where it
        is above 0 (for mean_squared_error: above 0.5), else 0."""
        outputs = self._forward(x, None).copy_to_host()
        if outputs.shape[1] == 1:
            return (outputs[:, 0] > (0.5 if self.loss_name == "mean_squared_error" else 0.0)).astype(np.int64)
        return outputs.argmax(axis=1)

    def resident(
        self,
        x: Any,
        labels: Any,
        optimizer: Any,
        batch_size: int,
        dropout: float,
        seed: int,
        augmentation: ImageChanges | None = None,
    ) -> Resident | None:
        """A training run whose data stays on the device: see resident.py; None if images are to be changed."""
        if augmentation is not None:
            return None
        run = Resident(self, x, labels, optimizer, batch_size, dropout, seed)
        self.told = run.told
        return run

    def checked(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None) -> tuple[Array, Array, list[Array]]:
        """x, y and the masks as NumPy arrays to be sent to the device, or the device arrays that they are; or an error
        that says what is wrong with them."""
        x = self._checked_x(x)
        masks = self._checked_masks(dropout_masks, x.shape[0])
        shape = (x.shape[0], self.layers[-1].out_features)
        if self.loss_name in LABEL_LOSSES:
            return x, checked_labels(self.loss_name, y, *shape), masks
        targets = checked_array(y, self.dtype)
        if targets.ndim != 2:
            raise ValueError(
                f"{self.loss_name}: targets: expected 2 dimensions (rows, columns), "
                f"got {targets.ndim} with shape {targets.shape}"
            )
        if targets.shape != shape:
            outputs = "logits" if self.loss_name == "sigmoid_cross_entropy" else "outputs"
            raise ValueError(
                f"{self.loss_name}: targets is {targets.shape} but {outputs} is {shape}; they must have the same shape"
            )
        return x, targets, masks

    def buffers(self, rows: int) -> Buffers:
        """The network's memory for a batch of this many rows, pointing to its arrays as they are now: the same as the
        last time if it is large enough and the layers have not changed.

        All that computes with the network begins here. So this raises RuntimeError where a launch of the persistent
        kernel was interrupted, and its blocks had given up (Buffers.settle).
        """
        layers, buffers = self.layers, self._buffers
        if buffers is not None:
            buffers.settle()
        if buffers is None or buffers.capacity < rows or buffers.shape != network_shape(layers, self.dtype):
            check_shape(layers, self.dtype)
            buffers = self._buffers = Buffers(layers, self.dtype, rows)
        arrays = [*self.parameters, *self.layer_gradients]
        if len(arrays) != len(self._checked) or any(a is not b for a, b in zip(arrays, self._checked, strict=True)):
            for i, layer in enumerate(layers, start=1):
                layer.check_memory(f"Network: layer {i}", buffers.dtype)
            check_apart(arrays)
            self._checked = arrays
        return buffers

    def _forward(self, x: Any, dropout_masks: Sequence[Array] | None) -> Array:
        """The last layer's outputs, in the network's buffers."""
        signal = self._checked_x(x)
        masks = self._checked_masks(dropout_masks, signal.shape[0])
        rows = self.buffers(signal.shape[0]).rows(signal.shape[0])
        signal, masks = sent(signal, rows.x), [sent(mask, own) for mask, own in zip(masks, rows.masks, strict=False)]
        activation, last = ACTIVATIONS.index(self.activation), len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            in_epilogue = activation if i < last and activation != SOFTMAX else 0
            matmul.forward_fused(signal, layer.weights, layer.bias, in_epilogue, rows.output[i])
            signal = rows.output[i]
            if i < last and activation == SOFTMAX:
                softmax(signal, out=signal)
            if i < last and masks:
                signal = multiply(signal, masks[i], rows.dropped[i])
        return signal

    def _checked_x(self, x: Any) -> Array:
        x = checked_array(x, self.dtype)
        if x.ndim != 2:
            raise ValueError(f"Network: x: expected 2 dimensions (rows, columns), got {x.ndim} with shape {x.shape}")
        if not self.layers or self.layers[0].in_features != x.shape[1]:
            check_shape(self.layers, self.dtype)
            raise ValueError(
                f"Network: x is {x.shape} but weights are {self.layers[0].weights.shape}; "
                "x's columns must equal the first layer's in_features"
            )
        return x

    def _checked_masks(self, dropout_masks: Sequence[Any] | None, rows: int) -> list[Array]:
        """One array for each hidden layer, or none at all."""
        if dropout_masks is None:
            return []
        if not hasattr(dropout_masks, "__len__"):
            raise TypeError(f"dropout_masks: expected a list of arrays, got {type(dropout_masks).__name__}")
        if len(dropout_masks) != len(self.layers) - 1:
            raise ValueError(
                f"dropout_masks: expected {len(self.layers) - 1}, one for each hidden layer, got {len(dropout_masks)}"
            )
        masks = [checked_array(mask, self.dtype) for mask in dropout_masks]
        for mask, layer in zip(masks, self.layers, strict=False):
            width = layer.out_features
            if mask.shape != (rows, width):
                raise ValueError(
                    f"dropout: mask is {mask.shape} but outputs is {(rows, width)}; they must have the same shape"
                )
        return masks


def _dense_stack(architecture: Architecture, activation: str) -> tuple[list[int], str]:
    """The sizes of the layers and the activation between them."""
    architecture.check_activation(activation)
    found = architecture.as_layer_sizes()
    assert found is not None  # every other architecture has become a LayeredNetwork
    return found
