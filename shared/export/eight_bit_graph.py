"""A network in eight bits as a graph of ONNX: the graph in floats, with pairs of nodes where a number is rounded.

    QuantizeLinear      q = round(v / scale), as int8
    DequantizeLinear    scale · q, as a float

Such a pair (Q/DQ) changes floats into the floats that eight bits have. By it, the file says where to round and with
which scale; a runtime that has integer instructions takes a layer between two pairs for what it is, and computes it by
whole numbers. So a pair stands right behind the sums, and another one right before the next: what lies between them
(ReLU, pools) only picks numbers, and the second pair, of the same scale, changes nothing.

The weights are in the file as int8, with DequantizeLinear alone. Everything is symmetric: all zero points are 0, as
TensorRT demands it. A bias stays a float, a multiple of the sums' scale: TensorRT takes none of int32, and ONNX Runtime
finds its whole number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from shared import layers
from shared.data.normalisation import Normalisation
from shared.export.onnx_graph import EPSILON, Nodes


def model_of(
    network: Any,
    normalisation: Normalisation | None = None,
    metadata: Mapping[str, str] | None = None,
    version: str = "",
) -> ModelProto:
    """A network in eight bits (stage2_numpy.eight_bit_network) as a model: pixels -> logits, both float32."""
    graph = _Graph()
    graph.constant(ZERO, np.int8(0))
    graph.ended(graph.chain(network.steps, graph.normalised(normalisation)))
    return graph.model(network.architecture, metadata, version)


ZERO = "zero_point"


class _Graph(Nodes):
    """Each step of the network: its source, the layers behind it, and a pair of nodes where it rounds."""

    def chain(self, steps: Sequence[Any], value: str) -> str:
        for step in steps:
            value = self.followed(step.computing, self.source(step.source, value))
            if step.rounds:
                scale = self.constant(f"{value} scale", step.scale)
                value = self.rounded(value, scale)
            value = self.followed(step.picking, value)
            if step.rounds and step.picking:
                value = self.rounded(value, scale)
        return value

    def followed(self, layers_without_weights: Sequence[Any], value: str) -> str:
        for placed in layers_without_weights:
            value = self.without_weights(placed, value)
        return value

    def rounded(self, value: str, scale: str) -> str:
        numbers = self.node("QuantizeLinear", f"{value} rounded", value, scale, ZERO)
        return self.node("DequantizeLinear", f"{value} in eight bits", numbers, scale, ZERO)

    def source(self, source: Any, value: str) -> str:
        placed = source.placed
        match placed and placed.layer:
            case layers.Conv():
                return self.windows(placed, value, *self.sums(source, source.kernel_shape))
            case layers.Dense():
                return self.node("Gemm", placed.number, value, *self.sums(source, source.kernel_shape))
            case layers.Residual():
                return self.node("Add", placed.number, self.chain(source.steps, value), value)
            case layers.BatchNorm():
                names = ("gamma", "beta", "mean", "variance")
                own = [self.constant(f"{placed.number}.{n}", v) for n, v in zip(names, source.numbers, strict=True)]
                return self.node("BatchNormalization", placed.number, value, *own, epsilon=EPSILON)
            case layers.AveragePool():
                return self.windows(placed, value)
            case _:
                return value

    def sums(self, source: Any, shape: tuple[int, ...]) -> list[str]:
        """Weights as int8 with a scale for each output, and the bias."""
        number = source.placed.number
        outputs = 0 if source.is_convolution else 1
        numbers = self.constant(f"{number}.weights", source.numbers.reshape(shape))
        scale = self.constant(f"{number}.weights scale", np.broadcast_to(source.weight_scale.ravel(), source.bias.size))
        zero = self.constant(f"{number}.weights zero", np.zeros(source.bias.size, np.int8))
        weights = self.node("DequantizeLinear", f"{number}.weights in floats", numbers, scale, zero, axis=outputs)
        bias = source.bias_numbers * source.scale.astype(float)
        return [weights, self.constant(f"{number}.bias", np.broadcast_to(bias.ravel(), source.bias.size))]
