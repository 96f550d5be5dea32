"""A network as a list of operations for C, which knows no layers.

A residual block becomes a fork and a join. An activation joins the operation before it, and a ReLU before a maximum
moves behind it, where four times fewer numbers are left: the result is the same, because ReLU never changes which
number is the largest of those above 0. plan.py gives every operation its memory; csrc/network.c computes them.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared import layers
from shared.architectures import Architecture
from shared.layers import Placed
from shared.windows import as_pair, within

from .convolution import CConvolution
from .pooling import CPooling

KINDS = (
    *("arrange", "convolve", "max_pool", "average_pool", "normalise", "activate"),
    *("flatten", "connect", "drop", "fork", "join"),
)
"""In the order of `enum operation_kind` in groundup.h."""


class COperation(ctypes.Structure):
    """`operation` in groundup.h."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("kind", "activation", "lanes")),
        *((name, ctypes.c_size_t) for name in ("inputs", "outputs", "channels", "mask", "w_size", "b_size")),
        ("conv", CConvolution),
        ("window", CPooling),
        *((name, ctypes.c_void_p) for name in ("w", "b", "grad_w", "grad_b")),
        *((name, ctypes.c_void_p) for name in ("w_first", "w_second", "b_first", "b_second")),
        *((name, ctypes.c_void_p) for name in ("running_mean", "running_var")),
        *((name, ctypes.c_double) for name in ("momentum", "epsilon")),
        *((name, ctypes.c_void_p) for name in ("mean", "inverse", "input", "output", "skip", "indices", "mask_lanes")),
        *((name, ctypes.c_void_p) for name in ("grad_output", "grad_z", "grad_input")),
    )


@dataclass
class Operation:
    """One operation before it has memory.

    shape: of its input, for one image; outputs: numbers of its output, for one image
    layers: the numbers of the architecture's layers that it does, such as ["1", "2"]; none of them for an arrange
    layer: the network's layer with the parameters, or None
    sizes: of a convolution or a pool, as C takes them
    mask: of a drop, the number of its mask; fork: of a join, the fork's place in the list
    """

    kind: str
    shape: tuple[int, ...]
    outputs: int
    layers: list[str] = field(default_factory=list)
    layer: Any = None
    activation: str = "identity"
    sizes: Any = None
    mask: int = 0
    fork: int = 0

    @property
    def lanes(self) -> bool:
        """Whether images go in: they lie side by side."""
        return len(self.shape) == 3

    @property
    def inputs(self) -> int:
        return math.prod(self.shape)

    def can_activate(self, name: str) -> bool:
        """Whether an activation can join the operation, which has none yet."""
        if self.activation != "identity":
            return False
        if self.kind == "normalise":
            return self.lanes
        return self.kind in ("convolve", "connect", "join") or (self.kind == "max_pool" and name == "relu")

    @property
    def activation_is_undone_with_it(self) -> bool:
        """Whether the operation's own way back goes through the activation, too."""
        if self.kind == "normalise":
            return self.activation in ("relu", "leaky_relu")
        return self.kind in ("activate", "max_pool")


def operations_of(architecture: Architecture, network_layers: Sequence[Any]) -> list[Operation]:
    """The operations of a network. network_layers: one for each layer of the architecture."""
    shape = architecture.input_shape
    operations = [Operation("arrange", shape, math.prod(shape))] if len(shape) == 3 else []
    placed = {layer.number: layer for layer in architecture.placed()}
    _append(operations, architecture.layers, network_layers, placed)
    return operations


def _append(
    operations: list[Operation],
    descriptions: Sequence[layers.Layer],
    network_layers: Sequence[Any],
    placed: dict[str, Placed],
    block: str = "",
) -> None:
    """Append the operations of these layers. block: the number of the residual block that they are in, as in "3."."""
    for i, (description, layer) in enumerate(zip(descriptions, network_layers, strict=True), start=1):
        number = f"{block}{i}"
        shape, after = placed[number].input_shape, placed[number].output_shape
        outputs = math.prod(after)
        last = operations[-1] if operations else None
        match description:
            case layers.Conv():
                window, padding = as_pair(description.size), as_pair(description.padding)
                steps = within(shape, as_pair(description.stride), padding)
                sizes = CConvolution(*shape, description.out_channels, *window, *steps, *padding, *after[1:])
                operations.append(Operation("convolve", shape, outputs, [number], layer, sizes=sizes))
            case layers.MaxPool() | layers.AveragePool():
                window = as_pair(description.size)
                steps = within(shape, window if description.stride is None else as_pair(description.stride))
                kind = "max_pool" if isinstance(description, layers.MaxPool) else "average_pool"
                pool = Operation(
                    kind, shape, outputs, [number], sizes=CPooling(*shape[1:], *window, *steps, *after[1:])
                )
                if kind == "max_pool" and last is not None and last.activation == "relu" and last.kind != "activate":
                    last.activation, pool.activation = "identity", "relu"
                    pool.layers.insert(0, last.layers.pop())
                operations.append(pool)
            case layers.Activate(name=name):
                if last is not None and last.can_activate(name):
                    last.activation = name
                    last.layers.append(number)
                else:
                    operations.append(Operation("activate", shape, outputs, [number], activation=name))
            case layers.Flatten():
                if len(shape) == 3:
                    operations.append(Operation("flatten", shape, outputs, [number]))
            case layers.Dropout():
                mask = sum(operation.kind == "drop" for operation in operations)
                operations.append(Operation("drop", shape, outputs, [number], mask=mask))
            case layers.Residual():
                fork = len(operations)
                operations.append(Operation("fork", shape, outputs, [number]))
                _append(operations, description.layers, layer.layers, placed, f"{number}.")
                operations.append(Operation("join", shape, outputs, [number], fork=fork))
            case _:
                kind = {layers.BatchNorm: "normalise", layers.Dense: "connect"}[type(description)]
                operations.append(Operation(kind, shape, outputs, [number], layer))
