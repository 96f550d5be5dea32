"""A network of any architecture: convolutions, pooling, batch normalisation, residual blocks and dense layers.

    x -> part 1 -> part 2 -> … -> outputs -> loss

The architecture (shared/architectures.py) says which parts there are; each part is an object with `forward` and
`backward`. Backward goes through the parts in reverse, each turning dL/d(its output) into dL/d(its input).

    op_by_op   a call into C for every part in each direction                        the same loops in C
    one_call   everything in a single call, images side by side, the operations       what Python does between two
               fused where that pays (layered_plan.py and csrc/layered.c)             calls is gone, and every register
                                                                                      is full however small the image
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shared import layers
from shared.architectures import Architecture
from shared.contract import LABEL_LOSSES, LOSSES
from shared.initialize import initialize_parameters

from . import library, losses, parts
from .arrays import Array, aligned_copy, as_labels, as_matrix, asarray, check_dtype
from .batch_norm import BatchNorm
from .convolution import Conv2d
from .dense import Dense
from .layered_plan import Plan, planned
from .steps import OPTIMIZERS, mask_addresses

WITHOUT_WEIGHTS: dict[type[Any], type[Any]] = {
    layers.MaxPool: parts.MaxPooling,
    layers.AveragePool: parts.AveragePooling,
    layers.Activate: parts.Activation,
}


class LayeredNetwork:
    """A network of this architecture in C; `Network(architecture)` makes one.

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
    >>> LayeredNetwork(lenet5(), seed=1).forward(np.zeros((2, 784))).shape
    (2, 10)
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
        statistics: list[Any] = [np.full(shape, i % 2, dtype) for i, shape in enumerate(shapes)]
        if running_statistics is not None:
            names = [f"{('mean', 'variance')[i % 2]} {i // 2 + 1}" for i in range(len(shapes))]
            statistics = _checked_arrays("running_statistics", running_statistics, shapes, names, dtype)
        self.layers = _make_parts(architecture.layers, iter(own), iter(statistics))
        self._plan: Plan | None = None
        self._made = (architecture, dtype, *self.layer_sizes, *self.layers)
        self._trained = list(_with_parameters(self.layers))

    @property
    def parameters(self) -> list[Array]:
        """The network's own arrays in the order of `architecture.parameters()`; an optimizer changes them in place."""
        return [getattr(part, name) for part in self._trained for name in _parameter_names(part)]

    @property
    def layer_gradients(self) -> list[Array]:
        """The parts' own gradient arrays in the order of `parameters`; the next step overwrites them."""
        return self._gradients()

    @property
    def running_statistics(self) -> list[Array]:
        """[mean, variance, …] of the batch normalisations in order: the network's own arrays."""
        normal = [part for part in self._trained if isinstance(part, BatchNorm)]
        return [array for part in normal for array in (part.running_mean, part.running_var)]

    def forward(self, x: Any, dropout_masks: Sequence[Array] | None = None, training: bool = False) -> Array:
        """x -> the last layer's raw outputs (batch, classes).

        dropout_masks: None, or one array (batch, numbers of one sample) for each Dropout layer, of 0 and 1 / (1 - rate)
        training: whether batch normalisation uses the batch's own statistics, and changes the running ones
        """
        return aligned_copy(self._outputs(x, dropout_masks, training, tracking=True), self.dtype)

    def outputs(self, x: Any, dropout_masks: Sequence[Array] | None = None, training: bool = False) -> list[Array]:
        """The output of every layer of the architecture, in order; a residual block is one layer."""
        return [aligned_copy(each, self.dtype) for each in self._forward(x, dropout_masks, training)]

    def loss(self, x: Any, y: Any, dropout_masks: Sequence[Array] | None = None, training: bool = False) -> float:
        """The loss of forward(x) against y: labels (batch,), or targets shaped like the outputs.

        training: whether batch normalisation uses the batch's own statistics; the running ones stay as they are
        """
        targets = self._targets(y)
        return getattr(losses, self.loss_name)(self._outputs(x, dropout_masks, training, tracking=False), targets)

    def gradients(self, x: Any, y: Any, dropout_masks: Sequence[Array] | None = None) -> list[Array]:
        """dL/dparameter for every parameter, in the order of `parameters`, by the batch's own statistics."""
        one_call(self, x, y, None, dropout_masks)
        return [aligned_copy(grad, self.dtype) for grad in self._gradients()]

    def train_step(self, x: Any, y: Any, optimizer: Any, dropout_masks: Sequence[Array] | None = None) -> float:
        """Forward, backward, one step of the optimizer. Returns the loss before the step."""
        if not hasattr(optimizer, "step"):
            raise TypeError(f"train_step: optimizer: expected an optimizer, got {type(optimizer).__name__}")
        return one_call(self, x, y, optimizer, dropout_masks)

    def predict(self, x: Any) -> Array:
        """The class of each sample: the column of its largest output. With a single output column, 1 where it
        is above 0 (for mean_squared_error: above 0.5), else 0."""
        outputs = self._outputs(x, None, training=False, tracking=False)
        classes = np.empty(len(outputs), np.int64)
        threshold = 0.5 if self.loss_name == "mean_squared_error" else 0.0
        library.function("predict", self.dtype)(*outputs.shape, outputs, threshold, classes)
        return classes

    def _forward(self, x: Any, dropout_masks: Sequence[Array] | None, training: bool) -> list[Array]:
        x = self._checked_x(x)
        masks = self._checked_masks(dropout_masks, len(x))
        return parts.forward(self.layers, x, parts.Pass(training, None if masks is None else iter(masks)))

    def _outputs(self, x: Any, dropout_masks: Sequence[Array] | None, training: bool, tracking: bool) -> Array:
        """The last layer's outputs, in the plan's memory, by one call into C."""
        x = self._checked_x(x)
        masks = self._checked_masks(dropout_masks, len(x)) or []
        plan = self._planned(len(x), training)
        x, masks = plan.apart(x), [plan.apart(mask) for mask in masks]
        library.function("layered_forward", self.dtype)(
            library.pool(), len(plan.operations), plan.operations, len(x), x, mask_addresses(masks), training, tracking
        )
        return plan.outputs[: len(x)]

    def _planned(self, rows: int, training: bool) -> Plan:
        """The operations and memory for this many images: those of the last time if they are large enough."""
        self._check_as_made()
        if self._plan is None or self._plan.capacity < rows:
            chosen = planned(self.architecture.layers, self.layers, self.architecture.input_shape)
            self._plan = Plan(chosen, self.dtype, rows)
        plan = self._plan
        for made in plan.chosen if training else ():
            if made.kind == "normalise" and rows * made.inputs == made.shape[0]:
                raise ValueError(
                    "batch_norm: expected more than 1 value per channel when training, "
                    f"got x of shape {(rows, *made.shape)}"
                )
        plan.point_to(self._trained)
        return plan

    def _check_as_made(self) -> None:
        """ValueError if what the plan's sizes come from was changed: C would read and write past its memory."""
        now = (self.architecture, self.dtype, *self.layer_sizes, *self.layers)
        if len(now) != len(self._made) or any(a is not b and a != b for a, b in zip(now, self._made, strict=True)):
            raise ValueError(
                "Network: its architecture, dtype, layer_sizes or layers were changed; make a new network with these"
            )

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes a plan of its own: this one holds addresses."""
        return self.__dict__ | {"_plan": None}

    def _gradients(self) -> list[Array]:
        return [getattr(part, f"grad_{name}") for part in self._trained for name in _parameter_names(part)]

    def _checked_x(self, x: Any) -> Array:
        """x as (batch, *input_shape)."""
        x = asarray(x, self.dtype)
        expected, size = self.architecture.input_shape, self.layer_sizes[0]
        if x.shape[1:] not in (expected, (size,)):
            images = f" or (batch, {', '.join(map(str, expected))})" if len(expected) == 3 else ""
            raise ValueError(f"Network: x is {x.shape}, expected (batch, {size}){images}")
        return x.reshape(len(x), *expected)

    def _targets(self, y: Any) -> Any:
        return y if self.loss_name in LABEL_LOSSES else asarray(y, self.dtype)

    def _checked_targets(self, y: Any, rows: int) -> Array:
        """Labels or targets as C reads them, or an error that says what is wrong with them."""
        shape = (rows, self.layer_sizes[1])
        if self.loss_name in LABEL_LOSSES:
            return as_labels(self.loss_name, y, *shape)
        name = "logits" if self.loss_name == "sigmoid_cross_entropy" else "outputs"
        y = as_matrix(f"{self.loss_name}: targets", y)
        if y.shape != shape:
            raise ValueError(
                f"{self.loss_name}: targets is {y.shape} but {name} is {shape}; they must have the same shape"
            )
        return y

    def _checked_masks(self, dropout_masks: Sequence[Array] | None, rows: int) -> list[Array] | None:
        if dropout_masks is None:
            return None
        if not hasattr(dropout_masks, "__len__"):
            raise TypeError(f"dropout_masks: expected a list of arrays, got {type(dropout_masks).__name__}")
        sizes = [size for size, _ in self.architecture.dropouts()]
        if len(dropout_masks) != len(sizes):
            raise ValueError(
                f"dropout_masks: expected {len(sizes)}, one for each Dropout layer, got {len(dropout_masks)}"
            )
        masks = [asarray(mask, self.dtype) for mask in dropout_masks]
        for i, (mask, size) in enumerate(zip(masks, sizes, strict=True), start=1):
            if mask.shape != (rows, size):
                raise ValueError(f"dropout_masks: mask {i} is {mask.shape}, expected {(rows, size)}")
        return masks


def op_by_op(network: LayeredNetwork, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """A call into C for every part in each direction."""
    with _unchanged(network.running_statistics, only_after_errors=optimizer is not None):
        targets = network._targets(y)
        outputs = network._forward(x, masks, True)[-1]
        loss: float = getattr(losses, network.loss_name)(outputs, targets)
        grad = getattr(losses, f"{network.loss_name}_backward")(outputs, targets)
        parts.backward(network.layers, grad, needs_grad_input=False)
        if optimizer is not None:
            optimizer.step(network.parameters, network._gradients())
    return loss


def one_call(network: LayeredNetwork, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """All of it in one call. An optimizer that is not one of this floor's takes its step after the call."""
    targets = network._targets(y)
    x = network._checked_x(x)
    checked_masks = network._checked_masks(masks, len(x)) or []
    targets = network._checked_targets(targets, len(x))
    plan = network._planned(len(x), training=True)
    x, targets, checked_masks = plan.apart(x), plan.apart(targets), [plan.apart(mask) for mask in checked_masks]
    ours = type(optimizer) in OPTIMIZERS
    if ours:
        c = plan.optimizer_step
        c.kind = OPTIMIZERS.index(type(optimizer))
        for name, number in optimizer.numbers().items():
            setattr(c, name, number)
        plan.point_to_optimizer(optimizer._state, network.parameters)
    loss = ctypes.c_double()
    with _unchanged(network.running_statistics, only_after_errors=True):
        library.function("layered_step", network.dtype)(
            library.pool(), len(plan.operations), plan.operations, LOSSES.index(network.loss_name),
            len(x), x, targets.ctypes.data, mask_addresses(checked_masks), optimizer is not None,
            ctypes.byref(plan.optimizer_step) if ours else None, ctypes.byref(loss),
        )  # fmt: skip
        if ours:
            optimizer._state.steps += 1
        elif optimizer is not None:
            optimizer.step(network.parameters, network._gradients())
    return loss.value


