"""Week 24: what the host sends while the device computes, and what a replayed step leaves for the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundup.course.checks.check import Check
from groundup.course.checks.exercise import Exercise
from groundup.course.checks.exercise_checks import checks_of
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import (
    Both,
    Launch,
    as_float,
    backend,
    last_launch,
    launched,
    module,
    random,
)
from groundup.course.grading.calling.kernel_memory import coalesced, profiled, watched
from groundup.course.grading.calling.launched_again import kernel_checks
from groundup.course.grading.calling.shared_work import Work
from groundup.course.grading.problems.streams import epochs, expected, in_order, orders_of, unsent


def _orders(function: str, hand: list[Any], mistakes: list[Mistake]) -> list[Check]:
    """The checks of 24.4 and 24.5: a method of Orders."""
    return checks_of(
        Exercise(
            call=epochs,
            reference=expected,
            show=lambda orders, streams, ahead: (
                f"{function} in {len(orders)} epochs of {orders.shape[1]} samples, "
                f"{'two streams' if streams else 'no stream'}, {'sent ahead' if ahead else 'sent at their beginning'}"
            ),
            hand=[((np.array(orders), True, ahead), expected(np.array(orders), True, ahead)) for orders, ahead in hand],
            arguments=orders_of,
            typical=(3, 7, True, True),
            sizes=[(1, 1, True, False), (2, 5, False, True), (4, 33, True, False), (3, 6, False, False)],
            mistakes=[
                Mistake(
                    "the kernels read an array into which nothing was copied: an order goes to 1 - self.current, and "
                    "where its epoch begins, that becomes self.current",
                    lambda orders, streams, ahead: unsent(orders.shape[1]),
                    "epoch 1",
                ),
                *mistakes,
            ],
            memory=in_order(function),
        )
    )


def prefetch() -> list[Check]:
    """24.4: the next order is sent while kernels read this one."""

    def next_one(number: int) -> Callable[..., Any]:
        return lambda orders, streams, ahead: orders[number] if ahead and number < len(orders) else None

    overwrites = (
        "the next order goes into the array that this epoch's kernels still read: take that of 1 - self.current"
    )
    stays = "the kernels read the order before: was the new one put into self._pinned, and copied from there?"
    return _orders(
        "prefetch",
        [([[2, 0, 1], [1, 2, 0], [0, 1, 2]], True)],
        [
            *(Mistake(overwrites, next_one(number), f"epoch {number}, last steps") for number in (1, 2, 3)),
            *(
                Mistake(
                    stays,
                    lambda orders, streams, ahead, number=number: orders[number - 2] if number <= len(orders) else None,
                    f"epoch {number}",
                )
                for number in (2, 3)
            ),
        ],
    )


def begin() -> list[Check]:
    """24.5: an epoch begins when its order is there."""
    swap = "the kernels read the order of the epoch before: self.current becomes 1 - self.current"
    return _orders(
        "begin",
        [([[2, 0, 1], [1, 2, 0], [0, 1, 2]], True), ([[1, 0, 2], [1, 0, 2], [2, 1, 0]], False)],
        [
            Mistake(
                "an order that was sent ahead is in use once, and then nothing is sent ahead: self._ahead = None",
                lambda orders, streams, ahead: (
                    unsent(orders.shape[1])
                    if not ahead and len(orders) > 1 and np.array_equal(orders[0], orders[1])
                    else None
                ),
                "epoch 2",
            ),
            *(
                Mistake(
                    "another order was sent ahead than the one that begins: where self._ahead is not this one, send it",
                    lambda orders, streams, ahead, number=number: (
                        orders[-1][::-1] if ahead and number == len(orders) else None
                    ),
                    f"epoch {number}",
                )
                for number in (1, 2, 3, 4)
            ),
            *(
                Mistake(
                    swap,
                    lambda orders, streams, ahead, number=number: orders[number - 2] if number <= len(orders) else None,
                    f"epoch {number}",
                )
                for number in (2, 3)
            ),
        ],
    )


PLACE, TAKEN, SLOT = 0, 1, 2
"""What the counters hold: the batch's position, the steps taken, and the line of the losses. kernels/fused.py"""


