"""What a network is on every stage: its arguments, its architecture, the checks of what comes in, the order of calls.

    outputs, forward         check x and the masks, then the stage's `_forward`
    loss                     the same, then the loss
    gradients, train_step    `_checked_step`: check x, y and the masks, then the stage's `_step` (forward, loss,
                             backward, optimizer); stages 3 and 4 take a faster plan there
    predict                  the stage's `_classes` of the last outputs

A dataclass of shared/layers.py, such as Dense(10), describes a layer: below, a `description`. An object of the stage's
own class, such as stage2_numpy.dense.Dense(weights, bias), computes it: below, a `layer`.

The mathematics is in the stages. A stage derives its `Network` from `NetworkBase` and gives

    losses             its module of losses
    layer_classes      its class for each kind of layer
    _asarray           numbers as its own array, for parameters and running statistics
    _forward, _step    the passes
    _classes           the class of each row of outputs

It overrides these where the default does not fit:

    _as_input, _shape, _reshaped, _own_copy, _put_back,   its arrays, which are not like NumPy's
    _form, _overlap, writes_gradients_in_place
    _loss_of, _checked_labels                             its losses
    _last_outputs, _checked_step, _check_arrays           its faster ways (stages 3 and 4)

This module uses only the standard library, so that stage 1 can import it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import is_
from typing import Any, ClassVar

from shared import layers
from shared.architectures import Architecture, mlp
from shared.initialize import initialize_parameters
from shared.names import ACTIVATIONS, LABEL_LOSSES, LOSSES, check_dtype, check_name

Array = Any
"""A stage's own array."""

Shape = tuple[int, ...]


