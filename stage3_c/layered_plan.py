"""A network of any architecture as a list of operations for C, and the memory that a step needs.

`planned` turns the layers into operations: a residual block becomes a fork and a join, an activation joins the
operation before it, and a ReLU before a maximum moves behind it, where four times fewer numbers are left (the result is
the same, because ReLU never changes which number is the largest of those above 0). `Plan` gives every operation its
memory. Outputs are kept until the backward pass has used them. The gradients of the outputs need only a few arrays,
because each of them is free again as soon as the gradient of the operation before it is computed.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from shared import layers
from shared.windows import output_size, pair, within

from . import library
from .arrays import Array, aligned_empty, check_writable
from .batch_norm import BatchNorm, checked_numbers
from .buffers import COptimizerStep, Seen, apart_from, claimed, still_keeps
from .convolution import CConvolution
from .dense import ACTIVATIONS
from .optimizers import OptimizerState
from .pooling import CPooling

KINDS = (
    *("arrange", "convolve", "max_pool", "average_pool", "normalise", "activate"),
    *("flatten", "connect", "drop", "fork", "join"),
)
"""In the order of `enum operation_kind` in groundup.h."""

PARAMETERS = ("w", "b", "grad_w", "grad_b")
ADDRESSES = (*PARAMETERS, "w_first", "w_second", "b_first", "b_second", "running_mean", "running_var")


class COperation(ctypes.Structure):
    """`operation` in groundup.h."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("kind", "activation", "lanes")),
        *((name, ctypes.c_size_t) for name in ("inputs", "outputs", "channels", "mask", "w_size", "b_size")),
        ("conv", CConvolution),
        ("window", CPooling),
        *((name, ctypes.c_void_p) for name in ADDRESSES),
        *((name, ctypes.c_double) for name in ("momentum", "epsilon")),
        *((name, ctypes.c_void_p) for name in ("mean", "inverse", "input", "output", "skip", "indices", "mask_lanes")),
        *((name, ctypes.c_void_p) for name in ("grad_output", "grad_z", "grad_input")),
    )


@dataclass
class Operation:
    """One operation before it has memory. shape: of its input, for one image; part: the layer with the parameters.

    layers: the numbers of the architecture's layers that it does, such as ["1", "2"]; none of them for an arrange
    """

    kind: str
    shape: tuple[int, ...]
    outputs: int
    part: Any = None
    activation: str = "identity"
    sizes: Any = None
    mask: int = 0
    fork: int = 0  # of a join: the fork's place in the list
    layers: list[str] = field(default_factory=list)
    stride: tuple[int, int] = (1, 1)  # of a convolution, as the architecture has it

    @property
    def lanes(self) -> bool:
        return len(self.shape) == 3

    @property
    def inputs(self) -> int:
        return math.prod(self.shape)


@dataclass
class _Walk:
    operations: list[Operation] = field(default_factory=list)
    masks: int = 0


def planned(chosen: Sequence[layers.Layer], parts: Sequence[Any], shape: tuple[int, ...]) -> list[Operation]:
    """The operations of a network. parts: the objects of layered.py, one for each layer."""
    walk = _Walk()
    if len(shape) == 3:
        walk.operations.append(Operation("arrange", shape, math.prod(shape)))
    _walk_through(walk, chosen, parts, shape)
    return walk.operations


