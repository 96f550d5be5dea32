"""The memory of a training step, and the structs that tell C where it is.

A step needs the same memory every time: each layer's output, and the gradient of the loss with respect to it. It is
allocated once for the largest batch so far, and a smaller batch uses the beginning of it. The addresses of this memory
and of the weights are written into structs that groundup.h declares, too. Writing the structs takes longer than a
small step, so they are kept as long as the arrays stay the same.
"""

import ctypes
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from . import library
from .arrays import Array, aligned_empty, check_dtype, check_writable
from .dense import Dense
from .optimizers import OptimizerState

ARRAYS = ("weights", "bias", "grad_weights", "grad_bias")


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
    """What a step of up to `capacity` rows needs, in a network of these layers and this dtype.

    output, dropped, grad: for each layer (capacity, out_features): the activation's output, the same after dropout,
        and the slope of the loss at xW + b; C uses the first rows of each
    layers: the structs, one for each layer
    """

    def __init__(self, layers: Sequence[Dense], dtype: str, capacity: int) -> None:
        self.capacity, self.shape, self.dtype = capacity, network_shape(layers, dtype), np.dtype(dtype)
        shapes = [(capacity, layer.out_features) for layer in layers]
        self.output = [aligned_empty(shape, dtype) for shape in shapes]
        self.dropped = [aligned_empty(shape, dtype) for shape in shapes[:-1]]
        self.grad = [aligned_empty(shape, dtype) for shape in shapes]
        self.layers = (CLayer * len(layers))()
        self.optimizer_step = COptimizerStep()
        for struct, name in ((CLayer, "layer_bytes"), (COptimizerStep, "optimizer_step_bytes")):
            here, there = ctypes.sizeof(struct), library.function(name, dtype)()
            if here != there:
                raise ValueError(
                    f"buffers.py: {struct.__name__} has {here} bytes but its struct in groundup.h has {there}; "
                    "they must have the same fields in the same order"
                )
        for i, layer in enumerate(layers):
            c = self.layers[i]
            c.inputs, c.outputs = layer.in_features, layer.out_features
            c.output, c.grad = self.output[i].ctypes.data, self.grad[i].ctypes.data
            c.dropped = self.dropped[i].ctypes.data if i < len(self.dropped) else None
        self._own = {
            f"{what} {i}": array
            for what, arrays in (("output", self.output), ("dropped output", self.dropped), ("grad", self.grad))
            for i, array in enumerate(arrays, start=1)
        }
        self._network = Seen({})
        self._optimizer: Seen | None = None
        self._taken: list[tuple[int, int]] = []

    def rows(self, count: int) -> tuple[list[Array], list[Array], list[Array]]:
        """output, dropped and grad for a batch of `count`."""
        output, dropped, grad = ([a[:count] for a in arrays] for arrays in (self.output, self.dropped, self.grad))
        return output, dropped, grad

    def point_to_layers(self, layers: Sequence[Dense]) -> None:
        """Write where weights, biases and their gradients are.

        Raises ValueError or TypeError where one of them is not memory that C can use as such, or two overlap: each
        is an attribute of its layer, and may have been replaced or changed since the last step.
        """
        if self._network.still([a for each in layers for a in _arrays_of(each)]):
            return
        for i, layer in enumerate(layers, start=1):
            layer.check_memory(f"Network: layer {i}", self.dtype)
        arrays = {
            f"layer {i}'s {name}": array
            for i, layer in enumerate(layers, start=1)
            for name, array in zip(ARRAYS, _arrays_of(layer), strict=True)
        }
        self._claim(arrays | self._own)
        addresses = iter([array.ctypes.data for array in arrays.values()])
        for c in self.layers:
            c.weights, c.bias, c.grad_weights, c.grad_bias = (next(addresses) for _ in ARRAYS)
        self._network, self._optimizer = Seen(arrays), None

    def point_to_optimizer(self, state: OptimizerState, parameters: Sequence[Array]) -> None:
        """Write where the optimizer keeps what it keeps: for up to two names one array for each parameter.

        Raises ValueError where one of them has another shape than its parameter, is read-only, or overlaps another
        or the network's memory.
        """
        if still_keeps(self._optimizer, state):
            return
        memory = state.memory(parameters)
        arrays = {
            f"number {i} of the optimizer's {name}": array
            for name, each in memory.items()
            for i, array in enumerate(each)
        }
        for name, array in arrays.items():
            check_writable(f"Network: {name}", array)
        self._claim(arrays | self._network.arrays | self._own)
        nowhere: list[int | None] = [None] * (2 * len(self.layers))
        first, second, *_ = *([array.ctypes.data for array in each] for each in memory.values()), nowhere, nowhere
        for i, c in enumerate(self.layers):
            c.weights_first, c.bias_first = first[2 * i : 2 * i + 2]
            c.weights_second, c.bias_second = second[2 * i : 2 * i + 2]
        self._optimizer = Seen(arrays)

    def apart(self, array: Array) -> Array:
        """The array, or a copy of it where it lies in memory that the step writes to."""
        return apart_from(self._taken, array)

    def _claim(self, arrays: Mapping[str, Array]) -> None:
        """Remember which memory a step uses, after checking that no two arrays share any: C is promised that."""
        self._taken = claimed(arrays)


