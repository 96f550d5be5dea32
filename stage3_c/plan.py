"""The memory of a network's operations, and the structs that tell C where it is.

A step needs the same memory every time. It is planned once, for the largest batch so far; a smaller batch uses the
beginning of it. Outputs are kept until the backward pass has used them. The gradients of the outputs need only a few
arrays, because each of them is free again as soon as the gradient of the operation before it is computed.

The addresses of this memory, of the parameters and of what the optimizer keeps are written into structs. Writing them
takes longer than a small step, so they stay as long as the arrays do.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from shared.architectures import Architecture
from shared.layers import normalisation_numbers
from shared.names import ACTIVATIONS

from . import library
from .addresses import KnownArrays, claimed, copied_if_overlapping
from .arrays import Array, aligned_empty, check_writable
from .operations import KINDS, COperation, Operation, operations_of
from .optimizers import OPTIMIZERS, COptimizerStep

STATISTICS = ("running_mean", "running_var")


class Plan:
    """What a step of up to `capacity` samples needs: the operations for C, and their memory.

    operations: as operations.py makes them; c_operations: their structs
    output: the last operation's output (capacity, outputs); grad_output: dL/doutput
    """

    def __init__(self, architecture: Architecture, layers: Sequence[Any], dtype: str, capacity: int) -> None:
        self.capacity, self.dtype = capacity, np.dtype(dtype)
        self.operations = operations_of(architecture, layers)
        self.c_operations = (COperation * len(self.operations))()
        self.c_optimizer = COptimizerStep()
        _check_bytes(COperation, "operation_bytes", dtype)
        _check_bytes(COptimizerStep, "optimizer_step_bytes", dtype)
        self._own: dict[str, Array] = {}
        self._register = library.plain_function("simd_bytes")() // self.dtype.itemsize
        self._padded = -(-capacity // self._register) * self._register
        self._few = min(capacity, library.function("few_images", dtype)())
        pairs = list(zip(self.operations, self.c_operations, strict=True))
        self._trained = [(operation, c) for operation, c in pairs if operation.layer is not None]
        self._array_places = [(o.layer, name) for o, _ in self._trained for name in _names(o)]
        self._normalised = [(operation, c) for operation, c in self._trained if operation.kind == "normalise"]
        self._network = KnownArrays({})
        self._optimizer: KnownArrays | None = None
        self._taken: list[tuple[int, int]] = []
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
        for i, (operation, c) in enumerate(zip(self.operations, self.c_operations, strict=True)):
            kind, channels = operation.kind, operation.shape[0]
            c.kind, c.activation, c.lanes = KINDS.index(kind), ACTIVATIONS.index(operation.activation), operation.lanes
            c.inputs, c.outputs, c.mask, c.channels = operation.inputs, operation.outputs, operation.mask, channels
            c.input = signal
            if kind == "convolve":
                c.conv = operation.sizes
            elif kind in ("max_pool", "average_pool"):
                c.window = operation.sizes
            elif kind == "normalise":
                self._own[f"mean {i}"] = mean = aligned_empty((2, channels), np.float64)
                c.mean, c.inverse = mean[0].ctypes.data, mean[1].ctypes.data
            elif kind == "join":
                c.skip = self.c_operations[operation.fork].input
            if kind == "max_pool":
                c.indices = self._new("indices", self._in_lanes(operation.outputs, channels)).ctypes.data
            if kind == "drop" and operation.lanes:
                c.mask_lanes = self._new("mask", self._in_lanes(operation.inputs, channels)).ctypes.data
            if kind != "fork":
                after = operation.sizes.filters if kind == "convolve" else channels
                in_lanes = operation.lanes and kind != "flatten"
                numbers = operation.outputs
                output = self._new("output", self._in_lanes(numbers, after) if in_lanes else self.capacity * numbers)
                c.output = signal = output.ctypes.data
        self.output = output.reshape(-1, self.operations[-1].outputs)

    def _lay_out_backward(self) -> None:
        """Each operation reads the gradient of its output and writes that of its input, in memory used again."""
        free: list[Array] = []
        held: dict[int, Array] = {}  # gradients that a fork will still read, by their address

        def take(size: int, lanes: bool) -> Array:
            numbers = (self._padded if lanes else self.capacity) * size
            fitting = [array for array in free if array.size >= numbers]
            if not fitting:
                return self._new("grad", numbers)
            smallest = min(fitting, key=lambda array: array.size)
            free[:] = [array for array in free if array is not smallest]
            return smallest

        def done(array: Array) -> None:
            if array.ctypes.data not in held:
                free.append(array)

        trained = [i for i, operation in enumerate(self.operations) if operation.layer is not None]
        first = min(trained, default=len(self.operations))  # nothing before it has parameters
        skips: list[Array] = []
        last = self.operations[-1]
        grad = take(last.outputs, lanes=False)
        self.grad_output = grad[: self.capacity * last.outputs].reshape(self.capacity, last.outputs)
        self.c_operations[-1].grad_output = grad.ctypes.data
        for i in reversed(range(first, len(self.operations))):
            operation, c = self.operations[i], self.c_operations[i]
            c.grad_output = grad.ctypes.data
            may_overwrite = c.grad_output not in held
            if operation.activation != "identity" and not operation.activation_is_undone_with_it:
                grad = grad if may_overwrite else take(operation.outputs, operation.lanes)
                c.grad_z = grad.ctypes.data
                may_overwrite = c.grad_z not in held
            if operation.kind == "join":
                skips.append(grad)
                held[grad.ctypes.data] = grad
                continue
            if operation.kind == "fork":
                skip = skips.pop()
                c.skip = skip.ctypes.data
                if all(skip.ctypes.data != other.ctypes.data for other in skips):
                    del held[skip.ctypes.data]
                if i > first:
                    below = grad if grad.ctypes.data not in held else take(operation.inputs, operation.lanes)
                    c.grad_input = below.ctypes.data
                    if skip is not below:
                        done(skip)
                    grad = below
                continue
            if i == first:
                break
            in_place = operation.kind in ("activate", "drop") or (operation.kind == "normalise" and operation.lanes)
            if in_place and may_overwrite:
                c.grad_input = grad.ctypes.data
                continue
            below = take(operation.inputs, operation.lanes)
            c.grad_input = below.ctypes.data
            done(grad)
            grad = below

    # ---- addresses that are not the plan's own

    def check_trainable(self, rows: int) -> None:
        """ValueError where a batch of so many samples has a single value in a channel, whose variance would be 0."""
        for operation, _ in self._normalised:
            if rows * operation.inputs == operation.shape[0]:
                raise ValueError(
                    "batch_norm: expected more than 1 value per channel when training, "
                    f"got x of shape {(rows, *operation.shape)}"
                )

    def point_to_network(self) -> None:
        """Write where the parameters, their gradients and the running statistics are.

        Raises ValueError or TypeError where one of them is not memory that C can use, or two overlap: each is an
        attribute of its layer, and may have been replaced or changed since the last call.
        """
        for operation, c in self._normalised:
            layer = operation.layer
            c.momentum, c.epsilon = normalisation_numbers(layer.momentum, layer.epsilon)
        if self._network.are([getattr(layer, name, None) for layer, name in self._array_places]):
            return
        for operation, _ in self._trained:
            self._check_arrays(operation)
        arrays = {
            f"layer {operation.layers[0]}'s {name}": getattr(operation.layer, name)
            for operation, _ in self._trained
            for name in _names(operation)
        }
        self._taken = claimed(arrays | self._own)
        for operation, c in self._trained:
            own = [getattr(operation.layer, name) for name in _names(operation)]
            for field, array in zip(("w", "b", "grad_w", "grad_b", *STATISTICS), own, strict=False):
                setattr(c, field, array.ctypes.data)
            c.w_size, c.b_size = own[0].size, own[1].size
        self._network, self._optimizer = KnownArrays(arrays), None

    def _check_arrays(self, operation: Operation) -> None:
        where = f"Network: layer {operation.layers[0]}"
        for name, shape in _shapes(operation).items():
            array = getattr(operation.layer, name, None)
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != self.dtype:
                got = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
                raise ValueError(
                    f"{where}: {name} was replaced by {got}, expected {self.dtype} {shape}; "
                    "change it in place, or make a new network"
                )
            check_writable(f"{where}: {name}", array)

    def point_to_optimizer(self, optimizer: Any, parameters: Sequence[Array]) -> None:
        """Write the numbers of the optimizer's next step, and where it keeps what it keeps: for up to two names one
        array for each parameter."""
        self.c_optimizer.kind = OPTIMIZERS.index(type(optimizer))
        for name, number in optimizer.numbers().items():
            setattr(self.c_optimizer, name, number)
        state = optimizer._state
        has_buffers = all(name in state.buffers for name in state.names)  # they are made on the first step
        known = self._optimizer if has_buffers else None
        if known is not None and known.are([array for name in state.names for array in state.buffers[name]]):
            return
        memory = state.make_buffers(parameters)
        arrays = {
            f"number {i} of the optimizer's {name}": array
            for name, buffers in memory.items()
            for i, array in enumerate(buffers)
        }
        for name, array in arrays.items():
            check_writable(f"Network: {name}", array)
        self._taken = claimed(arrays | self._network.arrays | self._own)
        nowhere: list[int | None] = [None] * len(parameters)
        addresses = [[array.ctypes.data for array in buffers] for buffers in memory.values()]
        first, second, *_ = *addresses, nowhere, nowhere
        for i, (_, c) in enumerate(self._trained):
            c.w_first, c.b_first = first[2 * i : 2 * i + 2]
            c.w_second, c.b_second = second[2 * i : 2 * i + 2]
        self._optimizer = KnownArrays(arrays)

    def copied_if_overlapping(self, array: Array) -> Array:
        """The array, or a copy of it where it lies in memory that the step writes to."""
        return copied_if_overlapping(self._taken, array)


def _check_bytes(struct: type[ctypes.Structure], function: str, dtype: str) -> None:
    here, there = ctypes.sizeof(struct), library.function(function, dtype)()
    if here != there:
        raise ValueError(
            f"plan.py: {struct.__name__} has {here} bytes but its struct in groundup.h has {there}; "
            "they must have the same fields in the same order"
        )


def _names(operation: Operation) -> tuple[str, ...]:
    """The attributes of the operation's layer: parameters, their gradients, running statistics."""
    if operation.kind == "normalise":
        return ("gamma", "beta", "grad_gamma", "grad_beta", *STATISTICS)
    return ("weights", "bias", "grad_weights", "grad_bias")


def _shapes(operation: Operation) -> dict[str, tuple[int, ...]]:
    """The shape that each of the layer's arrays has to have."""
    if operation.kind == "normalise":
        return dict.fromkeys(_names(operation), (operation.shape[0],))
    weights: tuple[int, ...] = (operation.inputs, operation.outputs)
    if operation.kind == "convolve":
        s = operation.sizes
        weights = (s.filters, s.channels, s.kernel_height, s.kernel_width)
    bias = (weights[0] if operation.kind == "convolve" else weights[1],)
    return {"weights": weights, "bias": bias, "grad_weights": weights, "grad_bias": bias}
