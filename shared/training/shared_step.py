"""One step of the optimizer by a batch in several parts: one after the other, on several ranks, or both.

    for each part of the batch, one after the other:
        this rank's share of its rows: forward, loss, backward
        buffer += gradients and loss * (rows of the share / rows of the batch)
    add the buffers of all ranks
    the optimizer's step, the same on every rank

The loss is a mean over the rows, and so are its gradients. Weighted by their numbers of rows, the means of the parts
add up to the mean of the whole batch: the numbers are those of one rank in one part, but for rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shared.communicator import Communicator, WholeBatch
from shared.contract import NetworkLike, Optimizer, Stage


class SharedStep:
    """The steps of one network and optimizer, which this rank takes together with the others.

    parts: into how many parts a batch is cut; local_statistics: as in TrainingSettings
    wants_to_stop: whether this rank was asked to stop. All ranks learn of it with the gradients, in `stopping`: they
        stop after the same step
    """

    def __init__(
        self,
        stage: Stage,
        network: NetworkLike,
        optimizer: Optimizer,
        ranks: Communicator,
        parts: int,
        local_statistics: bool,
    ) -> None:
        self._stage, self._network, self._optimizer, self._ranks = stage, network, optimizer, ranks
        self._parts, self._local = parts, local_statistics or ranks.size == 1
        self.wants_to_stop: Callable[[], bool] = lambda: False
        self.stopping = False
        shapes = network.architecture.parameter_shapes()
        dtype = np.float64 if stage.number == 1 else network.dtype
        ends = list(itertools.accumulate(map(math.prod, shapes)))
        self._buffer = np.zeros(ends[-1] + 2, dtype)  # the gradients, the loss, and how many ranks want to stop
        pieces = np.split(self._buffer, ends)
        self._gradients = [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=False)]

    def take(self, rows: int, batch: Callable[[range], tuple[Any, Any, Sequence[Any] | None]]) -> float:
        """Take a step. Returns the mean loss of the whole batch before it.

        rows: of the whole batch; batch: gives x, y and the dropout masks of some of its rows
        """
        self._buffer[-2] = 0.0
        is_begun = False
        for part in parts_of(rows, self._parts):
            is_begun |= self._add_share(self._ranks.rows(part), part, rows, batch, is_begun)
        if not is_begun:  # this rank has no rows
            self._buffer.fill(0)
        self._buffer[-1] = self.wants_to_stop()
        self._ranks.add(self._buffer)
        self.stopping = bool(self._buffer[-1])
        arrays, dtype = self._stage.arrays, self._network.dtype
        gradients = self._network.layer_gradients
        for own, values in zip(gradients, self._gradients, strict=True):
            own[:] = arrays.asarray(values, dtype)
        self._optimizer.step(self._network.parameters, gradients)
        return float(self._buffer[-2])

    def _add_share(self, share: range, part: range, rows: int, batch: Callable[[range], Any], is_begun: bool) -> bool:
        """Add the gradients and the loss of this rank's share of a part to the buffer, or begin it with them.

        Returns whether the rank has a share.
        """
        is_empty = len(share) == 0
        if is_empty and self._local:
            return False
        x, y, masks = batch(part[:1] if is_empty else share)  # see WholeBatch for the row in place of no rows
        if not self._local:
            self._network.normalise_over(WholeBatch(self._ranks, len(share) / len(part)))
        try:
            kept: Any = _Gradients()
            loss = float(self._network.train_step(x, y, kept, dropout_masks=masks))
        finally:
            self._network.normalise_over(None)
        if is_empty:
            return False
        weight = len(share) / rows
        for sums, gradient in zip(self._gradients, kept.gradients, strict=True):
            own = self._stage.arrays.to_host(gradient)
            if is_begun:
                sums += np.multiply(own, weight, dtype=sums.dtype)
            else:
                np.multiply(own, weight, out=sums)
        self._buffer[-2] += loss * weight
        return True


class _Gradients:
    """In the place of the optimizer in `train_step`: it keeps the gradients, and leaves the parameters as they are."""

    gradients: Sequence[Any] = ()

    def step(self, parameters: Sequence[Any], gradients: Sequence[Any]) -> None:
        self.gradients = gradients


def parts_of(rows: int, parts: int) -> Iterator[range]:
    """The rows 0 to `rows` in so many parts, or in one for each row where there are fewer rows."""
    parts = min(parts, rows)
    for i in range(parts):
        yield range(rows * i // parts, rows * (i + 1) // parts)
