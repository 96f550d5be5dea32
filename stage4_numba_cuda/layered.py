"""A network of any architecture: convolutions, pooling, batch normalisation, residual blocks and dense layers.

    x -> part 1 -> part 2 -> … -> outputs -> loss

The architecture (shared/architectures.py) says which parts there are; each part is an object with `forward` and
`backward`. Backward goes through the parts in reverse, each turning dL/d(its output) into dL/d(its input). Everything
stays on the device. A step has three rungs:

    op_by_op   a kernel for every operation of every part (parts.py)            each result in new memory
    fused      operations joined where one kernel can do both, in memory        fewer launches, and every number is read
               planned once from the architecture (layered_plan.py)             and written less often
    graph      the same, captured once and replayed as a CUDA graph             the device gets one order a step
               (layered_graph.py)
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shared import layers
from shared.architectures import Architecture
from shared.contract import LABEL_LOSSES, LOSSES, ImageChanges
from shared.initialize import initialize_parameters

from . import graphs, losses, parts
from . import precision as precisions
from .arrays import Array, address, asarray, check_dtype, checked_array, checked_labels, copy, empty, on_device, sent
from .batch_norm import BatchNorm, check_count
from .buffers import check_apart
from .convolution import Conv2d
from .dense import Dense
from .layered_graph import OPTIMIZERS, Move, made_ready
from .layered_launches import Order, launch_steps
from .layered_operations import planned
from .layered_plan import Memory, Plan, schedule
from .layered_resident import LayeredResident
from .ready import ReadySteps
from .together import Together

WITHOUT_WEIGHTS: dict[type[Any], type[Any]] = {
    layers.MaxPool: parts.MaxPooling,
    layers.AveragePool: parts.AveragePooling,
    layers.Activate: parts.Activation,
}


class LayeredNetwork:
    """A network of this architecture in CUDA kernels; `Network(architecture)` makes one.

    architecture: its last layer's output must be (classes,)
    loss, initializer, seed, dtype: as Network takes them
    layers: the parts, one for each layer of the architecture
    layer_sizes: [numbers of one input, classes]; activation: "", because the architecture names its own
    running_statistics: [mean, variance, …] of the batch normalisations in order: the network's own arrays
    precision: "tf32" or "bf16": convolutions and dense layers round their factors so that tensor cores multiply them.
        None, the default: nothing is rounded. It may be set between two calls, for float32; precision.py has the rules
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
        statistics: list[Any] = [asarray(np.full(shape, i % 2), dtype) for i, shape in enumerate(shapes)]
        if running_statistics is not None:
            names = [f"{('mean', 'variance')[i % 2]} {i // 2 + 1}" for i in range(len(shapes))]
            statistics = _checked_arrays("running_statistics", running_statistics, shapes, names, dtype)
        self.layers = _make_parts(architecture.layers, iter(own), iter(statistics))
        self._trained = list(_with_parameters(self.layers))
        self._made = (architecture, dtype, loss, *self.layer_sizes, *self.layers)
        self._precision = precisions.at_first(dtype)
        self._memory: Memory | None = None
        self._checked: list[Array] = []
        self._addresses: tuple[int, ...] = ()
        self.ready = ReadySteps()
        self._lay_side_by_side()

    @property
    def precision(self) -> str | None:
        """As in the class's description."""
        return self._precision

    @precision.setter
    def precision(self, chosen: str | None) -> None:
        self._precision = precisions.checked("precision", chosen, self.dtype)

    @property
    def parameters(self) -> list[Array]:
        """The network's own arrays in the order of `architecture.parameters()`; an optimizer changes them in place."""
        return [getattr(part, name) for part in self._trained for name in _parameter_names(part)]

    @property
    def layer_gradients(self) -> list[Array]:
        """The parts' own gradient arrays in the order of `parameters`; the next step overwrites them."""
        return [getattr(part, f"grad_{name}") for part in self._trained for name in _parameter_names(part)]

    @property
    def flat(self) -> tuple[Array, Array] | None:
        """All parameters as one vector, and all gradients as another; None where one of their arrays was replaced, and
        where there are none."""
        parameters, gradients = self._together
        there = self._trained and parameters.holds(self.parameters) and gradients.holds(self.layer_gradients)
        return (parameters.flat, gradients.flat) if there else None

    def _lay_side_by_side(self) -> None:
        """Move parameters and gradients into one piece of memory each, so that an optimizer needs one launch."""
        shapes = [array.shape for array in self.parameters]
        self._together = Together(shapes, self.dtype), Together(shapes, self.dtype)
        places = [(part, name) for part in self._trained for name in _parameter_names(part)]
        for (part, name), own, slope in zip(places, *(each.arrays for each in self._together), strict=True):
            for which, array in ((name, own), (f"grad_{name}", slope)):
                array.copy_to_device(getattr(part, which))
                setattr(part, which, array)

    @property
    def running_statistics(self) -> list[Array]:
        """[mean, variance, …] of the batch normalisations in order: the network's own arrays."""
        normal = [part for part in self._trained if isinstance(part, BatchNorm)]
        return [array for part in normal for array in (part.running_mean, part.running_var)]

    def forward(self, x: Any, dropout_masks: Sequence[Any] | None = None, training: bool = False) -> Array:
        """x -> the last layer's raw outputs (batch, classes).

        dropout_masks: None, or one array (batch, numbers of one sample) for each Dropout layer, of 0 and 1 / (1 - rate)
        training: whether batch normalisation uses the batch's own statistics, and changes the running ones
        """
        return copy(self._outputs(x, dropout_masks, training, tracking=True))

    def outputs(self, x: Any, dropout_masks: Sequence[Any] | None = None, training: bool = False) -> list[Array]:
        """The output of every layer of the architecture, in order; a residual block is one layer."""
        x, masks = self._checked_x(x), self._checked_masks(dropout_masks, x)
        self.check_as_made(x.shape[0], training)
        return [copy(each) for each in parts.forward(self.layers, _on_device(x), self.one_pass(training, masks))]

    def loss(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None = None, training: bool = False) -> float:
        """The loss of forward(x) against y: labels (batch,), or targets shaped like the outputs.

        training: whether batch normalisation uses the batch's own statistics; the running ones stay as they are
        """
        targets = y if self.loss_name in LABEL_LOSSES else asarray(y, self.dtype)
        return getattr(losses, self.loss_name)(self._outputs(x, dropout_masks, training, tracking=False), targets)

    def gradients(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None = None) -> list[Array]:
        """dL/dparameter for every parameter, in the order of `parameters`, by the batch's own statistics."""
        graph(self, x, y, None, dropout_masks)
        return [copy(grad) for grad in self.layer_gradients]

    def train_step(self, x: Any, y: Any, optimizer: Any, dropout_masks: Sequence[Any] | None = None) -> float:
        """Forward, backward, one step of the optimizer. Returns the loss before the step."""
        if not hasattr(optimizer, "step"):
            raise TypeError(f"train_step: optimizer: expected an optimizer, got {type(optimizer).__name__}")
        return graph(self, x, y, optimizer, dropout_masks)

    def resident(
        self,
        x: Any,
        labels: Any,
        optimizer: Any,
        batch_size: int,
        dropout: float,
        seed: int,
        augmentation: ImageChanges | None = None,
    ) -> LayeredResident | None:
        """A training run whose data stays on the device: see layered_resident.py; None if it cannot change the images.

        dropout: 0, because the Dropout layers have rates of their own; ValueError for another one
        """
        if dropout:
            raise ValueError(f"resident: dropout: expected 0, the Dropout layers have their own rates; got {dropout}")
        run = LayeredResident(self, x, labels, optimizer, batch_size, seed)
        return run if augmentation is None or run.augment(augmentation) else None

    def predict(self, x: Any) -> Array:
        """The class of each sample: the column of its largest output. With a single output column, 1 where it
        is above 0 (for mean_squared_error: above 0.5), else 0."""
        outputs = self._outputs(x, None, training=False, tracking=False).copy_to_host()
        if outputs.shape[1] == 1:
            return (outputs[:, 0] > (0.5 if self.loss_name == "mean_squared_error" else 0.0)).astype(np.int64)
        return outputs.argmax(axis=1)

    def checked(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None) -> tuple[Array, Array, list[Array] | None]:
        """x, y and the masks as NumPy arrays to be sent to the device, or the device arrays that they are; or an error
        that says what is wrong with them. Afterwards a step in training can be launched."""
        targets = y if self.loss_name in LABEL_LOSSES else checked_array(y, self.dtype)
        x = self._checked_x(x)
        masks = self._checked_masks(dropout_masks, x)
        shape = (x.shape[0], self.layer_sizes[1])
        if self.loss_name in LABEL_LOSSES:
            targets = checked_labels(self.loss_name, y, *shape)
        elif targets.ndim != 2:
            raise ValueError(
                f"{self.loss_name}: targets: expected 2 dimensions (rows, columns), "
                f"got {targets.ndim} with shape {targets.shape}"
            )
        elif targets.shape != shape:
            outputs = "logits" if self.loss_name == "sigmoid_cross_entropy" else "outputs"
            raise ValueError(
                f"{self.loss_name}: targets is {targets.shape} but {outputs} is {shape}; they must have the same shape"
            )
        self.check_as_made(shape[0], training=True)
        return x, targets, masks

    def plan(self, rows: int, training: bool, masked: bool) -> Plan:
        """The kernels for this many samples and their memory: those of the last time, if there was one."""
        if self._memory is None:
            self._memory = Memory(self.dtype)

        def make() -> Any:
            shape, classes = self.architecture.input_shape, self.layer_sizes[1]
            operations = planned(self.architecture.layers, self.layers, shape, masked, self._precision)
            return schedule(operations, shape, rows, classes, training, self.loss_name in LABEL_LOSSES)

        numbers = [(part.momentum, part.epsilon) for part in self._trained if isinstance(part, BatchNorm)]
        key = (rows, training, masked, self._precision, *numbers)  # a captured graph has them inside
        return self._memory.plan(key, make)

    def one_pass(self, training: bool, masks: Sequence[Array] | None) -> parts.Pass:
        """How its parts are gone through; masks: on the device or the host"""
        return parts.Pass(training, None if masks is None else map(_on_device, masks), self._precision)

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes plans of its own: these hold on to the layers and to views of one piece of memory."""
        return self.__dict__ | {"_memory": None, "_checked": [], "ready": ReadySteps(), "_together": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lay_side_by_side()

    def _outputs(self, x: Any, dropout_masks: Sequence[Any] | None, training: bool, tracking: bool) -> Array:
        """The last layer's outputs, in the plan's memory."""
        x, masks = self._checked_x(x), self._checked_masks(dropout_masks, x)
        self.check_as_made(x.shape[0], training)
        plan = self.plan(x.shape[0], training, masks is not None)
        send(plan, x, masks)

        def launches(stream: Any) -> None:
            launch_steps(plan.made.forward, Order(training, training and tracking, self.loss_name, stream))

        if graphs.available() and plan.may_be_captured:
            # The default stream, on which x was sent and the outputs will be read, waits for the graphs' stream.
            plan.graphs.launch(("forward", plan.serial, training and tracking, *self._addresses), launches)
        else:
            launches(0)
        return plan.kept["outputs"]

    def check_as_made(self, rows: int, training: bool) -> None:
        """ValueError or TypeError if what plans are made from was changed, or training would normalise single numbers:
        kernels would read and write past their memory, or find out when something has changed already."""
        now = (self.architecture, self.dtype, self.loss_name, *self.layer_sizes, *self.layers)
        if len(now) != len(self._made) or any(a is not b and a != b for a, b in zip(now, self._made, strict=True)):
            raise ValueError(
                "Network: its architecture, dtype, loss_name, layer_sizes or layers were changed; "
                "make a new network with these"
            )
        for shape in self._normal_shapes() if training else ():
            check_count((rows, *shape))
        arrays = [*self.parameters, *self.layer_gradients, *self.running_statistics]
        if len(arrays) != len(self._checked) or any(a is not b for a, b in zip(arrays, self._checked, strict=True)):
            for i, part in enumerate(self._trained, start=1):
                part.check_memory(f"Network: part {i}", np.dtype(self.dtype))
            check_apart(arrays)
            self._checked, self._addresses = arrays, tuple(map(address, arrays))

    def _normal_shapes(self) -> Iterator[tuple[int, ...]]:
        """The shape of what comes into each batch normalisation, for one sample."""
        for each in self.architecture.placed():
            if isinstance(each.layer, layers.BatchNorm):
                yield each.input_shape

    def _checked_x(self, x: Any) -> Array:
        """x as (batch, *input_shape)."""
        x = checked_array(x, self.dtype)
        expected, size = self.architecture.input_shape, self.layer_sizes[0]
        if x.shape[1:] not in (expected, (size,)):
            images = f" or (batch, {', '.join(map(str, expected))})" if len(expected) == 3 else ""
            raise ValueError(f"Network: x is {x.shape}, expected (batch, {size}){images}")
        return x.reshape(x.shape[0], *expected)

    def _checked_masks(self, dropout_masks: Sequence[Any] | None, x: Array) -> list[Array] | None:
        if dropout_masks is None:
            return None
        if not hasattr(dropout_masks, "__len__"):
            raise TypeError(f"dropout_masks: expected a list of arrays, got {type(dropout_masks).__name__}")
        sizes = [size for size, _ in self.architecture.dropouts()]
        if len(dropout_masks) != len(sizes):
            raise ValueError(
                f"dropout_masks: expected {len(sizes)}, one for each Dropout layer, got {len(dropout_masks)}"
            )
        masks = [checked_array(mask, self.dtype) for mask in dropout_masks]
        for i, (mask, size) in enumerate(zip(masks, sizes, strict=True), start=1):
            if mask.shape != (x.shape[0], size):
                raise ValueError(f"dropout_masks: mask {i} is {mask.shape}, expected {(x.shape[0], size)}")
        return masks


def op_by_op(network: LayeredNetwork, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """A kernel for every operation of every part, in both directions."""
    x, y, masks = network.checked(x, y, masks)
    with _unchanged(network.running_statistics, only_after_errors=optimizer is not None):
        outputs = parts.forward(network.layers, _on_device(x), network.one_pass(True, masks))[-1]
        targets = _on_device(y)
        loss = losses.loss_of(network.loss_name, outputs, targets)
        grad = losses.gradient_of(network.loss_name, outputs, targets, empty(outputs.shape, outputs.dtype))
        parts.backward(network.layers, grad, needs_grad_input=False, precision=network.precision)
        if optimizer is not None:
            optimizer.step(network.parameters, network.layer_gradients)
    return loss


def fused(network: LayeredNetwork, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """The kernels of the network's plan, in its memory."""
    x, y, masks = network.checked(x, y, masks)
    plan = network.plan(x.shape[0], True, masks is not None)
    order = Order(training=True, tracking=optimizer is not None, loss=network.loss_name)
    with _all_or_nothing(network, optimizer):
        send(plan, x, masks, y)
        launch_steps(plan.made.forward, order)
        launch_steps(plan.made.backward, order)
        move = Move(network, optimizer)
        move.launch(order.stream)
        move.done()
    return float(np.sum(plan.kept["losses"].copy_to_host(), dtype=np.float64))