def claimed(arrays: Mapping[str, Array]) -> list[tuple[int, int]]:
    """Begin and end of each array's memory. Raises ValueError where two share any."""
    ranges = sorted((a.ctypes.data, a.ctypes.data + a.nbytes, name) for name, a in arrays.items())
    for (_, end, name), (begin, _, other) in pairwise(ranges):
        if begin < end:
            raise ValueError(f"Network: {name} overlaps {other}; give each memory of its own")
    return [(begin, end) for begin, end, _ in ranges]


def apart_from(taken: Sequence[tuple[int, int]], array: Array) -> Array:
    """The array, or a copy of it where it lies in memory that is taken: what `claimed` returned, in order."""
    begin = array.ctypes.data
    before = bisect_left(taken, (begin + array.nbytes,))  # so many begin before the array ends
    return array.copy() if before > 0 and taken[before - 1][1] > begin else array


class Trainable(Protocol):
    """What a step needs of a network; `Network` in network.py provides it."""

    layers: list[Dense]
    activation: str
    loss_name: str
    dtype: str

    @property
    def parameters(self) -> list[Array]: ...

    @property
    def layer_gradients(self) -> list[Array]: ...

    def checked(self, x: Any, y: Any, dropout_masks: Sequence[Any] | None) -> tuple[Array, Array, list[Array]]: ...

    def buffers(self, rows: int) -> Buffers: ...


class Seen:
    """Arrays that were found good, kept so that their addresses stay theirs, and what was found."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays
        self._found = [(array, array.shape, array.dtype) for array in arrays.values()]

    def still(self, arrays: Sequence[Any]) -> bool:
        """Whether these are the very same objects, of the same shape and dtype, and C may still write to them."""
        return len(arrays) == len(self._found) and all(
            array is seen and array.shape == shape and array.dtype is dtype and array.flags.carray
            for array, (seen, shape, dtype) in zip(arrays, self._found, strict=True)
        )


def still_keeps(seen: Seen | None, state: OptimizerState) -> bool:
    """Whether an optimizer keeps its numbers in the very arrays that were found good. One that has not made them yet
    does not, even where the one before it kept nothing."""
    if seen is None or any(name not in state.buffers for name in state.names):
        return False
    return seen.still([array for name in state.names for array in state.buffers[name]])


def network_shape(layers: Sequence[Dense], dtype: str) -> tuple[Any, ...]:
    """What the structs depend on: the dtype and each layer's sizes."""
    return (dtype, *[(layer.in_features, layer.out_features) for layer in layers])


def check_shape(layers: Sequence[Dense], dtype: str) -> None:
    """ValueError unless there is a layer, and each fits on the one before: anybody may change `layers`, a list."""
    check_dtype("Network", dtype)
    if not layers:
        raise ValueError("Network: there is no layer left in `layers`")
    for i, (layer, following) in enumerate(pairwise(layers), start=1):
        if layer.out_features != following.in_features:
            raise ValueError(
                f"Network: layer {i} has {layer.out_features} outputs "
                f"but layer {i + 1} takes {following.in_features} inputs"
            )


def _arrays_of(layer: Dense) -> tuple[Array, Array, Array, Array]:
    return layer.weights, layer.bias, layer.grad_weights, layer.grad_bias
