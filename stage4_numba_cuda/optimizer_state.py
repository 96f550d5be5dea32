"""The buffers that an optimizer keeps on the device between steps, and their checks before a kernel writes there.

What is the same on every stage stands in shared/optimizer_base.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from shared.optimizer_base import StateBase

from .arrays import Array, checked_array, is_packed, on_device, overlap, to_host, zeros
from .backend import cuda
from .kernels import optimizers as kernels
from .packed_parameters import Packed

PLACES = {
    "learning_rate": kernels.RATE,
    "step_size": kernels.RATE,
    "weight_decay": kernels.DECAY,
    "momentum": kernels.KEEP_FIRST,
    "alpha": kernels.KEEP_FIRST,
    "beta1": kernels.KEEP_FIRST,
    "beta2": kernels.KEEP_SECOND,
    "epsilon": kernels.EPSILON,
    "root_correction": kernels.ROOT_CORRECTION,
}
"""Which of the eight numbers on the device each hyperparameter is."""


class OptimizerState(StateBase):
    """What an optimizer remembers between steps: how many there were, and named buffers shaped like the parameters.

    After the first step the buffers lie on the device, each in its parameter's dtype. What `load` took stays on the
    host until then: it may come in another stage's dtype.
    """

    kind_of_array: ClassVar = "device arrays"

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self._packed: dict[str, Packed] = {}
        self._numbers: dict[np.dtype, tuple[np.ndarray, Array]] = {}
        """For each dtype the vector in pinned memory, and on the device."""
        self._sent: dict[np.dtype, Mapping[str, float]] = {}
        """And the numbers that were last sent, by name."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy has memory of its own: a copied view would no longer be a part of the copied whole, nor a copied
        vector in memory that the system may not move."""
        return self.__dict__ | {"_packed": {}, "_numbers": {}, "_sent": {}}

    # ---- arrays, as shared/optimizer_base.py asks for them

    def zeros_like(self, parameter: Array) -> Array:
        """Zeros on the device."""
        return zeros(parameter.shape, parameter.dtype)

    def own_copy(self, array: Array) -> np.ndarray:
        """A copy on the host."""
        return np.array(to_host(array))

    def loaded(self, values: Any) -> np.ndarray:
        """A copy on the host, whatever stage wrote the values; float64 unless they are float32."""
        dtype = "float32" if getattr(values, "dtype", None) == "float32" else "float64"
        return np.array(checked_array(to_host(values) if on_device(values) else values, dtype))

    def fitted(self, buffer: Array, parameter: Array) -> Array:
        """The buffer on the device, in the parameter's dtype."""
        is_there = on_device(buffer) and buffer.dtype == parameter.dtype
        return buffer if is_there else _to_device(buffer, parameter.dtype)

    def shape(self, name: str, array: Array, is_buffer: bool) -> tuple[int, ...]:
        """The shape of a device array; only a buffer may still be on the host."""
        if not (on_device(array) or (is_buffer and isinstance(array, np.ndarray))):
            where = " on the host" if isinstance(array, np.ndarray) else ""
            raise TypeError(f"step: {name} is a {type(array).__name__}{where}, expected a device array; see asarray")
        return tuple(array.shape)

    def check_pair(self, i: int, p: Array, gradient: Array) -> None:
        """A kernel may change this parameter by this gradient."""
        self.check_kinds(i, p, gradient)
        if not is_packed(p):
            raise ValueError(
                f"step: parameter {i} is not C-contiguous (strides {p.strides}); pass an array that is, not such a view"
            )
        if is_packed(gradient) and overlap(p, gradient):
            raise ValueError(f"step: parameter {i} overlaps number {i} of gradients; give each memory of its own")

    # ---- a step

    def begin_step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> Any:
        """Check everything, make the buffers on the first step, count the step. Returns the gradients, contiguous."""
        for name, buffers in self.buffers.items():
            self.check_shapes(f"the optimizer's {name}", buffers, parameters)
        super().begin_step(parameters, gradients)
        return [gradient if is_packed(gradient) else _to_device(gradient, gradient.dtype) for gradient in gradients]

    def packed(self, parameters: Sequence[Array]) -> list[Array]:
        """The buffers as a vector for each name, in which they lie as Packed places arrays of these shapes and one
        dtype. Buffers that lie elsewhere are moved there first."""
        for name, buffers in self.make_buffers(parameters).items():
            kept = self._packed.get(name)
            if kept is None or not kept.holds(buffers):
                kept = self._packed[name] = Packed([p.shape for p in parameters], parameters[0].dtype)
                for own, buffer in zip(kept.arrays, buffers, strict=True):
                    own.copy_to_device(buffer)
                self.buffers[name] = list(kept.arrays)
        return [self._packed[name].flat for name in self.names]

    def device_numbers(self, numbers: Mapping[str, float], dtype: Any, stream: Any = 0) -> Array:
        """What an optimizer's numbers() returned, on the device, in the order that the kernels read.

        There is one vector for each dtype, always the same one, so that a captured graph may hold on to it. It is
        written only where a number has changed since this wrote it last, so nobody else may write to it.
        stream: in which it is written, without waiting; the caller waits for this stream before the next call
        """
        dtype = np.dtype(dtype)
        if self._sent.get(dtype) == numbers:
            return self._numbers[dtype][1]
        self._sent.pop(dtype, None)  # until they are on their way: Ctrl-C may come between
        vector = in_order(numbers, dtype)
        if dtype not in self._numbers:
            pinned = cuda.pinned_array(vector.shape, dtype)
            pinned[...] = vector
            self._numbers[dtype] = pinned, cuda.to_device(pinned)
        else:
            written, array = self._numbers[dtype]
            written[...] = vector
            array.copy_to_device(written, stream=stream)
        self._sent[dtype] = dict(numbers)
        return self._numbers[dtype][1]


def _to_device(values: Array, dtype: Any) -> Array:
    with np.errstate(over="ignore"):  # a float64 beyond float32's range becomes inf, as everywhere
        return cuda.to_device(np.ascontiguousarray(to_host(values), dtype))


def in_order(numbers: Mapping[str, float], dtype: Any) -> np.ndarray:
    """What an optimizer's numbers() returned as a vector of kernels.COUNT; what it does not have is 0, and not read."""
    vector = np.zeros(kernels.COUNT)
    for name, place in PLACES.items():
        if name in numbers:
            vector[place] = numbers[name]
    vector[kernels.ADD_FIRST] = 1.0 - vector[kernels.KEEP_FIRST]
    vector[kernels.ADD_SECOND] = 1.0 - vector[kernels.KEEP_SECOND]
    with np.errstate(over="ignore"):  # a float64 beyond float32's range becomes inf, as everywhere
        return vector.astype(dtype)