LAYERED_STEP_LADDER: dict[str, Callable[..., float]] = {"op_by_op": op_by_op, "one_call": one_call}


def _make_parts(chosen: Sequence[layers.Layer], parameters: Iterator[Array], statistics: Iterator[Array]) -> list[Any]:
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
) -> list[Array]:
    """The arrays in dtype, or an error that names the first one that does not fit."""
    if not hasattr(given, "__len__"):
        raise TypeError(f"{what}: expected a list of {len(shapes)} arrays, got {type(given).__name__}")
    if len(given) != len(shapes):
        raise ValueError(f"{what}: the architecture has {len(shapes)} arrays, got {len(given)}")
    arrays = [asarray(each, dtype) for each in given]
    for array, shape, name in zip(arrays, shapes, names, strict=True):
        if array.shape != shape:
            raise ValueError(f"{what}: {name} is {array.shape}, expected {shape}")
    return arrays


@contextlib.contextmanager
def _unchanged(arrays: Sequence[Array], only_after_errors: bool = False) -> Iterator[None]:
    """Put back what the arrays held."""
    before = [array.copy() for array in arrays]
    changed = True
    try:
        yield
        changed = not only_after_errors
    finally:
        if changed:
            for array, values in zip(arrays, before, strict=True):
                if array.flags.writeable:  # one that is not was the error, and holds what it held
                    array[...] = values
