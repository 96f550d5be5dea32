"""A network of any architecture: convolutions, pooling, batch normalisation, residual blocks and dense layers.

    x -> part 1 -> part 2 -> … -> outputs -> loss

The architecture (shared/architectures.py) says which parts there are; each part is an object with `forward` and
`backward`. Backward goes through the parts in reverse, each turning dL/d(its output) into dL/d(its input).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from shared import layers
from shared.architectures import Architecture
from shared.initialize import initialize_parameters

from . import losses, parts
from .arrays import Matrix, as_list, asarray, check_dtype, shape_of
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense

LABEL_LOSSES = ("softmax_cross_entropy", "hinge")
LOSSES = ("mean_squared_error", "softmax_cross_entropy", "sigmoid_cross_entropy", "hinge")
WITHOUT_WEIGHTS: dict[type[Any], type[Any]] = {
    layers.MaxPool: parts.MaxPooling,
    layers.AveragePool: parts.AveragePooling,
    layers.Activate: parts.Activation,
}


class LayeredNetwork:
    """A network of this architecture on lists of floats; `Network(architecture)` makes one.

    architecture: its last layer's output must be (classes,)
    loss, initializer, seed, dtype: as Network takes them
    layers: the parts, one for each layer of the architecture
    layer_sizes: [numbers of one input, classes]; activation: "", because the architecture names its own
    running_statistics: [mean, variance, …] of the batch normalisations in order: the network's own arrays
    Raises ValueError for an unknown name or an architecture that ends in an image.

    x is (batch, numbers of one input) or (batch, channels, height, width). `train_step` and `gradients` use the
    statistics of the batch itself in batch normalisation; the other methods use the running ones unless told otherwise.
    Only `train_step`, and `forward` and `outputs` with training=True, change the running statistics.

    >>> from shared.architectures import lenet5
    >>> len(LayeredNetwork(lenet5(), seed=1).forward([[0.0] * 784])[0])
    10
    """

    def __init__(
        self,
        architecture: Architecture,
        loss: str = "softmax_cross_entropy",
        initializer: str = "he",
        seed: int = 0,
        dtype: str = "float32",
    ) -> None:
        self._build(architecture, initialize_parameters(architecture, initializer, seed), None, loss, dtype)

    @classmethod
    def from_parameters(
        cls,
        parameters: Sequence[Any],
        architecture: Architecture,
        running_statistics: Sequence[Any] | None = None,
        loss: str = "softmax_cross_entropy",
        dtype: str = "float32",
    ) -> LayeredNetwork:
        """A network with these parameters, in the order of `architecture.parameters()`, copied and cast to dtype.

        running_statistics: as the attribute; None: mean 0, variance 1
        """
        network = cls.__new__(cls)
        network._build(architecture, parameters, running_statistics, loss, dtype)
        return network

    def _build(
        self,
        architecture: Architecture,
        parameters: Sequence[Any],
        running_statistics: Sequence[Any] | None,
        loss: str,
        dtype: str,
    ) -> None:
        if loss not in LOSSES:
            raise ValueError(f"unknown loss {loss!r}; choose one of {', '.join(LOSSES)}")
        check_dtype("Network", dtype)
        if len(architecture.output_shape) != 1:
            raise ValueError(
                f"Network: the last layer's output is {architecture.output_shape}, an image; "
                "a network ends in (classes,), so Flatten() and Dense(classes) must come last"
            )
        self.architecture, self.loss_name, self.dtype = architecture, loss, dtype
        self.activation = ""
        self.layer_sizes = [math.prod(architecture.input_shape), architecture.output_shape[0]]
        names = [each.name for each in architecture.parameters()]
        own = _checked_arrays("parameters", parameters, architecture.parameter_shapes(), names, dtype)
        shapes = architecture.running_shapes()
        statistics: list[Any] = [[float(i % 2)] * channels for i, (channels,) in enumerate(shapes)]
        if running_statistics is not None:
            names = [f"{('mean', 'variance')[i % 2]} {i // 2 + 1}" for i in range(len(shapes))]
            statistics = _checked_arrays("running_statistics", running_statistics, shapes, names, dtype)
        self.layers = _make_parts(architecture.layers, iter(own), iter(statistics))
        self._trained = list(_with_parameters(self.layers))
        self._loss = getattr(losses, loss)
        self._loss_backward = getattr(losses, f"{loss}_backward")

    @property
    def parameters(self) -> list[Any]:
        """The network's own arrays in the order of `architecture.parameters()`; an optimizer changes them in place."""
        return [getattr(part, name) for part in self._trained for name in _parameter_names(part)]

    @property
    def layer_gradients(self) -> list[Any]:
        """The parts' own gradients in the order of `parameters`; the next step replaces them."""
        return self._gradients()

    @property
    def running_statistics(self) -> list[Any]:
        """[mean, variance, …] of the batch normalisations in order: the network's own arrays."""
        normal = [part for part in self._trained if isinstance(part, BatchNorm)]
        return [array for part in normal for array in (part.running_mean, part.running_var)]

    def forward(self, x: Any, dropout_masks: Sequence[Matrix] | None = None, training: bool = False) -> Any:
        """x -> the last layer's raw outputs (batch, classes).

        dropout_masks: None, or one array (batch, numbers of one sample) for each Dropout layer, of 0 and 1 / (1 - rate)
        training: whether batch normalisation uses the batch's own statistics, and changes the running ones
        """
        return self.outputs(x, dropout_masks, training)[-1]

    def outputs(self, x: Any, dropout_masks: Sequence[Matrix] | None = None, training: bool = False) -> list[Any]:
        """The output of every layer of the architecture, in order; a residual block is one layer."""
        return self._forward(x, dropout_masks, training)

    def loss(self, x: Any, y: Any, dropout_masks: Sequence[Matrix] | None = None, training: bool = False) -> float:
        """The loss of forward(x) against y: labels (batch,), or targets shaped like the outputs.

        training: whether batch normalisation uses the batch's own statistics; the running ones stay as they are
        """
        with _unchanged(self.running_statistics):
            outputs = self._forward(x, dropout_masks, training)[-1]
        return self._loss(outputs, self._targets(y))

    def gradients(self, x: Any, y: Any, dropout_masks: Sequence[Matrix] | None = None) -> list[Any]:
        """dL/dparameter for every parameter, in the order of `parameters`, by the batch's own statistics."""
        with _unchanged(self.running_statistics):
            self._forward_backward(x, y, dropout_masks)
        return self._gradients()

    def train_step(self, x: Any, y: Any, optimizer: Any, dropout_masks: Sequence[Matrix] | None = None) -> float:
        """Forward, backward, one step of the optimizer. Returns the loss before the step."""
        if not hasattr(optimizer, "step"):
            raise TypeError(f"train_step: optimizer: expected an optimizer, got {type(optimizer).__name__}")
        with _unchanged(self.running_statistics, only_after_errors=True):
            loss = self._forward_backward(x, y, dropout_masks)
            optimizer.step(self.parameters, self._gradients())
        return loss

    def predict(self, x: Any) -> Any:
        """The class of each sample: the column of its largest output. With a single output column, 1 where it
        is above 0 (for mean_squared_error: above 0.5), else 0."""
        outputs = self._forward(x, None, False)[-1]
        if len(outputs[0]) == 1:
            threshold = 0.5 if self.loss_name == "mean_squared_error" else 0.0
            return [int(row[0] > threshold) for row in outputs]
        return [_largest(row) for row in outputs]

    def _forward(self, x: Any, dropout_masks: Sequence[Matrix] | None, training: bool) -> list[Any]:
        x = self._checked_x(x)
        masks = self._checked_masks(dropout_masks, len(x))
        return parts.forward(self.layers, x, parts.Pass(training, None if masks is None else iter(masks)))

    def _forward_backward(self, x: Any, y: Any, dropout_masks: Sequence[Matrix] | None) -> float:
        """Forward and backward in training. Afterwards each part with parameters has their gradients."""
        targets = self._targets(y)
        outputs = self._forward(x, dropout_masks, True)[-1]
        loss: float = self._loss(outputs, targets)
        grad = self._loss_backward(outputs, targets)
        parts.backward(self.layers, grad, needs_grad_input=False)
        return loss

    def _gradients(self) -> list[Any]:
        return [getattr(part, f"grad_{name}") for part in self._trained for name in _parameter_names(part)]

    def _checked_x(self, x: Any) -> Any:
        """x as (batch, *input_shape)."""
        x = as_list(x)
        shape, expected, size = shape_of(x), self.architecture.input_shape, self.layer_sizes[0]
        if shape[1:] not in (expected, (size,)):
            images = f" or (batch, {', '.join(map(str, expected))})" if len(expected) == 3 else ""
            raise ValueError(f"Network: x is {shape}, expected (batch, {size}){images}")
        return x if shape[1:] == expected else parts.from_rows(x, (len(x), *expected))

    def _targets(self, y: Any) -> Any:
        return y if self.loss_name in LABEL_LOSSES else as_list(y)

    def _checked_masks(self, dropout_masks: Sequence[Matrix] | None, rows: int) -> list[Any] | None:
        if dropout_masks is None:
            return None
        if not hasattr(dropout_masks, "__len__"):
            raise TypeError(f"dropout_masks: expected a list of arrays, got {type(dropout_masks).__name__}")
        sizes = [size for size, _ in self.architecture.dropouts()]
        if len(dropout_masks) != len(sizes):
            raise ValueError(
                f"dropout_masks: expected {len(sizes)}, one for each Dropout layer, got {len(dropout_masks)}"
            )
        masks = [as_list(mask) for mask in dropout_masks]
        for i, (mask, size) in enumerate(zip(masks, sizes, strict=True), start=1):
            if shape_of(mask) != (rows, size):
                raise ValueError(f"dropout_masks: mask {i} is {shape_of(mask)}, expected {(rows, size)}")
        return masks


