"""Networks as data: the layers of a network in order, and what follows from them.

    Architecture((1, 28, 28), (Conv(6, 5, padding=2), Activate("relu"), MaxPool(2), Flatten(), Dense(10)))

An architecture holds no numbers of a network, only its form. When it is made, the shape of every layer's output is
worked out; a layer that does not fit is refused by its number. From the shapes follow the shapes of the parameters, how
many they are, and how many multiply-adds one forward pass of one sample takes. Every stage builds its network from the
same architecture, checkpoints store it as JSON, and `drawing` shows it as text. The layers are in `shared.layers`.

Shapes are those of one sample: an image is (channels, height, width), a row of features is (features,).
This module uses only the standard library, so that every stage can import it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from operator import index
from typing import Any, NamedTuple

from shared.layers import (
    KINDS,
    Activate,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Layer,
    MaxPool,
    Parameter,
    Placed,
    Residual,
    Shape,
    as_layers,
    checked_input_shape,
    describe,
    multiply_adds_of,
    parameters_of,
    place,
    shortened,
    times,
)

MOST_LAYERS, LARGEST_SETTING = 10_000, 2**31
"""Layers of a network, and the numbers in their settings, that are read from a file."""

DEEPEST_NESTING = 8
"""Residual blocks within residual blocks; a file from a stranger may ask for any number."""


class Stack(NamedTuple):
    """The arguments of `mlp`."""

    sizes: list[int]
    activation: str
    dropout: float

    @property
    def title(self) -> str:
        """'784-128-10 relu'."""
        return f"{'-'.join(map(str, self.sizes))} {self.activation}"


@dataclass(frozen=True)
class Architecture:
    """A network's form: the shape of one input and its layers, the first one first.

    input_shape: (channels, height, width) or (features,)
    Raises ValueError or TypeError naming the first layer that is none, has an impossible setting, or does not fit its
    input.

    >>> lenet5().parameter_count
    61706
    >>> Architecture((1, 2, 2), (Conv(8, 3),))
    Traceback (most recent call last):
        ...
    ValueError: layer 1, Conv(8, 3): input is 2 x 2, smaller than the 3 x 3 window
    """

    input_shape: Shape
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_shape", checked_input_shape(self.input_shape))
        object.__setattr__(self, "layers", as_layers(self.layers, ""))
        object.__setattr__(self, "_placed", tuple(place(self.layers, self.input_shape, "")))

    def placed(self) -> list[Placed]:
        """Every layer with its number and shapes; a residual block's own layers come before the block itself."""
        return list(self._placed)  # type: ignore[attr-defined]

    def shapes(self) -> list[Shape]:
        """The shape of the input, then of each layer's output; a residual block is one layer."""
        return [self.input_shape, *(each.output_shape for each in self.placed() if "." not in each.number)]

    @property
    def output_shape(self) -> Shape:
        """The shape of the last layer's output."""
        return self.shapes()[-1]

    @property
    def ends(self) -> tuple[int, int]:
        """(numbers of one input, numbers of one output)."""
        return math.prod(self.input_shape), math.prod(self.output_shape)

    def parameters(self) -> list[Parameter]:
        """Layer by layer in order: weights, bias; gamma, beta; those of a residual block's layers likewise."""
        return [parameter for each in self.placed() for parameter in parameters_of(each)]

    def parameter_shapes(self) -> list[Shape]:
        """The shapes of the network's flat list of parameters."""
        return [parameter.shape for parameter in self.parameters()]

    @property
    def parameter_count(self) -> int:
        """How many numbers training changes."""
        return sum(map(math.prod, self.parameter_shapes()))

    def running_shapes(self) -> list[Shape]:
        """The shapes of the running statistics, [mean, variance, …]: a pair for each batch normalisation."""
        found = [(each.input_shape[0],) for each in self.placed() if isinstance(each.layer, BatchNorm)]
        return [shape for shape in found for _ in range(2)]

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the convolutions and dense layers in the forward pass of one sample."""
        return sum(multiply_adds_of(each) for each in self.placed())

    def dropouts(self) -> list[tuple[int, float]]:
        """(numbers of one sample, rate) of each Dropout layer, in order: what `dropout_masks` are made from."""
        return [
            (math.prod(each.input_shape), each.layer.rate) for each in self.placed() if isinstance(each.layer, Dropout)
        ]

    def as_mlp(self) -> Stack | None:
        """The arguments of `mlp` that give these layers, after a Flatten or without one; None for any other network."""
        layers = self.layers[1:] if isinstance(self.layers[0], Flatten) else self.layers
        sizes = [math.prod(self.input_shape), *(each.out_features for each in layers if isinstance(each, Dense))]
        activation = next((each.name for each in layers if isinstance(each, Activate)), "relu")
        dropout = next((each.rate for each in layers if isinstance(each, Dropout)), 0.0)
        is_mlp = len(sizes) > 1 and mlp(sizes, activation, dropout).layers == layers
        return Stack(sizes, activation, dropout) if is_mlp else None

    def check_activation(self, name: str) -> None:
        """ValueError for an activation that was given to a Network beside this architecture, which names its own.

        "relu" passes: it is what `Network` has where none was given.
        """
        stack = self.as_mlp()
        if name not in ("relu", stack.activation if stack else ""):
            raise ValueError(f"Network: activation={name!r} goes with layer sizes; this architecture names its own")

    def to_json(self) -> dict[str, Any]:
        """The architecture as JSON values; `from_json` reads them."""
        return {"input_shape": list(self.input_shape), "layers": [_layer_to_json(layer) for layer in self.layers]}

    @classmethod
    def from_json(cls, values: object) -> Architecture:
        """The architecture of what `to_json` made. Raises ValueError or TypeError saying what is wrong with it."""
        if not isinstance(values, Mapping) or set(values) != {"input_shape", "layers"}:
            raise ValueError(f"architecture: expected an object with input_shape and layers, got {shortened(values)}")
        _check_amounts(values)
        return cls(values["input_shape"], tuple(_layers_from_json(values["layers"], 0)))

    def drawing(self, durations: Mapping[str, str] | None = None) -> str:
        """The architecture as text: a line for each layer with its output's shape, parameters and multiply-adds.

        durations: for a last column, the time that each layer took, by its number
        """
        durations = durations or {}
        rows = [("", "input", times(self.input_shape), "", "", "")]
        for each in self.placed():
            count = sum(math.prod(parameter.shape) for parameter in parameters_of(each))
            work = multiply_adds_of(each)
            title = "+ input of the block" if isinstance(each.layer, Residual) else describe(each.layer)
            indent = "  " * each.number.count(".")
            number, shape = f"{indent}{each.number}", times(each.output_shape)
            numbers = (f"{count:,}" if count else "", f"{work:,}" if work else "", durations.get(each.number, ""))
            rows.append((number, f"{indent}{title}", shape, *numbers))
        rows.append(("", "", "", f"{self.parameter_count:,}", f"{self.multiply_adds:,}", ""))
        heads = ("layer", "", "output", "parameters", "multiply-adds", "time" if durations else "")
        widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(6)]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if i < 3 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (heads, *rows)
        )


# ---- the known networks


def mlp(sizes: Sequence[int], activation: str = "relu", dropout: float = 0.0) -> Architecture:
    """Dense layers with an activation between them: [in_features, hidden, …, classes], as `Network(sizes, activation)`.

    dropout: the rate of a Dropout layer after each activation; 0: no such layers
    """
    sizes = check_layer_sizes(sizes)
    between = (Activate(activation), Dropout(dropout)) if dropout else (Activate(activation),)
    hidden = [layer for size in sizes[1:-1] for layer in (Dense(size), *between)]
    return Architecture((sizes[0],), (*hidden, Dense(sizes[-1])))


def check_layer_sizes(layer_sizes: Sequence[int]) -> list[int]:
    """The sizes as a list. Raises ValueError or TypeError if they are not two or more positive whole numbers."""
    if not hasattr(layer_sizes, "__iter__"):
        raise TypeError(f"layer_sizes: expected a list of sizes, got {layer_sizes!r}")
    sizes = [index(size) if hasattr(size, "__index__") and not isinstance(size, bool) else size for size in layer_sizes]
    if len(sizes) < 2:
        raise ValueError(f"layer_sizes: expected at least an input and an output size, got {sizes}")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"layer_sizes: every size must be a whole number of at least 1, got {size!r} in {sizes}")
        if size >= LARGEST_SETTING:
            raise ValueError(f"layer_sizes: every size must be below {LARGEST_SETTING:,}, got {size:,}")
    return sizes


def lenet5(input_shape: Shape = (1, 28, 28), classes: int = 10) -> Architecture:
    """LeCun et al. 1998 as it is taught today, with ReLU and max pooling. 61,706 parameters."""
    relu = Activate("relu")
    images = (Conv(6, 5, padding=2), relu, MaxPool(2), Conv(16, 5), relu, MaxPool(2))
    return Architecture(input_shape, (*images, Flatten(), Dense(120), relu, Dense(84), relu, Dense(classes)))


def fashion_cnn(input_shape: Shape = (1, 28, 28), classes: int = 10) -> Architecture:
    """Two wide convolutions and two dense layers, for Fashion-MNIST. 896,522 parameters."""
    relu = Activate("relu")
    images = (Conv(64, 3), MaxPool(2), relu, Conv(128, 3), MaxPool(2), relu)
    return Architecture(input_shape, (*images, Flatten(), Dense(256), relu, Dense(classes)))


def residual_cnn(input_shape: Shape = (1, 28, 28), classes: int = 10) -> Architecture:
    """Two stages of 32 and 64 channels, each with a residual block and batch normalisation. 514,570 parameters."""
    layers: list[Layer] = []
    for channels in (32, 64):
        normal: tuple[Layer, ...] = (Conv(channels, 3, padding=1), BatchNorm())
        block = Residual((*normal, Activate("relu"), *normal))
        layers += [*normal, Activate("relu"), block, Activate("relu"), MaxPool(2)]
    return Architecture(input_shape, (*layers, Flatten(), Dense(128), Activate("relu"), Dense(classes)))


NAMED = {"lenet5": lenet5, "fashion_cnn": fashion_cnn, "residual_cnn": residual_cnn}
"""The known networks by name; each takes the shape of an input and the number of classes."""


def named(name: str, input_shape: Shape = (1, 28, 28), classes: int = 10) -> Architecture:
    """The known network of this name. Raises ValueError with the choices for any other name."""
    if name not in NAMED:
        raise ValueError(f"unknown architecture {name!r}; choose one of {', '.join(NAMED)}")
    return NAMED[name](input_shape, classes)


# ---- JSON


def _layer_to_json(layer: Layer) -> dict[str, Any]:
    if isinstance(layer, Residual):
        return {"kind": "Residual", "layers": [_layer_to_json(each) for each in layer.layers]}
    values = {field.name: getattr(layer, field.name) for field in fields(layer)}
    return {"kind": type(layer).__name__} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _check_amounts(values: object) -> None:
    """Raise ValueError for more layers or larger numbers than a network has, before any layer is made."""
    left, layers = [values], 0
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            layers += 1
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif isinstance(value, int) and abs(value) >= LARGEST_SETTING:
            raise ValueError(f"architecture: expected numbers below {LARGEST_SETTING:,}, got {shortened(value)}")
    if layers > MOST_LAYERS + 1:  # the object around them is one, too
        raise ValueError(f"architecture: expected at most {MOST_LAYERS:,} layers, got {layers - 1:,}")


def _layers_from_json(values: object, depth: int) -> Iterator[Layer]:
    if not isinstance(values, list):
        raise TypeError(f"architecture: layers: expected a list, got {shortened(values)}")
    if depth > DEEPEST_NESTING:
        raise ValueError(f"architecture: residual blocks are nested more than {DEEPEST_NESTING} deep")
    for i, each in enumerate(values, start=1):
        kind = KINDS.get(str(each.get("kind"))) if isinstance(each, Mapping) else None
        if kind is None:
            raise ValueError(f"architecture: layer {i}: expected a kind of {', '.join(KINDS)}, got {shortened(each)}")
        given = {name: value for name, value in each.items() if name != "kind"}
        known = {field.name: field.default for field in fields(kind)}
        needed = {name for name, default in known.items() if default is MISSING}
        if not needed <= set(given) <= set(known):
            raise ValueError(
                f"architecture: layer {i}, {kind.__name__}: expected {', '.join(known) or 'no settings'}, "
                f"got {', '.join(map(str, given)) or 'none'}"
            )
        if kind is Residual:
            given["layers"] = tuple(_layers_from_json(given["layers"], depth + 1))
        yield kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()})