def graph(network: LayeredNetwork, x: Any, y: Any, optimizer: Any, masks: Sequence[Any] | None = None) -> float:
    """`fused` from a CUDA graph. Where there is no GPU there are no graphs, and this is that rung."""
    if not graphs.available():
        return fused(network, x, y, optimizer, masks)
    x, y, masks = network.checked(x, y, masks)
    plan, count = network.plan(x.shape[0], True, masks is not None), len(masks or ())
    if not plan.may_be_captured:
        return fused(network, x, y, optimizer, masks)
    with _all_or_nothing(network, optimizer):
        ready = network.ready.step(
            network, plan, optimizer, (x.shape[0], count), lambda: made_ready(network, plan, optimizer, count)
        )
        given = zip([x, y, *(masks or ())], ready.own, strict=True)
        return ready.take(network, [array.reshape(own.shape) for array, own in given])


LAYERED_STEP_LADDER: dict[str, Callable[..., float]] = {"op_by_op": op_by_op, "fused": fused, "graph": graph}


def send(plan: Plan, x: Array, masks: Sequence[Array] | None, y: Array | None = None) -> None:
    """What is new in every step, to where the kernels of the plan look for it."""
    given = {"x": x} | {f"mask {i}": mask for i, mask in enumerate(masks or ())}
    if y is not None:
        given["y"] = y
    for name, array in given.items():
        own = plan.given.get(name)
        if own is not None:  # a mask of a layer that the plan left out
            own.copy_to_device(array.reshape(own.shape))


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


def _on_device(array: Array) -> Array:
    """The array on the device, copied there if it is not."""
    return array if on_device(array) else sent(array, empty(array.shape, array.dtype))


@contextlib.contextmanager
def _all_or_nothing(network: LayeredNetwork, optimizer: Any) -> Iterator[None]:
    """A step of launches that were checked: only the optimizer may still refuse. One of this floor is asked before;
    after an error of one of somebody else's the running statistics are put back."""
    foreign = optimizer is not None and type(optimizer) not in OPTIMIZERS
    if optimizer is not None and not foreign:
        optimizer._state.memory(network.parameters)
    with _unchanged(network.running_statistics if foreign else [], only_after_errors=True):
        yield


@contextlib.contextmanager
def _unchanged(arrays: Sequence[Array], only_after_errors: bool = False) -> Iterator[None]:
    """Put back what the arrays held."""
    before = [copy(array) for array in arrays]
    changed = True
    try:
        yield
        changed = not only_after_errors
    finally:
        if changed:
            for array, values in zip(arrays, before, strict=True):
                array.copy_to_device(values)
