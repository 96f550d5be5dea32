"""What an optimizer keeps between steps, and the checks of what C changes in place."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shared.optimizer_base import StateBase

from .arrays import Array, aligned_copy, aligned_zeros, asarray, check_writable, overlap, packed


class OptimizerState(StateBase):
    """After `begin_step` each buffer is C-contiguous, of its parameter's shape and dtype, and nobody else's memory."""

    def begin_step(self, parameters: Sequence[Array], gradients: Sequence[Array]) -> list[Array]:  # type: ignore[override]
        """Check everything, make the buffers on the first step, count it. Returns the gradients as C reads them."""
        self.check_shapes("gradients", gradients, parameters)
        for name, buffers in self.buffers.items():
            self.check_shapes(f"the optimizer's {name}", buffers, parameters)
        for i, (p, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            self.check_pair(i, p, gradient)
        slopes = [packed(gradient, p.dtype) for p, gradient in zip(parameters, gradients, strict=True)]
        for name, buffers in self.make_buffers(parameters).items():
            for i, (array, p, slope) in enumerate(zip(buffers, parameters, slopes, strict=True)):
                check_writable(f"step: number {i} of the optimizer's {name}", array)
                if overlap(array, p) or overlap(array, slope):
                    raise ValueError(
                        f"step: number {i} of the optimizer's {name} overlaps its parameter or gradient; "
                        "give each memory of its own"
                    )
        self.steps += 1
        return slopes

    def check_pair(self, i: int, parameter: Array, gradient: Array) -> None:
        """C may change this parameter by this gradient."""
        self.check_kinds(i, parameter, gradient)
        check_writable(f"step: parameter {i}", parameter)
        if overlap(parameter, packed(gradient, parameter.dtype)):
            raise ValueError(f"step: parameter {i} overlaps number {i} of gradients; give each memory of its own")

    def shape(self, name: str, array: Any, is_buffer: bool) -> tuple[int, ...]:
        if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
            raise TypeError(f"step: {name} is a {type(array).__name__}, expected an array; see asarray")
        return array.shape

    def zeros_like(self, parameter: Array) -> Array:
        return aligned_zeros(parameter.shape, parameter.dtype)

    def fitted(self, buffer: Array, parameter: Array) -> Array:
        return packed(buffer, parameter.dtype)

    def loaded(self, values: Any) -> Array:
        dtype = "float32" if getattr(values, "dtype", None) == "float32" else "float64"
        return aligned_copy(asarray(values, dtype), dtype)
