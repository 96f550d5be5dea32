"""What a run with resident data sends from the host: the order of an epoch, and the optimizer's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import graphs
from .arrays import Array, empty
from .backend import cuda
from .buffers import READ_EVERY
from .optimizer_state import in_order


class Orders:
    """The order in which an epoch visits `count` samples, on the device, and that of the next epoch.

    current: which of the two is in use; part of the key of a captured graph, which has the address inside
    """

    def __init__(self, count: int) -> None:
        # Two, and on a GPU a stream of their own and memory that the system may not move: so the next epoch's order
        # travels while this one's last steps still compute.
        self.count, self.current = count, 0
        self._arrays = [empty((count,), np.int32) for _ in range(2)]
        self._begun = False
        self._ahead: np.ndarray | None = None
        self._pinned = cuda.pinned_array((count,), np.int32)
        self._copies: Any = cuda.stream() if graphs.available() else 0

    @property
    def now(self) -> Array:
        """The order of this epoch, int32 (count,)."""
        return self._arrays[self.current]

    def begin(self, order: np.ndarray) -> None:
        """The order of the coming steps. Raises ValueError unless it has each index once."""
        if self._ahead is None or not np.array_equal(self._ahead, order):
            self.prefetch(order)
        if self._copies:
            self._copies.synchronize()
        self.current, self._ahead, self._begun = 1 - self.current, None, True

    def prefetch(self, order: np.ndarray) -> None:
        """Send the order of the next epoch ahead of its `begin`."""
        order = np.asarray(order)
        if order.shape != (self.count,) or not np.array_equal(np.sort(order), np.arange(self.count)):
            raise ValueError(f"resident: order: expected each index from 0 to {self.count - 1} once")
        if self._copies:
            self._copies.synchronize()  # what it sent before lies in the same memory
        self._pinned[...] = order
        self._ahead = self._pinned
        self._arrays[1 - self.current].copy_to_device(self._pinned, stream=self._copies)

    def check_steps(self, first: int, steps: int, most: int) -> None:
        """ValueError unless the epoch has begun and has these steps, and their losses can be kept.

        most: the steps of an epoch
        """
        if not self._begun:
            raise ValueError("take: there is no order yet; call begin_epoch first")
        if not 0 <= first <= first + steps <= most:
            raise ValueError(f"take: steps {first} to {first + steps} of an epoch that has {most}")
        if steps > READ_EVERY:
            raise ValueError(f"take: {steps} steps at once; the losses of at most {READ_EVERY} can be kept")


def schedule_of(optimizer: Any, rates: Sequence[float], dtype: Any) -> np.ndarray:
    """What an optimizer of this floor multiplies with in each of the coming steps, (READ_EVERY, 8).

    rates: a learning rate for each step; afterwards the optimizer has the last one
    """
    table = np.zeros((READ_EVERY, 8), dtype)
    for i, rate in enumerate(rates):
        optimizer.learning_rate = rate
        table[i] = in_order(optimizer.numbers(i), table.dtype)
    return table