def _make_parts(chosen: Sequence[layers.Layer], parameters: Iterator[Any], statistics: Iterator[Any]) -> list[Any]:
    """The parts for these layers, each with the next of the parameters and running statistics."""
    made: list[Any] = []
    for layer in chosen:
        if isinstance(layer, layers.Conv):
            made.append(Conv2d(next(parameters), next(parameters), layer.stride, layer.padding))
        elif isinstance(layer, layers.Dense):
            made.append(Dense(next(parameters), next(parameters)))
        elif isinstance(layer, layers.BatchNorm):
            made.append(BatchNorm(next(parameters), next(parameters), next(statistics), next(statistics)))
        elif isinstance(layer, layers.Residual):
            made.append(parts.ResidualBlock(_make_parts(layer.layers, parameters, statistics)))
        elif isinstance(layer, layers.Flatten):
            made.append(parts.Flattening())
        elif isinstance(layer, layers.Dropout):
            made.append(parts.Dropping())
        else:
            made.append(WITHOUT_WEIGHTS[type(layer)](layer))
    return made


def _with_parameters(chosen: Sequence[Any]) -> Iterator[Any]:
    """The parts that have parameters, in the architecture's order; those in residual blocks, too."""
    for part in chosen:
        if isinstance(part, parts.ResidualBlock):
            yield from _with_parameters(part.parts)
        elif isinstance(part, Conv2d | Dense | BatchNorm):
            yield part


