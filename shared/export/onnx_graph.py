"""A network as a graph of ONNX: one node for each layer, and the parameters as constants.

    Conv, Dense              Conv, Gemm: the same sums, and weights in the same order as ours
    MaxPool, AveragePool     the same; a window that does not fit at the edge is dropped, as it is here
    BatchNorm                BatchNormalization by the running statistics
    Activate                 Relu, LeakyRelu, Sigmoid, Tanh, Softmax
    Flatten, Residual        Flatten, Add
    Dropout, identity        no node: once training is over they change nothing

A run's normalisation comes first, as Sub and Div: who opens the file gives it pixels as the data set has them, and
needs to know nothing else. All numbers are float32. The first axis, the batch, has any length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from shared import layers
from shared.architectures import Architecture
from shared.data.normalisation import Normalisation
from shared.layers import Placed
from shared.plain_arrays import check_held
from shared.windows import as_pair, within

INPUT, OUTPUT = "pixels", "logits"

OPSET, IR = 17, 8
"""Versions of the operators and of the file: of 2022. Today's runtimes read them, and those of that year do, too."""

MOST_BYTES = 2**31 - 2**20
"""Of all parameters: a file of ONNX is one message of protobuf, which has at most 2 GiB."""

ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("Relu", {}),
    "leaky_relu": ("LeakyRelu", {"alpha": 0.01}),
    "sigmoid": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
    "softmax": ("Softmax", {"axis": 1}),
}
"""Our activations but for identity: the operator and its settings."""

EPSILON = 1e-5
"""Of every batch normalisation: the floors' own, which no architecture changes."""


def model_of(
    architecture: Architecture,
    parameters: Sequence[np.ndarray],
    running_statistics: Sequence[np.ndarray] = (),
    normalisation: Normalisation | None = None,
    metadata: Mapping[str, str] | None = None,
    version: str = "",
) -> ModelProto:
    """The network as a model: pixels (batch, *input_shape) -> logits (batch, classes).

    parameters, running_statistics: in the architecture's order, float32 or float64
    metadata: texts about the network; version: of groundup
    Raises ValueError for a number that float32 does not hold, and for more numbers than one file has.
    """
    if 4 * architecture.parameter_count > MOST_BYTES:
        raise ValueError(f"an ONNX file has at most 2 GiB, too little for {architecture.parameter_count:,} parameters")
    graph = _Graph(architecture, parameters, running_statistics)
    graph.ended(graph.chain(architecture.layers, graph.normalised(normalisation)))
    return graph.model(architecture, metadata, version)


class Nodes:
    """The nodes and constants so far. Values are known by their names, and a node has the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def normalised(self, normalisation: Normalisation | None) -> str:
        """The input as the network learned from it."""
        if normalisation is None:
            return INPUT
        value = self.node("Sub", "from_mean", INPUT, self.constant("mean", normalisation.mean))
        return self.node("Div", "normalised", value, self.constant("deviation", normalisation.deviation))

    def ended(self, value: str) -> None:
        """The value becomes the output."""
        if value == INPUT:
            self.node("Identity", OUTPUT, value)
        else:  # the last node made it, and no other node reads it
            self.nodes[-1].output[0] = OUTPUT

    def model(self, architecture: Architecture, metadata: Mapping[str, str] | None, version: str) -> ModelProto:
        """All as a model: pixels (batch, *input_shape) -> logits (batch, classes)."""
        made = helper.make_graph(
            self.nodes,
            "groundup",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["batch", *architecture.input_shape])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", *architecture.output_shape])],
            self.constants,
        )
        operators = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(made, opset_imports=operators, producer_name="groundup", producer_version=version)
        model.ir_version = IR  # make_model takes the newest that the installed onnx knows
        helper.set_model_props(model, dict(metadata or {}))
        return model

    def without_weights(self, placed: Placed, value: str) -> str:
        """An activation, pool or flatten; what changes nothing has no node."""
        layer, number = placed.layer, placed.number
        if isinstance(layer, layers.MaxPool | layers.AveragePool):
            return self.windows(placed, value)
        if isinstance(layer, layers.Activate) and layer.name != "identity":
            kind, settings = ACTIVATIONS[layer.name]
            return self.node(kind, number, value, **settings)
        if isinstance(layer, layers.Flatten):
            return self.node("Flatten", number, value, axis=1)
        return value

    def windows(self, placed: Placed, value: str, *learned: str) -> str:
        """A convolution or a pool. Padding is the same on both sides: rows and columns before, then after."""
        layer: Any = placed.layer
        padding = as_pair(getattr(layer, "padding", 0))
        stride = as_pair(layer.size if layer.stride is None else layer.stride)
        return self.node(
            type(layer).__name__,
            placed.number,
            value,
            *learned,
            kernel_shape=as_pair(layer.size),
            strides=within(placed.input_shape, stride, padding),
            pads=(*padding, *padding),
        )

    def constant(self, name: str, values: Any) -> str:
        array = np.asarray(values)
        if array.dtype == np.int8:
            kind, content = TensorProto.INT8, array.tobytes()
        else:
            check_held(name, array, np.float32)
            kind, content = TensorProto.FLOAT, array.astype("<f4").tobytes()
        self.constants.append(helper.make_tensor(name, kind, array.shape, content, raw=True))
        return name

    def node(self, kind: str, name: str, *inputs: str, **settings: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **settings))
        return name


class _Graph(Nodes):
    """A network in floats: its layers take their parameters one after the other."""

    def __init__(
        self, architecture: Architecture, parameters: Sequence[np.ndarray], running: Sequence[np.ndarray]
    ) -> None:
        super().__init__()
        self.placed, self.parameters, self.running = iter(architecture.placed()), iter(parameters), iter(running)

    def chain(self, chosen: Sequence[layers.Layer], value: str) -> str:
        for layer in chosen:
            value = self.residual(layer, value) if isinstance(layer, layers.Residual) else self.one(value)
        return value

    def residual(self, block: layers.Residual, value: str) -> str:
        inner = self.chain(block.layers, value)
        return self.node("Add", next(self.placed).number, inner, value)  # in the order of `placed` the block is last

    def one(self, value: str) -> str:
        placed = next(self.placed)
        layer, number = placed.layer, placed.number
        if isinstance(layer, layers.Conv):
            return self.windows(placed, value, *self.learned(number, "weights", "bias"))
        if isinstance(layer, layers.Dense):
            return self.node("Gemm", number, value, *self.learned(number, "weights", "bias"))
        if isinstance(layer, layers.BatchNorm):
            learned = self.learned(number, "gamma", "beta")
            running = [self.constant(f"{number}.{name}", next(self.running)) for name in ("mean", "variance")]
            return self.node("BatchNormalization", number, value, *learned, *running, epsilon=EPSILON)
        return self.without_weights(placed, value)

    def learned(self, number: str, *names: str) -> list[str]:
        return [self.constant(f"{number}.{name}", next(self.parameters)) for name in names]
