"""A stack of dense layers with an activation between them, a loss at the end, and one training step.

    x -> layer 1 -> activation -> (dropout) -> layer 2 -> … -> last layer -> outputs -> loss

Backward goes the same way in reverse, each part turning dL/d(its output) into dL/d(its input).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

from shared.architectures import Architecture, mlp
from shared.initialize import initialize_parameters

from . import activations, losses
from .arrays import Matrix, as_list, check_dtype, check_same_shape
from .dense import Dense
from .layered import LABEL_LOSSES, LOSSES, LayeredNetwork

ACTIVATIONS = ("identity", "relu", "leaky_relu", "sigmoid", "tanh", "softmax")


class Stepper(Protocol):
    """Anything with an optimizer's `step`."""

    def step(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None: ...


class Network:
    """A multilayer perceptron on lists of floats.

    layer_sizes: [in_features, hidden, …, out_features], or an Architecture (shared/architectures.py); for one that
        is not a stack of dense layers with one activation, `Network(architecture)` makes a LayeredNetwork (layered.py)
    activation: after every layer but the last: identity, relu, leaky_relu, sigmoid, tanh or softmax; an Architecture
        has its own
    loss: mean_squared_error, softmax_cross_entropy, sigmoid_cross_entropy or hinge
    initializer, seed: as shared.initialize takes them; a seed gives the same numbers on every floor
    dtype: "float32" or "float64"; this floor computes in Python floats either way
    Raises ValueError for an unknown name or impossible sizes, listing what is possible.

    >>> network = Network([2, 3, 1], activation="tanh", loss="mean_squared_error", seed=1)
    >>> len(network.forward([[0.5, -0.5]])[0])
    1
    """

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
        """A network with these weights and biases, [W1, b1, W2, b2, …], copied.

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
        self.layers = [Dense(w, b) for w, b in zip(parameters[::2], parameters[1::2], strict=True)]
        for i, (layer, following) in enumerate(pairwise(self.layers), start=1):
            if layer.out_features != following.in_features:
                raise ValueError(
                    f"parameters: layer {i} has {layer.out_features} outputs "
                    f"but layer {i + 1} takes {following.in_features} inputs"
                )
        self.layer_sizes = [self.layers[0].in_features, *(layer.out_features for layer in self.layers)]
        self._activate = getattr(activations, activation)
        self._activate_backward = getattr(activations, f"{activation}_backward")
        self._loss = getattr(losses, loss)
        self._loss_backward = getattr(losses, f"{loss}_backward")

    @property
    def architecture(self) -> Architecture:
        """The network's form as data."""
        return mlp(self.layer_sizes, self.activation)

    @property
    def layer_gradients(self) -> list[Any]:
        """The layers' own gradients in the order of `parameters`; the next step replaces them."""
        return self._gradients()

    @property
    def running_statistics(self) -> list[Any]:
        """An empty list: a stack of dense layers has no batch normalisation."""
        return []

    @property
    def parameters(self) -> list[Any]:
        """[W1, b1, W2, b2, …]: the network's own lists; an optimizer changes them in place."""
        return [array for layer in self.layers for array in (layer.weights, layer.bias)]

    def forward(self, x: Any, dropout_masks: Sequence[Matrix] | None = None, training: bool = False) -> Matrix:
        """x (batch, features) -> the last layer's raw outputs (batch, out_features).

        dropout_masks: None, or one matrix for each hidden layer, shaped like its output, of 0 and 1 / (1 - rate)
        training: changes nothing here; a network with batch normalisation takes it, too
        """
        return self._forward(self._checked_x(x), self._check_masks(dropout_masks))[-1]

    def loss(self, x: Any, y: Any, dropout_masks: Sequence[Matrix] | None = None, training: bool = False) -> float:
        """The loss of forward(x) against y: labels (batch,), or targets shaped like the outputs.

        training: as in `forward`
        """
        return self._loss(self.forward(x, dropout_masks), self._targets(y))

    def gradients(self, x: Any, y: Any, dropout_masks: Sequence[Matrix] | None = None) -> list[Any]:
        """dL/dparameter for every parameter, in the order of `parameters`."""
        self._forward_backward(self._checked_x(x), y, dropout_masks)
        return self._gradients()

    def train_step(self, x: Any, y: Any, optimizer: Stepper, dropout_masks: Sequence[Matrix] | None = None) -> float:
        """Forward, backward, one step of the optimizer. Returns the loss before the step."""
        if not hasattr(optimizer, "step"):
            raise TypeError(f"train_step: optimizer: expected an optimizer, got {type(optimizer).__name__}")
        loss = self._forward_backward(self._checked_x(x), y, dropout_masks)
        optimizer.step(self.parameters, self._gradients())
        return loss

    def predict(self, x: Any) -> list[int]:
        """The class of each row: the column of its largest output. With a single output column, 1 where it
        is above 0 (for mean_squared_error: above 0.5), else 0."""
        outputs = self.forward(x)
        if len(outputs[0]) == 1:
            threshold = 0.5 if self.loss_name == "mean_squared_error" else 0.0
            return [int(row[0] > threshold) for row in outputs]
        return [_largest(row) for row in outputs]

    def _forward(self, x: Matrix, masks: Sequence[Matrix] | None) -> list[Matrix]:
        """[z1, output1, z2, output2, …, last z]: backward needs them all. The dropped outputs are not kept:
        the next layer remembers its own input."""
        signal, trace = x, []
        for i, layer in enumerate(self.layers):
            z = layer.forward(signal)
            trace.append(z)
            if i < len(self.layers) - 1:
                signal = self._activate(z)
                trace.append(signal)
                if masks:
                    signal = _multiply(signal, masks[i])
        return trace

    def _forward_backward(self, x: Any, y: Any, dropout_masks: Sequence[Matrix] | None) -> float:
        """Forward, and backward through every layer, the last first. Returns the loss.

        x: (batch, in_features); y: the labels or targets. Afterwards each layer has its grad_weights and grad_bias. A
        hidden layer's gradient passes its dropout mask, where there is one, and then its activation.
        """
        masks = self._check_masks(dropout_masks)
        *hidden, outputs = self._forward(x, masks)
        targets = self._targets(y)
        loss = self._loss(outputs, targets)
        grad: Any = self._loss_backward(outputs, targets)
        for i in reversed(range(1, len(self.layers))):
            z, output = hidden[2 * i - 2], hidden[2 * i - 1]
            grad = self.layers[i].backward(grad)
            if masks:
                grad = _multiply(grad, masks[i - 1])
            grad = self._activate_backward(grad, z, output)
        self.layers[0].backward(grad, needs_grad_input=False)
        return loss

    def _gradients(self) -> list[Any]:
        return [array for layer in self.layers for array in (layer.grad_weights, layer.grad_bias)]

    def _checked_x(self, x: Any) -> Matrix:
        x = as_list(x)
        if not isinstance(x[0], list):
            raise ValueError(f"Network: x: expected 2 dimensions (rows, columns), got 1 with shape ({len(x)},)")
        first = self.layers[0]
        if len(x[0]) != first.in_features:
            raise ValueError(
                f"Network: x is {(len(x), len(x[0]))} but weights are {(first.in_features, first.out_features)}; "
                "x's columns must equal the first layer's in_features"
            )
        return x

    def _targets(self, y: Any) -> Any:
        if self.loss_name in LABEL_LOSSES:
            return y
        targets = as_list(y)
        if not isinstance(targets[0], list):
            raise ValueError(
                f"{self.loss_name}: targets: expected 2 dimensions (rows, columns), got 1 with shape ({len(targets)},)"
            )
        return targets

    def _check_masks(self, dropout_masks: Sequence[Matrix] | None) -> Sequence[Matrix] | None:
        if dropout_masks is None:
            return None
        if not hasattr(dropout_masks, "__len__"):
            raise TypeError(f"dropout_masks: expected a list of arrays, got {type(dropout_masks).__name__}")
        if len(dropout_masks) != len(self.layers) - 1:
            raise ValueError(
                f"dropout_masks: expected {len(self.layers) - 1}, one for each hidden layer, got {len(dropout_masks)}"
            )
        return [as_list(mask) for mask in dropout_masks]


def _largest(row: list[float]) -> int:
    """Where the largest value stands. NaN counts as the largest, as it does for NumPy and PyTorch."""
    return next((j for j, value in enumerate(row) if value != value), row.index(max(row)))


def _multiply(a: Matrix, mask: Matrix) -> Matrix:
    if not isinstance(mask[0], list):
        shape = (len(a), len(a[0]))
        raise ValueError(f"dropout: mask is ({len(mask)},) but outputs is {shape}; they must have the same shape")
    check_same_shape("dropout", outputs=a, mask=mask)
    return [[v * m for v, m in zip(row, m_row, strict=True)] for row, m_row in zip(a, mask, strict=True)]


def _dense_stack(architecture: Architecture, activation: str) -> tuple[list[int], str]:
    """The sizes of the layers and the activation between them."""
    architecture.check_activation(activation)
    found = architecture.as_layer_sizes()
    assert found is not None  # every other architecture has become a LayeredNetwork
    return found