class NetworkBase:
    """A network: a list of layers, as its architecture describes them, and a loss at the end.

    layer_sizes: [in_features, hidden, …, out_features], which means the architecture `mlp(layer_sizes, activation)`, or
        an Architecture (shared/architectures.py), whose last layer's output must be (classes,)
    activation: between the dense layers, one of shared.names.ACTIVATIONS; an Architecture has its own
    loss: one of shared.names.LOSSES
    initializer, seed: as shared.initialize takes them; a seed gives the same numbers on every stage
    dtype: "float32" or "float64"; inputs of another dtype are converted

    architecture: the network's form as data
    layers: the stage's layers, one for each description in architecture.layers
    layer_sizes: of an `mlp` its sizes; of any other architecture [numbers of one input, classes]
    activation: of an `mlp`; "" for any other architecture, whose layers name their own
    loss_name, dtype: as above
    These are to be read: a network that finds one of them changed raises ValueError, and computes nothing.
    Raises ValueError for an unknown name, impossible sizes or an architecture that ends in an image.

    x is (batch, numbers of one input) or (batch, channels, height, width). `train_step` and `gradients` use the
    statistics of the batch itself in batch normalisation; the other methods use the running ones unless told otherwise.
    Only `train_step`, and `forward` and `outputs` with training=True, change the running statistics.
    """

    losses: Any
    """The stage's module of losses: for each name the loss, and `{name}_backward`."""

    layer_classes: ClassVar[Mapping[type[Any], type[Any]]]
    """The stage's class for each class of description in shared.layers, and what its `__init__` takes:

    Conv: (weights, bias, stride, padding); Dense: (weights, bias); BatchNorm: (gamma, beta, running_mean, running_var);
    Residual: (layers); MaxPool, AveragePool and Activate: (description); Flatten and Dropout: ()
    """

    writes_gradients_in_place: ClassVar[bool] = True
    """Whether the layers write each step's gradients into the same arrays."""

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
            architecture = layer_sizes
            architecture.check_activation(activation)
        else:
            check_name("unknown activation", activation, ACTIVATIONS)
            architecture = mlp(layer_sizes, activation)
        parameters = initialize_parameters(architecture, initializer, seed)
        self._build(architecture, activation, loss, dtype, parameters, None)

    @classmethod
    def from_parameters(
        cls,
        parameters: Sequence[Any],
        activation: str = "relu",
        loss: str = "softmax_cross_entropy",
        dtype: str = "float32",
        architecture: Architecture | None = None,
        running_statistics: Sequence[Any] | None = None,
    ) -> Any:
        """A network with these weights and biases, [W1, b1, W2, b2, …], copied and cast to dtype.

        architecture: if it is given, the parameters are in the order of its `parameters()`, and it decides about the
            activation; None: an `mlp` with this activation, whose sizes are those of the weights
        running_statistics: [mean, variance, …] of the architecture's batch normalisations; None: mean 0, variance 1
        """
        check_dtype("Network", dtype)
        network = cls.__new__(cls)
        if architecture is None:
            check_name("unknown activation", activation, ACTIVATIONS)
            _check_pairs(parameters)
            shapes = [network._shape(network._asarray(weights, dtype)) for weights in parameters[::2]]
            architecture = mlp(_chained_sizes(shapes), activation)
        else:
            architecture.check_activation(activation)
        network._build(architecture, activation, loss, dtype, parameters, running_statistics)
        return network

    def _build(
        self,
        architecture: Architecture,
        activation: str,
        loss: str,
        dtype: str,
        parameters: Sequence[Any],
        running_statistics: Sequence[Any] | None,
    ) -> None:
        """Check everything and make the layers. A stage that keeps more calls this first, in a `_build` of its own."""
        check_name("unknown loss", loss, LOSSES)
        check_dtype("Network", dtype)
        if len(architecture.output_shape) != 1:
            raise ValueError(
                f"Network: the last layer's output is {architecture.output_shape}, an image; "
                "a network ends in (classes,), so Flatten() and Dense(classes) must come last"
            )
        self.architecture, self.loss_name, self.dtype = architecture, loss, dtype
        ends = [math.prod(architecture.input_shape), *architecture.output_shape]
        self._input_shapes = (architecture.input_shape, (ends[0],))
        self._output_shape = architecture.output_shape
        self.layer_sizes, self.activation = ends, ""
        if form := architecture.as_mlp():
            self.layer_sizes, self.activation = form.sizes, form.activation
            if len(form.sizes) == 2:  # one dense layer has no activation after it: the argument stays
                self.activation = activation
        self._loss = getattr(self.losses, loss)
        self._loss_backward = getattr(self.losses, f"{loss}_backward")
        self._make_layers(architecture, parameters, running_statistics)
        rows = [[*layers] for layers in self._rows_of_layers()]
        self._as_built = (architecture, self.activation, dtype, loss, [*self.layer_sizes], rows)
        self._settings = [getattr(layer, name) for layer, name in self._setting_places]
        statistics = [(layer, name) for layer in self._normalising for name in ("running_mean", "running_var")]
        self._kept_places = [
            *self._parameter_places,
            *(self._gradient_places if self.writes_gradients_in_place else ()),
            *statistics,
        ]
        self._forms = [self._form(array) for array in self._kept_arrays()]
        self._checked_arrays: list[Any] = [None] * len(self._forms)

    def _make_layers(
        self, architecture: Architecture, parameters: Sequence[Any], running_statistics: Sequence[Any] | None
    ) -> None:
        """The layers with their arrays, and where each of the arrays is."""
        names = [parameter.name for parameter in architecture.parameters()]
        arrays = self._fitting("parameters", parameters, architecture.parameter_shapes(), names)
        shapes = architecture.running_shapes()
        if running_statistics is None:
            # mean 0, variance 1, mean 0, …: a list for each batch normalisation's two
            running_statistics = [[float(i % 2)] * channels for i, (channels,) in enumerate(shapes)]
        names = [f"{('mean', 'variance')[i % 2]} {i // 2 + 1}" for i in range(len(shapes))]  # "mean 1", "variance 1", …
        statistics = self._fitting("running_statistics", running_statistics, shapes, names)
        self._trained: list[Any] = []
        """The layers with parameters, in order; those in residual blocks, too."""
        self._normalising: list[Any] = []
        """The batch normalisations among them."""
        self._parameter_places: list[tuple[Any, str]] = []
        """(layer, name of its attribute) of each parameter, in order."""
        self._gradient_places: list[tuple[Any, str]] = []
        """(layer, name of its attribute) of each parameter's gradient."""
        self._all_layers: list[Any] = []
        """Every layer, in the order of `architecture.placed()`."""
        self._setting_places: list[tuple[Any, str]] = []
        """(layer, name of its attribute) of each setting that the plans of stages 3 and 4 are made from."""
        self.layers = self._layers_for(architecture.layers, iter(arrays), iter(statistics))
        self._blocks = [layer for layer in self._all_layers if hasattr(layer, "layers")]

    def _fitting(self, what: str, values: Any, shapes: Sequence[Shape], names: Sequence[str]) -> list[Array]:
        """The values as arrays, or an error that names the first one that does not fit."""
        if not hasattr(values, "__len__"):
            raise TypeError(f"{what}: expected a list of {len(shapes)} arrays, got {type(values).__name__}")
        if len(values) != len(shapes):
            raise ValueError(f"{what}: the architecture has {len(shapes)} arrays, got {len(values)}")
        arrays = [self._asarray(array, self.dtype) for array in values]
        for array, shape, name in zip(arrays, shapes, names, strict=True):
            if self._shape(array) != shape:
                raise ValueError(f"{what}: {name} is {self._shape(array)}, expected {shape}")
        return arrays

    def _layers_for(
        self, descriptions: Sequence[layers.Layer], parameters: Iterator[Array], statistics: Iterator[Array]
    ) -> list[Any]:
        """The stage's layers for these descriptions, each with the next of the parameters and running statistics."""
        stage_layers = []
        for description in descriptions:
            layer_class = self.layer_classes[type(description)]
            match description:
                case layers.Conv(stride=stride, padding=padding):
                    layer = layer_class(next(parameters), next(parameters), stride, padding)
                case layers.Dense():
                    layer = layer_class(next(parameters), next(parameters))
                case layers.BatchNorm():
                    layer = layer_class(next(parameters), next(parameters), next(statistics), next(statistics))
                    self._normalising.append(layer)
                case layers.Residual():
                    layer = layer_class(self._layers_for(description.layers, parameters, statistics))
                case layers.Flatten() | layers.Dropout():
                    layer = layer_class()
                case _:
                    layer = layer_class(description)
            if names := PARAMETER_NAMES.get(type(description)):
                self._trained.append(layer)
                self._parameter_places += [(layer, name) for name in names]
                self._gradient_places += [(layer, f"grad_{name}") for name in names]
            self._setting_places += [(layer, name) for name in SETTING_NAMES.get(type(description), ())]
            self._all_layers.append(layer)
            stage_layers.append(layer)
        return stage_layers

    # ---- what a network has

    @property
    def parameters(self) -> list[Array]:
        """The network's own arrays in the order of `architecture.parameters()`; an optimizer changes them in place."""
        return [getattr(layer, name) for layer, name in self._parameter_places]

    @property
    def layer_gradients(self) -> list[Array]:
        """The layers' own gradients in the order of `parameters`; the next step replaces them or writes over them."""
        return [getattr(layer, name) for layer, name in self._gradient_places]

    @property
    def running_statistics(self) -> list[Array]:
        """[mean, variance, …] of the batch normalisations in order: the network's own arrays."""
        return [array for layer in self._normalising for array in (layer.running_mean, layer.running_var)]

    # ---- what a network does

    def forward(self, x: Any, dropout_masks: Sequence[Any] | None = None, training: bool = False) -> Array:
        """x -> the last layer's raw outputs (batch, classes).

        dropout_masks: None, or one array (batch, numbers of one sample) for each Dropout layer, of 0 and 1 / (1 - rate)
        training: whether batch normalisation uses the batch's own statistics, and changes the running ones
        """
        return self._own_copy(self._last_outputs(*self._checked_input(x, dropout_masks), training, tracking=True))

    def outputs(self, x: Any, dropout_masks: Sequence[Any] | None = None, training: bool = False) -> list[Array]:
        """The output of every layer of the architecture, in order; a residual block is one layer."""
        checked = self._checked_input(x, dropout_masks)
        with self._statistics_put_back(always=False):
            return [self._own_copy(output) for output in self._forward(*checked, training)]

    def loss(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None = None, training: bool = False) -> float:
        """The loss of forward(x) against y: labels (batch,), or targets shaped like the outputs.

        training: whether batch normalisation uses the batch's own statistics; the running ones stay as they are
        """
        x, masks = self._checked_input(x, dropout_masks)
        targets = self._checked_targets(y, self._shape(x)[0])
        return self._loss_of(self._last_outputs(x, masks, training, tracking=False), targets)

    def gradients(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None = None) -> list[Array]:
        """dL/dparameter for every parameter, in the order of `parameters`, by the batch's own statistics."""
        self._checked_step(x, y, None, dropout_masks)
        return [self._own_copy(grad) for grad in self.layer_gradients]

    def train_step(self, x: Any, y: Any, optimizer: Any, dropout_masks: Sequence[Any] | None = None) -> float:
        """Forward, backward, one step of the optimizer. Returns the loss before the step."""
        if not hasattr(optimizer, "step"):
            raise TypeError(f"train_step: optimizer: expected an optimizer, got {type(optimizer).__name__}")
        return self._checked_step(x, y, optimizer, dropout_masks)

    def predict(self, x: Any) -> Any:
        """The class of each sample: the column of its largest output. With a single output column, 1 where it
        is above 0 (for mean_squared_error: above 0.5), else 0."""
        outputs = self._last_outputs(*self._checked_input(x, None), training=False, tracking=False)
        return self._classes(outputs, 0.5 if self.loss_name == "mean_squared_error" else 0.0)

    def normalise_over(self, whole_batch: Any) -> None:
        """Let batch normalisation use the statistics of all ranks' rows (`shared.communicator.WholeBatch`) in training,
        or, with None, those of the batch that it gets."""
        for layer in self._normalising:
            layer.whole_batch = whole_batch

    # ---- the passes, which a stage gives

    def _forward(self, x: Array, masks: Sequence[Array] | None, training: bool) -> list[Array]:
        """x (batch, *input_shape) through the layers: the output of each."""
        raise NotImplementedError

    def _step(self, x: Array, y: Any, optimizer: Any, masks: Sequence[Array] | None) -> float:
        """Forward and backward in training, and a step of the optimizer unless it is None. Returns the loss before it.

        Afterwards the layers with parameters have their gradients.
        """
        raise NotImplementedError

    def _last_outputs(self, x: Array, masks: Sequence[Array] | None, training: bool, tracking: bool) -> Array:
        """The outputs of the last layer. tracking: whether training changes the running statistics.

        Stages 3 and 4 override it: their plan, the whole pass as one call, computes only the last outputs.
        """
        if not training:
            return self._forward(x, masks, training)[-1]
        with self._statistics_put_back(always=not tracking):
            return self._forward(x, masks, training)[-1]

    def _checked_step(self, x: Any, y: Any, optimizer: Any, dropout_masks: Sequence[Any] | None) -> float:
        """`_step` after all checks; afterwards the running statistics are as before, unless the optimizer took a step.

        Stages 3 and 4 override it: they have several implementations of a step, which check their arguments themselves.
        """
        x, y, masks = self.checked(x, y, dropout_masks)
        with self._statistics_put_back(always=optimizer is None):
            return self._step(x, y, optimizer, masks)

    def _classes(self, outputs: Array, threshold: float) -> Any:
        """The column of the largest number of each row; of a single column, 1 where it is above the threshold."""
        raise NotImplementedError

    def _loss_of(self, outputs: Array, targets: Any) -> float:
        loss: float = self._loss(outputs, targets)
        return loss

    # ---- a stage's arrays; where nothing else is said, they are like NumPy's

    def _asarray(self, values: object, dtype: str) -> Array:
        """The values as an array of the stage, as its function `asarray` makes it."""
        raise NotImplementedError

    def _as_input(self, values: object) -> Array:
        """x, targets or a mask as an array whose shape can be checked."""
        return self._asarray(values, self.dtype)

    def _shape(self, array: Array) -> Shape:
        shape: Shape = array.shape
        return shape

    def _reshaped(self, array: Array, shape: Shape, /) -> Array:
        return array.reshape(shape)

    def _own_copy(self, array: Array) -> Array:
        """The caller's to keep: no later call may change it."""
        return array.copy()

    def _put_back(self, array: Array, values: Array) -> None:
        """Write the values that a running statistic had before."""
        if array.flags.writeable:  # a read-only array stage_layers the step raise before anything changed it
            array[...] = values

    def _form(self, array: Any) -> str:
        """What an array must have in common with the one that it replaces, as text; "" for what is no array."""
        return f"{array.dtype} {array.shape}" if hasattr(array, "dtype") and hasattr(array, "shape") else ""

    def _overlap(self, a: Array, b: Array) -> bool:
        """Whether a change of one array may change the other."""
        return a is b

    def _kept_arrays(self) -> list[Array]:
        """What the layers keep from step to step: no two may share memory."""
        return [getattr(layer, name, None) for layer, name in self._kept_places]

    # ---- the checks of what comes in

    def _check_as_built(self) -> None:
        """ValueError where an attribute, a setting or an array of a layer is not what the network was built from."""
        rows = self._rows_of_layers()
        now = (self.architecture, self.activation, self.dtype, self.loss_name, self.layer_sizes, rows)
        if now != self._as_built:
            raise ValueError(
                "Network: its architecture, activation, dtype, loss_name, layer_sizes or layers were changed; "
                "make a new network with these"
            )
        settings = [getattr(layer, name, None) for layer, name in self._setting_places]
        if not all(map(is_, settings, self._settings)):
            self._check_settings(settings)
        self._check_arrays()

    def _rows_of_layers(self) -> list[Any]:
        """The network's own list of layers, and that of each residual block."""
        return [self.layers, *[getattr(block, "layers", None) for block in self._blocks]]

    def _check_settings(self, settings: Sequence[Any]) -> None:
        """ValueError where a stride, a padding or a window is another one; an equal one may take its place."""
        numbers = {
            id(layer): placed.number for layer, placed in zip(self._all_layers, self.architecture.placed(), strict=True)
        }
        for (layer, name), value, expected in zip(self._setting_places, settings, self._settings, strict=True):
            if repr(value) != repr(expected):
                raise ValueError(
                    f"Network: layer {numbers[id(layer)]}: {name.lstrip('_')} was changed to {value}, "
                    f"expected {expected}; make a new network"
                )

    def _check_arrays(self) -> None:
        """ValueError where an array of a layer does not fit, or is another layer's, too."""
        arrays = self._kept_arrays()
        if all(map(is_, arrays, self._checked_arrays)):
            return
        for (layer, name), array, form in zip(self._kept_places, arrays, self._forms, strict=True):
            if (got := self._form(array)) != form:
                raise ValueError(
                    f"Network: {type(layer).__name__}: {name} was replaced by {got or type(array).__name__}, "
                    f"expected {form}; change it in place, or make a new network"
                )
        apart = arrays if self.writes_gradients_in_place else [*arrays, *self.layer_gradients]
        for i, array in enumerate(apart):
            if any(self._overlap(array, other) for other in apart[:i]):
                raise ValueError(
                    "Network: two of the layers' weights, biases and gradients share memory; "
                    "give each memory of its own"
                )
        self._checked_arrays = arrays

    def checked(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None) -> tuple[Array, Any, list[Array] | None]:
        """x as (batch, *input_shape), y and the masks, or an error that says what is wrong with them."""
        x, masks = self._checked_input(x, dropout_masks)
        return x, self._checked_targets(y, self._shape(x)[0]), masks

    def _checked_input(self, x: Any, dropout_masks: Sequence[Any] | None) -> tuple[Array, list[Array] | None]:
        self._check_as_built()
        x = self._as_input(x)
        shape, expected = self._shape(x), self._input_shapes[0]
        if shape[1:] not in self._input_shapes:
            images = f" or (batch, {', '.join(map(str, expected))})" if len(expected) == 3 else ""
            raise ValueError(f"Network: x is {shape}, expected (batch, {math.prod(expected)}){images}")
        if shape[1:] != expected:
            x = self._reshaped(x, (shape[0], *expected))
        return x, None if dropout_masks is None else self._checked_masks(dropout_masks, shape[0])

    def _checked_masks(self, dropout_masks: Any, rows: int) -> list[Array]:
        if not hasattr(dropout_masks, "__len__"):
            raise TypeError(f"dropout_masks: expected a list of arrays, got {type(dropout_masks).__name__}")
        sizes = [size for size, _ in self.architecture.dropouts()]
        if len(dropout_masks) != len(sizes):
            raise ValueError(
                f"dropout_masks: expected {len(sizes)}, one for each Dropout layer, got {len(dropout_masks)}"
            )
        masks = [self._as_input(mask) for mask in dropout_masks]
        for i, (mask, size) in enumerate(zip(masks, sizes, strict=True), start=1):
            if self._shape(mask) != (rows, size):
                raise ValueError(f"dropout_masks: mask {i} is {self._shape(mask)}, expected {(rows, size)}")
        return masks

    def _checked_targets(self, y: Any, rows: int) -> Any:
        """The labels of `rows` samples, or targets shaped like their outputs."""
        shape = (rows, *self._output_shape)
        if self.loss_name in LABEL_LOSSES:
            return self._checked_labels(y, *shape)
        targets = self._as_input(y)
        given = self._shape(targets)
        if len(given) != 2:
            raise ValueError(
                f"{self.loss_name}: targets: expected 2 dimensions (rows, columns), got {len(given)} with shape {given}"
            )
        if given != shape:
            outputs = "logits" if self.loss_name == "sigmoid_cross_entropy" else "outputs"
            raise ValueError(
                f"{self.loss_name}: targets is {given} but {outputs} is {shape}; they must have the same shape"
            )
        return targets

    def _checked_labels(self, labels: object, rows: int, classes: int) -> Any:
        """The labels, checked; as they are, where the stage's losses check them anyway."""
        return labels

    def _statistics_put_back(self, always: bool) -> _StatisticsPutBack:
        """A `with` block, after which the running statistics are what they were: always, or only after an error."""
        if self._normalising:  # their statistics are copied, before the checks of stages 3 and 4
            NetworkBase._check_arrays(self)
        return _StatisticsPutBack(self, always)


