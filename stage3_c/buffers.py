"""The memory of a training step, and the structs that tell C where it is.

A step needs the same memory every time: each layer's output, and the slope of the loss there. It is made once for the
largest batch seen, and a smaller batch uses the beginning of it. Where it lies, and where the weights lie, is written
into structs that groundup.h declares too. Writing them takes longer than a small step does, so they are kept for as
long as the arrays they speak of are the same.
"""

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import library
from .arrays import Array, aligned_empty

if TYPE_CHECKING:
    from .network import Network


class CLayer(ctypes.Structure):
    """`layer` in groundup.h."""

    _fields_ = (
        ("inputs", ctypes.c_size_t),
        ("outputs", ctypes.c_size_t),
        ("weights", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("grad_weights", ctypes.c_void_p),
        ("grad_bias", ctypes.c_void_p),
        ("weights_first", ctypes.c_void_p),
        ("weights_second", ctypes.c_void_p),
        ("bias_first", ctypes.c_void_p),
        ("bias_second", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("dropped", ctypes.c_void_p),
        ("grad", ctypes.c_void_p),
    )


class COptimizerStep(ctypes.Structure):
    """`optimizer_step` in groundup.h."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("nesterov", ctypes.c_int),
        ("learning_rate", ctypes.c_double),
        ("weight_decay", ctypes.c_double),
        ("momentum", ctypes.c_double),
        ("alpha", ctypes.c_double),
        ("epsilon", ctypes.c_double),
        ("beta1", ctypes.c_double),
        ("beta2", ctypes.c_double),
        ("step_size", ctypes.c_double),
        ("root_correction", ctypes.c_double),
    )


class Buffers:
    """What a step of up to `capacity` rows needs.

    output, dropped, grad: for each layer (capacity, out_features): the activation's output, the same after dropout,
        and the slope of the loss at xW + b; C uses the first rows of each
    layers: the structs, one for each layer
    """

    def __init__(self, network: "Network", capacity: int) -> None:
        self.capacity = capacity
        shapes = [(capacity, layer.out_features) for layer in network.layers]
        self.output = [aligned_empty(shape, network.dtype) for shape in shapes]
        self.dropped = [aligned_empty(shape, network.dtype) for shape in shapes[:-1]]
        self.grad = [aligned_empty(shape, network.dtype) for shape in shapes]
        self.layers = (CLayer * len(network.layers))()
        self.optimizer_step = COptimizerStep()
        for struct, name in ((CLayer, "layer_bytes"), (COptimizerStep, "optimizer_step_bytes")):
            here, there = ctypes.sizeof(struct), library.function(name, network.dtype)()
            if here != there:
                raise ValueError(
                    f"buffers.py: {struct.__name__} has {here} bytes but its struct in groundup.h has {there}; "
                    "they must have the same fields in the same order"
                )
        for i, layer in enumerate(network.layers):
            c = self.layers[i]
            c.inputs, c.outputs = layer.in_features, layer.out_features
            c.output, c.grad = self.output[i].ctypes.data, self.grad[i].ctypes.data
            c.dropped = self.dropped[i].ctypes.data if i < len(self.dropped) else None
        self._network_arrays: list[Array] = []
        self._optimizer_arrays: list[list[Array]] = []

    def rows(self, count: int) -> tuple[list[Array], list[Array], list[Array]]:
        """output, dropped and grad for a batch of `count`."""
        output, dropped, grad = ([a[:count] for a in arrays] for arrays in (self.output, self.dropped, self.grad))
        return output, dropped, grad

    def point_to_network(self, network: "Network") -> None:
        """Write where weights, biases and their gradients are."""
        arrays = [
            array
            for layer in network.layers
            for array in (layer.weights, layer.bias, layer.grad_weights, layer.grad_bias)
        ]
        if _same(arrays, self._network_arrays):
            return
        for i, layer in enumerate(network.layers):
            layer.check_memory(f"Network, layer {i + 1}", np.dtype(network.dtype))
        for i in range(len(network.layers)):
            c, addresses = self.layers[i], [array.ctypes.data for array in arrays[4 * i : 4 * i + 4]]
            c.weights, c.bias, c.grad_weights, c.grad_bias = addresses
        self._network_arrays = arrays  # kept, so that the addresses stay theirs

    def point_to_optimizer(self, memory: Sequence[list[Array]]) -> None:
        """Write where the optimizer keeps what it keeps: up to two lists with one array for each parameter."""
        if len(memory) == len(self._optimizer_arrays) and all(map(_same, memory, self._optimizer_arrays)):
            return
        nowhere: list[int | None] = [None] * (2 * len(self.layers))
        first, second, *_ = *([array.ctypes.data for array in arrays] for arrays in memory), nowhere, nowhere
        for i, c in enumerate(self.layers):
            c.weights_first, c.bias_first = first[2 * i : 2 * i + 2]
            c.weights_second, c.bias_second = second[2 * i : 2 * i + 2]
        self._optimizer_arrays = [list(arrays) for arrays in memory]


def _same(arrays: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether these are the very same objects."""
    return len(arrays) == len(others) and all(a is b for a, b in zip(arrays, others, strict=True))
