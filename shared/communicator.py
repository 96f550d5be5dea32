"""What the ranks of a training say to each other. A rank is one of several processes that train a network together.

Communicator    a rank that is alone: it sends nothing
MpiRanks        one of several, by MPI
WholeBatch      for batch normalisation: the statistics of all rows of a batch, wherever they are

Each rank has all weights, and a share of the rows of each batch. All ranks call the same methods in the same order;
each call waits until the others have made it, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

SPIN, PAUSE = 200e-6, 50e-6
"""Seconds for which a rank asks again at once, and between two questions after that."""


class Communicator:
    """The only rank there is. Its methods do what those of several ranks do, without sending anything.

    rank: its number, from 0; size: how many ranks there are; seconds: time that `add` and `gathered` have taken so far
    """

    rank, size = 0, 1
    seconds = 0.0

    def rows(self, rows: range) -> range:
        """This rank's share of the rows of a batch: neighbours; no two shares differ by more than one row."""
        first, count = rows.start, len(rows)
        return range(first + count * self.rank // self.size, first + count * (self.rank + 1) // self.size)

    def add(self, numbers: np.ndarray) -> None:
        """Replace the numbers by their sums over all ranks, in place: an all-reduce. All ranks get the same bits."""

    def gathered(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers (n,) of every rank, (ranks, n)."""
        return numbers[np.newaxis]

    def from_first(self, make: Callable[[], Any]) -> Any:
        """What `make` returns on rank 0, the only one that calls it."""
        return make()

    def on_this_machine(self) -> Communicator:
        """The ranks that share this machine's memory."""
        return self


class MpiRanks(Communicator):
    """One of the ranks that mpiexec has started.

    world: mpi4py's communicator of all of them; shares_core: whether there are more of them than cores
    """

    def __init__(self, world: Any, shares_core: bool = False) -> None:
        from mpi4py import MPI

        self.world, self._in_place, self._shares_core = world, MPI.IN_PLACE, shares_core
        self.rank, self.size = world.Get_rank(), world.Get_size()

    def add(self, numbers: np.ndarray) -> None:
        """An all-reduce. As many ranks add in the same order every time."""
        self._call("allreduce", self._in_place, numbers)

    def gathered(self, numbers: np.ndarray) -> np.ndarray:
        """An all-gather."""
        of_ranks = np.empty((self.size, *numbers.shape), numbers.dtype)
        self._call("allgather", numbers, of_ranks)
        return of_ranks

    def _call(self, name: str, *arguments: Any) -> None:
        """Call one of MPI's collective operations. MPI's own wait never leaves the core to another process: a rank that
        shares its core with the one that it waits for would keep it back, so it asks and sleeps in turn."""
        started = time.perf_counter()
        if self._shares_core:
            request = getattr(self.world, f"I{name}")(*arguments)
            while not request.Test():
                if time.perf_counter() - started > SPIN:
                    time.sleep(PAUSE)
        else:
            getattr(self.world, name.capitalize())(*arguments)
        self.seconds += time.perf_counter() - started

    def from_first(self, make: Callable[[], Any]) -> Any:
        """A broadcast."""
        return self.world.bcast(make() if self.rank == 0 else None)

    def on_this_machine(self) -> Communicator:
        """Those that MPI calls shared."""
        from mpi4py import MPI

        return MpiRanks(self.world.Split_type(MPI.COMM_TYPE_SHARED), self._shares_core)


class WholeBatch:
    """What a batch normalisation needs of the rows on the other ranks.

    share: this rank's rows divided by those of the batch. 0: it has none, and computes with a row of another rank,
        which counts nothing here: all ranks must call the same methods.
    """

    def __init__(self, ranks: Communicator, share: float) -> None:
        self._ranks, self._share = ranks, share

    def moments(self, count: int, mean: Any, squares: Any) -> tuple[float, np.ndarray, np.ndarray]:
        """(count, mean, sum of the squared deviations from it) of each channel over all ranks, from those of this one.

        mean, squares: (channels,). Two groups at a time are joined by the formula of Chan, Golub and LeVeque, so that
        numbers far from zero lose no digits.
        """
        own = np.concatenate([[count if self._share else 0], mean, squares]).astype(np.float64)
        total, (whole_mean, whole_squares) = 0.0, np.zeros((2, (len(own) - 1) // 2))
        for more, *rest in self._ranks.gathered(own):
            if more:
                other_mean, other_squares = np.split(np.array(rest), 2)
                apart = other_mean - whole_mean
                whole_mean = whole_mean + apart * (more / (total + more))
                whole_squares = whole_squares + other_squares + apart * apart * (total * more / (total + more))
                total += more
        return total, whole_mean, whole_squares

    def sums(self, *sums: Any) -> np.ndarray:
        """The sums of this rank's gradients over its rows, (channels,) each, as those of the whole batch in its place.

        The loss is a mean over a rank's own rows. A rank with 1/4 of the rows has gradients 4 times those of the whole
        batch, divides its sums by 1/4 of the count, and the mean of the gradients of gamma is again weighted by 1/4:
        the sums over all ranks, weighted by their shares, are right in all three places.
        """
        whole = np.array(sums, np.float64) * self._share if self._share else np.zeros(np.shape(sums))
        self._ranks.add(whole)
        return whole


ALONE = Communicator()