def _walk_through(
    walk: _Walk, chosen: Sequence[layers.Layer], parts: Sequence[Any], shape: tuple[int, ...], block: str = ""
) -> tuple[int, ...]:
    """Append the operations of these layers, in the residual block of this number. Returns the shape that comes out."""
    found = walk.operations
    for i, (layer, part) in enumerate(zip(chosen, parts, strict=True), start=1):
        number = f"{block}{i}"
        size = math.prod(shape)
        last = found[-1] if found else None
        if isinstance(layer, layers.Conv):
            window, step = pair("size", layer.size, 1), pair("stride", layer.stride, 1)
            padding = pair("padding", layer.padding, 0)
            output = output_size("Network", shape, window, step, padding)
            steps = within(shape, step, padding)
            sizes = CConvolution(*shape, layer.out_channels, *window, *steps, *padding, *output)
            after = (layer.out_channels, *output)
            made = Operation("convolve", shape, math.prod(after), part, sizes=sizes, layers=[number], stride=step)
            found.append(made)
            shape = after
        elif isinstance(layer, layers.MaxPool | layers.AveragePool):
            kind = "max_pool" if isinstance(layer, layers.MaxPool) else "average_pool"
            window = pair("size", layer.size, 1)
            step = window if layer.stride is None else pair("stride", layer.stride, 1)
            output = output_size("Network", shape, window, step)
            pooled = CPooling(*shape[1:], *window, *within(shape, step), *output)
            made = Operation(kind, shape, shape[0] * output[0] * output[1], sizes=pooled, layers=[number])
            if kind == "max_pool" and last is not None and last.activation == "relu" and _can_activate(last, "relu"):
                last.activation, made.activation = "identity", "relu"
                made.layers.insert(0, last.layers.pop())
            found.append(made)
            shape = (shape[0], *output)
        elif isinstance(layer, layers.BatchNorm):
            found.append(Operation("normalise", shape, size, part, layers=[number]))
        elif isinstance(layer, layers.Activate):
            if last is not None and last.activation == "identity" and _can_activate(last, layer.name):
                last.activation = layer.name
                last.layers.append(number)
            else:
                found.append(Operation("activate", shape, size, activation=layer.name, layers=[number]))
        elif isinstance(layer, layers.Flatten):
            if len(shape) == 3:
                found.append(Operation("flatten", shape, size, layers=[number]))
            shape = (size,)
        elif isinstance(layer, layers.Dense):
            found.append(Operation("connect", shape, layer.out_features, part, layers=[number]))
            shape = (layer.out_features,)
        elif isinstance(layer, layers.Dropout):
            found.append(Operation("drop", shape, size, mask=walk.masks, layers=[number]))
            walk.masks += 1
        else:
            fork = len(found)
            found.append(Operation("fork", shape, size, layers=[number]))
            _walk_through(walk, layer.layers, part.parts, shape, f"{number}.")
            found.append(Operation("join", shape, size, fork=fork, layers=[number]))
    return shape


def _can_activate(operation: Operation, name: str) -> bool:
    """Whether an activation can join the operation."""
    if operation.kind == "normalise":
        return operation.lanes
    return operation.kind in ("convolve", "connect", "join") or (operation.kind == "max_pool" and name == "relu")


def _goes_back_alone(operation: Operation) -> bool:
    """Whether the operation's own way back goes through the activation, too."""
    if operation.kind == "normalise":
        return operation.activation in ("relu", "leaky_relu")
    return operation.kind in ("activate", "max_pool")


