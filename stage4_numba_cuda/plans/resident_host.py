"""The host's part of a run with resident data: it sends an epoch's order and the optimizer's numbers, and reads losses.

It does this for many steps at once. The device computes a small network's step in microseconds, and it would wait if
Python did this work for each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from shared.names import LABEL_LOSSES

from ..arrays import Array, checked_labels, empty
from ..backend import cuda
from ..kernels.optimizers import COUNT
from ..optimizer_state import PLACES, in_order
from . import cuda_graphs

READ_EVERY = 64
"""Steps between two readings of the losses, at least: a reading waits for the device to finish."""

MOST_STEPS, MOST_LOSSES = 1024, 65_536
"""Steps between two readings of the losses, and numbers that are kept for them: an epoch of MNIST in batches of 64."""


def steps_between_readings(batch_size: int) -> int:
    """How many steps' losses are kept on the device: fewer for larger batches, which take longer."""
    return max(READ_EVERY, min(MOST_STEPS, MOST_LOSSES // batch_size))


def labels_of(network: Any, labels: Any, count: int) -> np.ndarray:
    """The labels of a run's samples, int32 (count,). Raises ValueError for one that the network has no output for.

    A single output tells two classes apart, but not to a loss that takes labels: it picks the label's column.
    """
    outputs = network.layer_sizes[-1]
    classes = outputs if network.loss_name in LABEL_LOSSES else max(2, outputs)
    return checked_labels("resident", labels, count, classes)


class Orders:
    """The order in which an epoch visits `count` samples, on the device, and that of the next epoch.

    current: which of the two is in use; part of the key of a captured graph, which has the address inside
    """

    def __init__(self, count: int) -> None:
        # Two, and on a GPU a stream of their own and memory that the system may not move: so the host sends the next
        # epoch's order while this epoch's last steps are computed, and does not wait for its copy.
        self.count, self.current = count, 0
        self._arrays = [empty((count,), np.int32) for _ in range(2)]
        self._begun = False
        self._ahead: np.ndarray | None = None
        self._pinned = cuda.pinned_array((count,), np.int32)
        self._copies: Any = cuda.stream() if cuda_graphs.available() else 0

    @property
    def now(self) -> Array:
        """The order of this epoch, int32 (count,)."""
        return self._arrays[self.current]

    def begin(self, order: np.ndarray) -> None:
        """The order of the coming steps, (count,): `now` is it from here on, and has arrived.

        It is sent now unless it was sent ahead. The host waits for the stream of copies alone. Raises ValueError unless
        it has each index once.
        """
        if self._ahead is None or not np.array_equal(self._ahead, order):
            self.prefetch(order)
        if self._copies:
            self._copies.synchronize()
        self.current, self._ahead, self._begun = 1 - self.current, None, True

    def prefetch(self, order: np.ndarray) -> None:
        """Send the order of the next epoch, (count,), ahead of its `begin`, while kernels may still read `now`.

        The copy goes from pinned memory to the array that is not in use, on the stream of copies, and the host does not
        wait for it. Afterwards `order` is the caller's own again. Raises ValueError unless it has each index once.
        """
        order = np.asarray(order)
        if not self._has_each_once(order):
            raise ValueError(f"resident: order: expected each index from 0 to {self.count - 1} once")
        if self._copies:
            self._copies.synchronize()  # what it sent before lies in the same memory
        self._ahead = None  # until the copy is ordered: Ctrl-C may come between
        self._pinned[...] = order
        self._arrays[1 - self.current].copy_to_device(self._pinned, stream=self._copies)
        self._ahead = self._pinned

    def _has_each_once(self, order: np.ndarray) -> bool:
        """Whether it visits each sample once: each index is marked, which takes less time than sorting them."""
        if order.shape != (self.count,) or order.dtype.kind not in "iu":
            return False
        if order.min() < 0 or order.max() >= self.count:
            return False
        seen = np.zeros(self.count, np.bool_)
        seen[order] = True
        return bool(seen.all())

    def check_steps(self, first: int, steps: int, most: int, kept: int) -> None:
        """ValueError unless the epoch has begun and has these steps, and their losses can be kept.

        most: the steps of an epoch; kept: those whose losses can be
        """
        if not self._begun:
            raise ValueError("take: there is no order yet; call begin_epoch first")
        if not 0 <= first <= first + steps <= most:
            raise ValueError(f"take: steps {first} to {first + steps} of an epoch that has {most}")
        if steps > kept:
            raise ValueError(f"take: {steps} steps at once; the losses of at most {kept} can be kept")


def batches(count: int, batch_size: int, first: int, steps: int) -> list[tuple[int, int]]:
    """(rows, steps) of the steps from `first` on of an epoch over `count` samples: only its last batch may be smaller.

    >>> batches(53, 8, 5, 2)
    [(8, 1), (5, 1)]
    """
    whole = min(steps, count // batch_size - first)
    return [(rows, many) for rows, many in ((batch_size, whole), (count % batch_size, steps - whole)) if many]


def losses_of(rows: np.ndarray, sizes: Iterable[tuple[int, int]]) -> list[float]:
    """The loss of each step. rows (steps, at least rows): what each row of its batch adds; sizes: as from `batches`."""
    found: list[float] = []
    for count, steps in sizes:
        found += rows[len(found) : len(found) + steps, :count].sum(axis=1, dtype=np.float64).tolist()
    return found


def schedule_of(optimizer: Any, rates: Sequence[float], dtype: Any, lines: int) -> np.ndarray:
    """What an optimizer of this stage multiplies with in each of the coming steps, (lines, 8), a line for each.

    rates: a learning rate for each step; afterwards the optimizer has the last one
    Raises ValueError for a rate that the optimizer refuses.
    """
    values = np.asarray(rates, np.float64)
    wrong = ~(np.isfinite(values) & (values >= 0))
    optimizer.learning_rate = rates[int(np.argmax(wrong))] if wrong.any() else rates[-1]
    table = np.zeros((lines, COUNT))
    table[: len(rates)] = in_order(optimizer.numbers(), np.float64)
    for name, numbers in optimizer.scheduled(values).items():
        table[: len(rates), PLACES[name]] = numbers
    with np.errstate(over="ignore"):  # a float64 beyond float32's range becomes inf, as everywhere
        return table.astype(dtype)