def _parameter_names(part: Any) -> tuple[str, str]:
    return ("gamma", "beta") if isinstance(part, BatchNorm) else ("weights", "bias")


def _checked_arrays(
    what: str, given: Any, shapes: Sequence[tuple[int, ...]], names: Sequence[str], dtype: str
) -> list[Any]:
    """The arrays in dtype, or an error that names the first one that does not fit."""
    if not hasattr(given, "__len__"):
        raise TypeError(f"{what}: expected a list of {len(shapes)} arrays, got {type(given).__name__}")
    if len(given) != len(shapes):
        raise ValueError(f"{what}: the architecture has {len(shapes)} arrays, got {len(given)}")
    arrays = [asarray(each, dtype) for each in given]
    for array, shape, name in zip(arrays, shapes, names, strict=True):
        if shape_of(array) != shape:
            raise ValueError(f"{what}: {name} is {shape_of(array)}, expected {shape}")
    return arrays


@contextlib.contextmanager
def _unchanged(arrays: Sequence[Any], only_after_errors: bool = False) -> Iterator[None]:
    """Put back what the arrays held."""
    before = [list(array) for array in arrays]
    changed = True
    try:
        yield
        changed = not only_after_errors
    finally:
        if changed:
            for array, values in zip(arrays, before, strict=True):
                array[:] = values


def _largest(row: list[float]) -> int:
    """Where the largest value stands. NaN counts as the largest, as it does for NumPy and PyTorch."""
    return next((j for j, value in enumerate(row) if value != value), row.index(max(row)))
