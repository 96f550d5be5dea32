"""Requests that wait are computed together: a product of many rows takes far less than as many products of one row.

The event loop only collects. A batch is computed in a thread, which all models share, so the loop goes on answering.

    the first request waits at most `budget` seconds for others
    `most` images are a full batch, which waits for nobody
    what comes while a batch is computed waits for the next one, whose budget then is often spent already
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np


@dataclass
class Waiting:
    """A request. pixels: (images, *input_shape); since: when it came, by the loop's clock"""

    pixels: np.ndarray
    logits: asyncio.Future[np.ndarray]
    since: float


class Batches:
    """The requests of one model. All methods are called in the event loop's thread.

    worker: where a batch is computed; computed: told how many images a batch had
    """

    def __init__(
        self,
        compute: Callable[[np.ndarray], np.ndarray],
        worker: Executor,
        most: int,
        budget: float,
        computed: Callable[[int], object],
    ) -> None:
        self.compute, self.worker, self.most, self.budget, self.computed = compute, worker, most, budget, computed
        self._waiting: deque[Waiting] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._busy = False

    async def logits(self, pixels: np.ndarray) -> np.ndarray:
        """The logits of (images, *input_shape), at most `most` images."""
        loop = asyncio.get_running_loop()
        request = Waiting(pixels, loop.create_future(), loop.time())
        self._waiting.append(request)
        self._look()
        return await request.logits

    def _look(self) -> None:
        """Begin a batch now, or see to it that one begins when the first has waited long enough."""
        if self._busy or not self._waiting:
            return
        loop = asyncio.get_running_loop()
        left = self._waiting[0].since + self.budget - loop.time()
        full = sum(len(each.pixels) for each in self._waiting) >= self.most
        if self._timer is not None:
            if not full:
                return
            self._timer.cancel()
            self._timer = None
        if full or left <= 0:
            self._begin()
        else:
            self._timer = loop.call_later(left, self._late)

    def _late(self) -> None:
        self._timer = None
        self._begin()

    def _begin(self) -> None:
        batch: list[Waiting] = []
        images = 0
        while self._waiting and images + len(self._waiting[0].pixels) <= self.most:
            request = self._waiting.popleft()
            if not request.logits.cancelled():  # it has been given up: its time was over
                batch.append(request)
                images += len(request.pixels)
        if not batch:
            return self._look()
        self._busy = True
        self.computed(images)
        done = asyncio.get_running_loop().run_in_executor(self.worker, self._compute, [each.pixels for each in batch])
        done.add_done_callback(lambda done: self._deliver(batch, done))

    def _compute(self, parts: list[np.ndarray]) -> list[np.ndarray]:
        """In the worker's thread."""
        ends = np.cumsum([len(each) for each in parts])[:-1]
        return np.split(self.compute(np.concatenate(parts)), ends)

    def _deliver(self, batch: list[Waiting], done: asyncio.Future[list[np.ndarray]]) -> None:
        self._busy = False
        error = asyncio.CancelledError() if done.cancelled() else done.exception()  # the worker has been shut down
        for number, request in enumerate(batch):
            if request.logits.done():
                continue
            if error is not None:
                request.logits.set_exception(RuntimeError(f"the batch could not be computed: {error!r}"))
            else:
                request.logits.set_result(done.result()[number])
        self._look()