class Plan:
    """What a step of up to `capacity` images needs: the operations for C, and their memory.

    operations: the structs; outputs: the last operation's output (capacity, outputs)
    """

    def __init__(self, chosen: list[Operation], dtype: str, capacity: int) -> None:
        self.capacity, self.dtype, self.chosen = capacity, np.dtype(dtype), chosen
        here, there = ctypes.sizeof(COperation), library.function("operation_bytes", dtype)()
        if here != there:
            raise ValueError(
                f"layered_plan.py: COperation has {here} bytes but its struct in groundup.h has {there}; "
                "they must have the same fields in the same order"
            )
        self.operations = (COperation * len(chosen))()
        self.optimizer_step = COptimizerStep()
        self._own: dict[str, Array] = {}
        self._arrays = Seen({})
        self._optimizer: Seen | None = None
        self._taken: list[tuple[int, int]] = []
        register = library.plain_function("simd_bytes")() // self.dtype.itemsize
        self._register, self._padded = register, -(-capacity // register) * register
        self._few = min(capacity, library.function("few_images", dtype)())
        self._trained = [
            (made, c, attrgetter(*_names(made.part)))
            for made, c in zip(chosen, self.operations, strict=True)
            if made.part is not None
        ]
        self._lay_out_forward()
        self._lay_out_backward()

    # ---- memory

    def _new(self, name: str, numbers: int) -> Array:
        array = aligned_empty((numbers,), self.dtype)
        self._own[f"{name} {len(self._own)}"] = array
        return array

    def _in_lanes(self, size: int, channels: int) -> int:
        """Numbers of images of this size: all of them side by side, or a few with their channels side by side."""
        groups = -(-channels // self._register)
        return max(self._padded * size, self._few * groups * self._register * (size // channels))

    def _lay_out_forward(self) -> None:
        signal: int | None = None  # address of the next operation's input; None: x
        for i, (made, c) in enumerate(zip(self.chosen, self.operations, strict=True)):
            c.kind, c.activation, c.lanes = KINDS.index(made.kind), ACTIVATIONS.index(made.activation), made.lanes
            c.inputs, c.outputs, c.mask, c.channels = made.inputs, made.outputs, made.mask, made.shape[0]
            c.input = signal
            if made.kind == "convolve":
                c.conv = made.sizes
            elif made.kind in ("max_pool", "average_pool"):
                c.window = made.sizes
            elif made.kind == "normalise":
                self._own[f"mean {i}"] = mean = aligned_empty((2, made.shape[0]), np.float64)
                c.mean, c.inverse = mean[0].ctypes.data, mean[1].ctypes.data
            elif made.kind == "join":
                c.skip = self.operations[made.fork].input
            if made.kind == "max_pool":
                c.indices = self._new("indices", self._in_lanes(made.outputs, made.shape[0])).ctypes.data
            if made.kind == "drop" and made.lanes:
                c.mask_lanes = self._new("mask", self._in_lanes(made.inputs, made.shape[0])).ctypes.data
            if made.kind != "fork":
                channels = made.sizes.filters if made.kind == "convolve" else made.shape[0]
                lanes = made.lanes and made.kind != "flatten"
                output = self._new(
                    "output", self._in_lanes(made.outputs, channels) if lanes else self.capacity * made.outputs
                )
                c.output = signal = output.ctypes.data
        last = self.chosen[-1].outputs
        self.outputs = output.reshape(-1, last)

    def _lay_out_backward(self) -> None:
        """Slopes: each operation reads that of its output and writes that of its input, in memory used again."""
        free: list[Array] = []
        held: dict[int, Array] = {}  # slopes that a fork will still read, by their address

        def take(size: int, lanes: bool) -> Array:
            wanted = (self._padded if lanes else self.capacity) * size
            fitting = [array for array in free if array.size >= wanted]
            if not fitting:
                return self._new("grad", wanted)
            chosen = min(fitting, key=lambda array: array.size)
            free[:] = [array for array in free if array is not chosen]
            return chosen

        def done(array: Array) -> None:
            if array.ctypes.data not in held:
                free.append(array)

        first = min((i for i, made in enumerate(self.chosen) if made.part is not None), default=len(self.chosen))
        skips: list[Array] = []
        slope = take(self.chosen[-1].outputs, lanes=False)
        self.operations[-1].grad_output = slope.ctypes.data
        for i in reversed(range(first, len(self.chosen))):
            made, c = self.chosen[i], self.operations[i]
            c.grad_output = slope.ctypes.data
            may_overwrite = c.grad_output not in held
            if made.activation != "identity" and not _goes_back_alone(made):
                before = slope if may_overwrite else take(made.outputs, made.lanes)
                c.grad_z = before.ctypes.data
                slope = before
                may_overwrite = before.ctypes.data not in held
            if made.kind == "join":
                skips.append(slope)
                held[slope.ctypes.data] = slope
                continue
            if made.kind == "fork":
                skip = skips.pop()
                c.skip = skip.ctypes.data
                if skip.ctypes.data not in [each.ctypes.data for each in skips]:
                    del held[skip.ctypes.data]
                if i > first:
                    below = slope if slope.ctypes.data not in held else take(made.inputs, made.lanes)
                    c.grad_input = below.ctypes.data
                    if skip is not below:
                        done(skip)
                    slope = below
                continue
            if i == first:
                break
            in_place = made.kind in ("activate", "drop") or (made.kind == "normalise" and made.lanes)
            if in_place and may_overwrite:
                c.grad_input = slope.ctypes.data
                continue
            below = take(made.inputs, made.lanes)
            c.grad_input = below.ctypes.data
            done(slope)
            slope = below

    # ---- what is not the plan's own

    def point_to(self, parts: Sequence[Any]) -> None:
        """Write where the parameters, their gradients and the running statistics are.

        Raises ValueError or TypeError where one of them is not memory that C can use, or two overlap: each is an
        attribute of its part, and may have been replaced or changed since the last call.
        """
        trained = self._trained
        for made, c, _ in trained:
            if made.kind == "normalise":
                c.momentum, c.epsilon = checked_numbers("batch_norm", made.part.momentum, made.part.epsilon)
            elif made.kind == "convolve":
                _check_steps(made)
        if self._arrays.still([array for made, _, arrays_of in trained for array in arrays_of(made.part)]):
            return
        named = {
            f"layer {i}'s {name}": getattr(made.part, name)
            for i, (made, _, _) in enumerate(trained, start=1)
            for name in _names(made.part)
        }
        for (made, _, _), part in zip(trained, parts, strict=True):
            assert made.part is part
        for made, _, _ in trained:
            expected = _shapes(made)
            for name, shape in expected.items():
                array = getattr(made.part, name)
                if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != self.dtype:
                    given = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
                    raise ValueError(
                        f"Network: {made.kind}: {name} was replaced by {given}, expected {self.dtype} {shape}; "
                        "change it in place, or make a new network"
                    )
                check_writable(f"Network: {made.kind}: {name}", array)
        self._taken = claimed(named | self._own)
        for made, c, _ in trained:
            arrays = [getattr(made.part, name) for name in _names(made.part)]
            for field_name, array in zip((*PARAMETERS, "running_mean", "running_var"), arrays, strict=False):
                setattr(c, field_name, array.ctypes.data)
            c.w_size, c.b_size = arrays[0].size, arrays[1].size
        self._arrays, self._optimizer = Seen(named), None

    def point_to_optimizer(self, state: OptimizerState, parameters: Sequence[Array]) -> None:
        """Write where the optimizer keeps what it keeps: for up to two names one array for each parameter."""
        if still_keeps(self._optimizer, state):
            return
        memory = state.memory(parameters)
        arrays = {
            f"number {i} of the optimizer's {name}": a for name, each in memory.items() for i, a in enumerate(each)
        }
        for name, array in arrays.items():
            check_writable(f"Network: {name}", array)
        self._taken = claimed(arrays | self._arrays.arrays | self._own)
        nowhere: list[int | None] = [None] * len(parameters)
        first, second, *_ = *([array.ctypes.data for array in each] for each in memory.values()), nowhere, nowhere
        for i, (_, c, _) in enumerate(self._trained):
            c.w_first, c.b_first = first[2 * i : 2 * i + 2]
            c.w_second, c.b_second = second[2 * i : 2 * i + 2]
        self._optimizer = Seen(arrays)

    def apart(self, array: Array) -> Array:
        """The array, or a copy of it where it lies in memory that the step writes to."""
        return apart_from(self._taken, array)


def _names(part: Any) -> tuple[str, ...]:
    """The attributes of a part in the order of PARAMETERS, then the running statistics."""
    if isinstance(part, BatchNorm):
        return ("gamma", "beta", "grad_gamma", "grad_beta", "running_mean", "running_var")
    return ("weights", "bias", "grad_weights", "grad_bias")


def _check_steps(made: Operation) -> None:
    """ValueError unless stride and padding are still the architecture's, by which all memory was made."""
    s = made.sizes
    stride, padding = made.stride, (s.padding_rows, s.padding_columns)
    if made.part.stride == stride and made.part.padding == padding:
        return
    steps = {"stride": stride, "padding": padding}
    for name, expected in steps.items():
        if (given := getattr(made.part, name)) != expected:
            raise ValueError(
                f"Network: convolve: {name} was changed to {given}, expected {expected}; make a new network"
            )


def _shapes(made: Operation) -> dict[str, tuple[int, ...]]:
    """The shape that each of a part's arrays has to have."""
    if made.kind == "normalise":
        return dict.fromkeys(_names(made.part), (made.shape[0],))
    if made.kind == "connect":
        weights: tuple[int, ...] = (made.inputs, made.outputs)
        bias = (made.outputs,)
    else:
        s = made.sizes
        weights, bias = (s.filters, s.channels, s.kernel_height, s.kernel_width), (s.filters,)
    return {"weights": weights, "bias": bias, "grad_weights": weights, "grad_bias": bias}
