"""What an optimizer remembers between steps, in arrays; the rest of it is in shared/optimizer_base.py."""

from typing import Any

import numpy as np

from shared.optimizer_base import StateBase

from .arrays import Array, Scratch, asarray


class OptimizerState(StateBase):
    """The steps that were taken, arrays shaped like the parameters, and memory for a step."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.scratch = Scratch()

    def slope(self, p: Array, gradient: Array, weight_decay: float) -> Array:
        """gradient + weight_decay * p; the gradient itself where there is no decay."""
        if not weight_decay:
            return gradient
        slope = np.multiply(p, weight_decay, out=self.scratch("slope", p.shape, p.dtype))
        slope += gradient
        return slope

    def zeros_like(self, parameter: Array) -> Array:
        """Zeros of the same shape and dtype."""
        return np.zeros_like(parameter)

    def loaded(self, values: Any) -> Array:
        """The values of any stage: float32 stays float32, and everything else becomes float64."""
        return asarray(values, "float32" if getattr(values, "dtype", None) == "float32" else "float64").copy()

    def fitted(self, buffer: Array, parameter: Array) -> Array:
        """In the parameter's dtype: a state loaded from another stage comes in that stage's."""
        return buffer.astype(parameter.dtype, copy=False)

    def shape(self, name: str, array: Array, is_buffer: bool) -> tuple[int, ...]:
        """The shape of an array."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"step: {name} is a {type(array).__name__}, expected an array; see asarray")
        return array.shape

    def check_pair(self, i: int, parameter: Array, gradient: Array) -> None:
        """TypeError or ValueError where this gradient cannot change this parameter in place."""
        self.check_kinds(i, parameter, gradient)
        if not parameter.flags.writeable:
            raise ValueError(f"step: parameter {i} is read-only; pass an array that may be written to")
