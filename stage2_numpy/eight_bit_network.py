"""A trained network in eight bits: what goes from layer to layer are whole numbers.

steps_of          the layers, cut where a number is rounded (eight_bit_steps.py); batch normalisation is folded
EightBitNetwork   the steps, calibrated on images: the scale of each is the largest number that it gives, over 127
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shared import layers
from shared.architectures import Architecture

from .arrays import Array, ieee
from .eight_bit_steps import Addition, Affine, Average, Pass, Product, Step, Sums, Through, through, through_whole
from .eight_bits import integer_matmul, symmetric_scale

AT_A_TIME = 100
"""Images in one pass; this bounds the memory."""


def steps_of(
    architecture: Architecture, parameters: Sequence[Array], running_statistics: Sequence[Array] = ()
) -> list[Step]:
    """The layers of a network as steps, in floats so far. A step begins with each layer that computes sums.

    parameters, running_statistics: in the order of the architecture; they become float32
    """
    with np.errstate(over="ignore"):  # infinity is refused in a sentence
        arrays = [np.asarray(values, np.float32) for values in (*parameters, *running_statistics)]
    if not all(np.isfinite(values).all() for values in arrays):
        raise ValueError("a network in eight bits: expected finite parameters, got infinity or NaN")
    placed, learned, running = iter(architecture.placed()), iter(arrays), iter(arrays[len(parameters) :])

    def chain(chosen: Sequence[layers.Layer], in_block: bool) -> list[Step]:
        steps = [Step(Through())]
        for layer in chosen:
            inner = chain(layer.layers, True) if isinstance(layer, layers.Residual) else []
            here, last = next(placed), steps[-1]
            match layer:
                case layers.Conv() | layers.Dense():
                    steps.append(Step(Sums(here, next(learned), next(learned))))
                case layers.BatchNorm():
                    numbers = next(learned), next(learned), next(running), next(running)
                    if isinstance(last.source, Sums) and not (last.computing or last.picking):
                        last.source.fold(*numbers)
                    else:
                        steps.append(Step(Affine(here, *numbers)))
                case layers.AveragePool():
                    steps.append(Step(Average(here)))
                case layers.Residual():
                    steps.append(Step(Addition(here, inner)))
                case layers.Dropout() | layers.Activate("identity"):
                    pass  # nothing happens once the training is over
                case _:
                    last.follow(here)
        if in_block:
            steps[0].rounds = bool(steps[0].computing)
            return steps if steps[0].placed else steps[1:]
        steps[-1].rounds = False
        return steps

    return chain(architecture.layers, False)


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps, and before that of a block those within it."""
    for step in steps:
        if isinstance(step.source, Addition):
            yield from all_steps(step.source.steps)
        yield step


class EightBitNetwork:
    """A trained network of any architecture in eight bits.

    parameters, running_statistics: of the trained network, in the order of the architecture
    images: (N, features) or images, as the network learned from them: the largest number that a step gives for them
        decides about its scale
    per_channel: a scale for each output of a layer, or one for all its weights
    product: how whole numbers are multiplied; the answers are the same with any
    Raises ValueError for no images and for numbers that are not finite.
    """

    def __init__(
        self,
        architecture: Architecture,
        parameters: Sequence[Array],
        running_statistics: Sequence[Array],
        images: Array,
        per_channel: bool = True,
        product: Product = integer_matmul,
    ) -> None:
        self.architecture, self.product = architecture, product
        self.steps = steps_of(architecture, parameters, running_statistics)
        self._calibrate(images)
        self._scale(self.steps, np.float32(1), per_channel)

    def _calibrate(self, images: Array) -> None:
        if not len(images):
            raise ValueError("a network in eight bits: expected at least one image to calibrate with, got none")

        def look(step: Step, values: Array) -> None:
            step.largest = np.maximum(step.largest, np.abs(values).max())  # which keeps a NaN; max() may not

        self.real(images, look)
        for step in all_steps(self.steps):
            if not np.isfinite(step.largest):
                raise ValueError(f"a network in eight bits: {step.title} gives numbers that are not finite")

    def _scale(self, steps: Sequence[Step], scale: Any, per_channel: bool) -> None:
        """Give each step its scale, and each layer with weights its whole numbers; scale: of the first input."""
        for step in steps:
            if isinstance(step.source, Sums):
                step.source.calibrate(scale, per_channel)
            elif isinstance(step.source, Addition):
                self._scale(step.source.steps, scale, per_channel)
            if step.rounds:
                scale = step.scale = symmetric_scale(step.largest)

    def forward(self, x: Array, observe: Callable[[Step, Array], None] | None = None) -> Array:
        """The logits (batch, classes) for x (batch, features) or images, by whole numbers."""
        return self._in_parts(x, lambda part: through_whole(self.steps, part, None, Pass(self.product, observe))[0])

    def real(self, x: Array, observe: Callable[[Step, Array], None] | None = None) -> Array:
        """The same in floats."""
        return self._in_parts(x, lambda part: through(self.steps, part, Pass(self.product, observe)))

    @ieee
    def _in_parts(self, x: Array, answer: Callable[[Array], Array]) -> Array:
        x = np.asarray(x, np.float32).reshape(len(x), *self.architecture.input_shape)
        return np.concatenate([answer(x[start : start + AT_A_TIME]) for start in range(0, len(x), AT_A_TIME)])

    @property
    def output_step(self) -> float:
        """What one step of eight bits would be for the logits: the largest of the calibration over 127."""
        return float(symmetric_scale(self.steps[-1].largest))

    @property
    def nbytes(self) -> int:
        """Bytes of the weights, biases and scales."""
        total = 0
        for step in all_steps(self.steps):
            arrays = [] if step.scale is None else [step.scale]
            if isinstance(step.source, Sums):
                arrays += [step.source.numbers, step.source.bias_numbers, step.source.weight_scale]
            total += sum(
                each.nbytes for each in (*arrays, *(step.source.numbers if isinstance(step.source, Affine) else ()))
            )
        return total
