"""Worker threads that run blocks, while the launching thread waits and can be interrupted.

Compiled code releases the GIL, so that workers run in parallel; but a thread inside compiled code does not react to
Ctrl-C. So all but the shortest launches run on workers: the launching thread waits in Python, and at a
KeyboardInterrupt stops the workers through their status arrays.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np

from ..helpers.status import CODE, STOP, Stopped, new_status

Run = Callable[[int, int, np.ndarray], None]
"""run(first_block, end_block, status) runs the kernel on these blocks."""

POLL = 0.2
"""Seconds that the launching thread sleeps at a time: on Windows, Ctrl-C waits until it wakes."""


class Fault(Exception):
    """An error in a block.

    cause: the exception; status: the status array of its worker, which describes the error if cause is Stopped
    """

    def __init__(self, cause: BaseException, status: np.ndarray) -> None:
        super().__init__(str(cause))
        self.cause, self.status = cause, status


class Job:
    """The blocks of one launch, distributed to workers in chunks, in order.

    run: the kernel; blocks: the number of blocks; chunk: blocks of a chunk; workers: the number of workers
    """

    def __init__(self, run: Run, blocks: int, chunk: int, workers: int) -> None:
        self._run, self._chunk = run, chunk
        self._lock = threading.Lock()
        self._next, self._end = 0, blocks
        self._faults: list[tuple[int, BaseException, np.ndarray]] = []
        #: For each worker, the first block of its chunk.
        self._at = [0] * workers
        self._active = workers
        self.statuses = [new_status() for _ in range(workers)]
        self._done = threading.Lock()
        self._done.acquire()

    def work(self, worker: int) -> None:
        """Run chunks until there are none. Never raises: an exception is stored for `finish`."""
        status = self.statuses[worker]
        first = 0
        try:
            while True:
                with self._lock:
                    first, end = self._next, min(self._next + self._chunk, self._end)
                    if first >= end:
                        break
                    self._next, self._at[worker] = end, first
                self._run(first, end, status)
        except BaseException as error:  # stored; `finish` raises it in the launching thread
            with self._lock:
                self._fail(first, error, status)
        with self._lock:
            self._active -= 1
            last = self._active == 0
        if last:
            self._done.release()

    def _fail(self, first: int, error: BaseException, status: np.ndarray) -> None:
        """Stop the blocks after this chunk. Those before it go on, so that the lowest block's error is reported."""
        self._faults.append((first, error, status))
        self._end = min(self._end, first)
        for other, at in enumerate(self._at):
            if at > first:
                self.statuses[other][STOP] = 1

    def stop(self) -> None:
        """Start no more blocks, and end the running ones."""
        with self._lock:
            self._end = 0
            for status in self.statuses:
                status[STOP] = 1

    def wait(self) -> None:
        """Wait until every worker is done. Ctrl-C stops them and waits; a second Ctrl-C does not wait."""
        try:
            while not self._done.acquire(timeout=POLL):
                pass
        except BaseException:
            self.stop()
            while not self._done.acquire(timeout=POLL):
                pass
            raise

    def finish(self) -> None:
        """Raise the Fault of the lowest block, if there is one."""
        real = [
            fault for fault in self._faults if not (isinstance(fault[1], Stopped) and fault[2][CODE] == 0)
        ]  # a worker that was stopped from outside has no error of its own
        if real:
            _, cause, status = min(real, key=lambda fault: fault[0])
            raise Fault(cause, status)


class Worker:
    """A daemon thread that runs one task after another."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._serve, name="groundup-emulator", daemon=True).start()

    def _serve(self) -> None:
        while True:
            task = self.tasks.get()
            task()
            del task  # it would keep the arrays of this launch in memory until the next one
            _idle.append(self)


#: Workers without a task. Each launch takes workers from here and starts new ones if there are too few, so that several
#: threads can launch at the same time. list.append and list.pop are atomic.
_idle: list[Worker] = []


def _give(task: Callable[[], None]) -> None:
    try:
        worker = _idle.pop()
    except IndexError:
        worker = Worker()
    worker.tasks.put(task)


def run_on_workers(run: Run, blocks: int, chunk: int, workers: int) -> list[np.ndarray]:
    """Run all blocks on `workers` threads and wait. Returns their status arrays; raises Fault or KeyboardInterrupt."""
    job = Job(run, blocks, chunk, workers)
    for worker in range(workers):
        _give(lambda worker=worker: job.work(worker))  # type: ignore[misc]
    job.wait()
    job.finish()
    return job.statuses


def interruptible(run: Callable[[], None], status: np.ndarray) -> None:
    """Call `run` on a worker and wait. Raises its exception; Ctrl-C ends it through the status array."""

    def work(first: int, end: int, unused: np.ndarray) -> None:
        run()

    job = Job(work, 1, 1, 1)
    job.statuses[0] = status
    _give(lambda: job.work(0))
    job.wait()
    for _, cause, _ in job._faults:
        raise cause


if hasattr(os, "register_at_fork"):
    # The threads of the parent do not exist in the child.
    os.register_at_fork(after_in_child=_idle.clear)
