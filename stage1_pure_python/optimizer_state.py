"""What an optimizer remembers between steps, in lists; the rest of it is in shared/optimizer_base.py."""

from collections.abc import Callable, Sequence
from typing import Any

from shared.optimizer_base import StateBase

from .arrays import Array, as_images, asarray, copied, matrix_shape, shape_of, zeros


class OptimizerState(StateBase):
    """The steps that were taken, and lists of numbers shaped like the parameters."""

    def for_each_row(
        self, update: Callable[..., None], parameters: Sequence[Array], gradients: Sequence[Array]
    ) -> None:
        """update(p, g, buffers) on every row of every weight matrix or kernel and on every bias: lists of floats."""
        for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            _each_row(update, p, g, [self.buffers[name][i] for name in self.names])

    def zeros_like(self, parameter: Array) -> Array:
        """Zeros of the same shape."""
        return zeros(shape_of(parameter))

    def own_copy(self, array: Array) -> Array:
        """The same numbers in new lists."""
        return copied(array)

    def loaded(self, values: Any) -> Array:
        """The values of any stage as lists."""
        return asarray(values)

    def shape(self, name: str, array: Array, is_buffer: bool) -> tuple[int, ...]:
        """The shape of equally long lists of numbers."""
        if not isinstance(array, list):
            raise TypeError(f"step: {name} is a {type(array).__name__}, expected an array; see asarray")
        if not array:
            raise ValueError(f"step: {name} is (0,), expected at least one value")
        if not isinstance(array[0], list):
            return (len(array),)
        is_kernel = bool(array[0]) and isinstance(array[0][0], list)
        return as_images(f"step: {name}", array)[1] if is_kernel else matrix_shape(f"step: {name}", array)


def _each_row(update: Callable[..., None], p: Array, g: Array, buffers: list[Array]) -> None:
    if not isinstance(p[0], list):
        update(p, g, buffers)
        return
    for r in range(len(p)):
        _each_row(update, p[r], g[r], [buffer[r] for buffer in buffers])