def end_kept_step() -> list[Check]:
    """24.6: what a replayed step leaves for the next one."""
    kernel, fused = module("kernels.resident").end_kept_step, module("kernels.fused")
    assert (fused.POSITION, fused.STEP, fused.SLOT) == (PLACE, TAKEN, SLOT)

    def call(losses: np.ndarray, kept: np.ndarray, counters: np.ndarray, launch: Launch) -> dict[str, Any]:
        results = launched(kernel, launch, losses, Both(kept), Both(counters))
        return dict(zip(("row_losses", "counters"), results, strict=True))

    def result(losses: np.ndarray, kept: np.ndarray, counters: np.ndarray, line: int) -> dict[str, Any]:
        row_losses, after = kept.astype(np.float64), counters + np.array([losses.size, 1, 1])
        row_losses[line, : losses.size] = losses
        return {"row_losses": row_losses, "counters": after}

    def arguments(rng: np.random.Generator, size: tuple[int, int, int, int, int]) -> tuple[Any, ...]:
        rows, most, lines, line, threads = size
        counters = np.array([rng.integers(0, 90), rng.integers(0, 90), line], np.int64)
        return random(rng, rows), random(rng, lines, most), counters, Launch(1, threads)

    def counted(text: str, *added: Any) -> Mistake:
        return Mistake(
            text,
            lambda losses, kept, counters, launch: (
                counters + np.array([each(losses, launch) if callable(each) else each for each in added])
            ),
            "counters",
        )

    def lines(text: str, change: Callable[..., Any]) -> Mistake:
        return Mistake(
            text,
            lambda losses, kept, counters, launch: change(
                losses, kept, int(counters[SLOT]), int(np.prod(launch.block))
            ),
            "row_losses",
        )

    def first_lap(losses: np.ndarray, kept: np.ndarray, line: int, threads: int) -> Any:
        after = kept.astype(np.float64)
        after[line, : min(threads, losses.size)] = losses[:threads]
        return after

    def other_line(change: int) -> Callable[..., Any]:
        def wrong(losses: np.ndarray, kept: np.ndarray, line: int, threads: int) -> Any:
            row = (line + change) * (change != 0)
            after = kept.astype(np.float64)
            if row >= len(after):
                return None
            after[row, : losses.size] = losses
            return after

        return wrong

    def added(losses: np.ndarray, kept: np.ndarray, line: int, threads: int) -> Any:
        after = kept.astype(np.float64)
        after[line, : losses.size] += losses
        return after

    def rows(losses: np.ndarray, launch: Launch) -> int:
        return int(losses.size)

    def threads_of(losses: np.ndarray, launch: Launch) -> int:
        return int(np.prod(launch.block))

    def raced(*arguments: Any) -> Any:
        """The losses of the last launch, if its threads race."""
        if backend() != "emulator" or not last_launch:
            return None
        traced_kernel, launch, given, results = last_launch
        return results[0] if profiled(traced_kernel, launch, *given).races else None

    def times_threads(count: Callable[..., int]) -> Callable[..., int]:
        return lambda losses, launch: count(losses, launch) * threads_of(losses, launch)

    barrier = (
        "thread 0 moves the counters on while others still read the slot: all have to read it first, and "
        "cuda.syncthreads() lies between"
    )
    kept = as_float([[0.5, 0.5, 0.5], [7, 7, 7], [8, 8, 8]])
    return kernel_checks(
        Exercise(
            call=call,
            reference=lambda losses, kept, counters, launch: result(losses, kept, counters, int(counters[SLOT])),
            show=lambda losses, kept, counters, launch: (
                f"end_kept_step{launch} of {losses.size} losses, counters {counters.tolist()}"
            ),
            hand=[
                (
                    (as_float([1, 2, 3]), kept, np.array([6, 40, 1], np.int64), Launch(1, 4)),
                    {"row_losses": [[0.5, 0.5, 0.5], [1, 2, 3], [8, 8, 8]], "counters": [9, 41, 2]},
                ),
                (
                    (as_float([4, 5]), kept, np.array([0, 0, 0], np.int64), Launch(1, 2)),
                    {"row_losses": [[4, 5, 0.5], [7, 7, 7], [8, 8, 8]], "counters": [2, 1, 1]},
                ),
            ],
            arguments=arguments,
            typical=(7, 9, 4, 2, 4),
            sizes=[(1, 1, 1, 0, 1), (33, 40, 3, 1, 8), (5, 5, 2, 1, 32), (64, 64, 2, 0, 16), (13, 16, 5, 4, 1)],
            dtype="float32",
            mistakes=[
                lines("every step's losses go into line 0: the line is counters[SLOT]", other_line(0)),
                lines("the losses go into the next step's line: read the slot before it is moved on", other_line(1)),
                lines("added to what an earlier epoch left in this line: row_losses[slot, …] = losses[…]", added),
                lines(
                    "only the first losses are kept: where there are more rows than threads, a thread goes on by "
                    "cuda.blockDim.x",
                    first_lap,
                ),
                counted("the next batch begins as many places further as this one has rows, not 1", 1, 1, 1),
                counted("the position is not moved on", 0, 1, 1),
                counted("the slot is not moved on: the next step would write into the same line", rows, 1, 0),
                counted("the step is not moved on", rows, 0, 1),
                counted("the next batch begins after the rows, not after the threads", threads_of, 1, 1),
                counted(
                    "every thread moves the counters on: one does, threadIdx.x == 0",
                    times_threads(rows),
                    threads_of,
                    threads_of,
                ),
                Mistake(barrier, raced, "row_losses", seen=True),
            ],
            memory=watched(
                kernel,
                Launch(1, 64),
                lambda rng: (random(rng, 128), Both(random(rng, 3, 128)), Both(np.array([3, 4, 1], np.int64))),
                coalesced(cause="neighbouring threads keep neighbouring losses: row starts as cuda.threadIdx.x"),
                race=barrier,
                work=[Work(1, 2)],
            ),
        )
    )


GRADES: dict[str, Callable[[], list[Check]]] = {
    "24.4": prefetch,
    "24.5": begin,
    "24.6": end_kept_step,
}