class _StatisticsPutBack:
    def __init__(self, network: NetworkBase, always: bool) -> None:
        self._network, self._always = network, always
        self._before = [(array, network._own_copy(array)) for array in network.running_statistics]

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._always or kind is not None:
            for array, values in self._before:
                self._network._put_back(array, values)


PARAMETER_NAMES: dict[type[Any], tuple[str, ...]] = {
    layers.Conv: ("weights", "bias"),
    layers.Dense: ("weights", "bias"),
    layers.BatchNorm: ("gamma", "beta"),
}
"""The attributes of a layer that training changes, in order. Each has its gradient beside it, as `grad_weights`."""

SETTING_NAMES: dict[type[Any], tuple[str, ...]] = {
    layers.Conv: ("stride", "padding"),
    layers.MaxPool: ("_description",),
    layers.AveragePool: ("_description",),
}
"""The attributes of a layer that say where its window goes."""


def _check_pairs(parameters: Any) -> None:
    if not hasattr(parameters, "__len__"):
        raise TypeError(f"parameters: expected a list [W1, b1, W2, b2, …], got {type(parameters).__name__}")
    if len(parameters) < 2 or len(parameters) % 2:
        raise ValueError(f"parameters: expected [W1, b1, W2, b2, …], pairs, got {len(parameters)} arrays")


def _chained_sizes(weights: Sequence[Shape]) -> list[int]:
    """[in_features, hidden, …, out_features] from the shapes of the weights."""
    for i, (shape, following) in enumerate(pairwise(weights), start=1):
        if shape[-1] != following[0]:
            raise ValueError(
                f"parameters: layer {i} has {shape[-1]} outputs but layer {i + 1} takes {following[0]} inputs"
            )
    return [weights[0][0], *(shape[-1] for shape in weights)]
