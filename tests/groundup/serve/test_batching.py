"""Requests that wait are computed together: within the budget, up to a full batch, and in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from groundup.serve.batching import Batches


def computing(
    scenario: Callable[[Batches], Any], most: int = 8, budget: float = 0.05, compute: Callable[..., Any] = np.negative
) -> tuple[Any, list[int]]:
    """What a scenario returns, and the images of each batch."""
    sizes: list[int] = []
    with ThreadPoolExecutor(1) as worker:
        return asyncio.run(scenario(Batches(compute, worker, most, budget, sizes.append))), sizes


def rows(number: int, count: int = 1) -> np.ndarray:
    return np.full((count, 3), number, np.float32)


def test_who_comes_within_the_budget_is_computed_with_the_first_and_gets_its_own_rows() -> None:
    async def scenario(batches: Batches) -> Any:
        return await asyncio.gather(*(batches.logits(rows(n, 1 + n % 2)) for n in range(4)))

    answers, sizes = computing(scenario)
    assert sizes == [6]
    for number, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, -rows(number, 1 + number % 2))


def test_a_full_batch_waits_for_nobody_and_no_batch_is_larger() -> None:
    async def scenario(batches: Batches) -> float:
        began = time.monotonic()
        await asyncio.gather(*(batches.logits(rows(n, 3)) for n in range(5)))
        return time.monotonic() - began

    seconds, sizes = computing(scenario, most=3, budget=600.0)
    assert sizes == [3] * 5
    assert seconds < 300


def test_who_comes_while_a_batch_is_computed_is_in_the_next_one_and_the_loop_goes_on() -> None:
    begun, go_on, threads = threading.Event(), threading.Event(), set()

    def slow(pixels: np.ndarray) -> np.ndarray:
        threads.add(threading.current_thread())
        begun.set()
        assert go_on.wait(100)
        return pixels

    async def scenario(batches: Batches) -> None:
        first = asyncio.create_task(batches.logits(rows(0)))
        assert await asyncio.to_thread(begun.wait, 100)
        others = [asyncio.create_task(batches.logits(rows(n))) for n in range(3)]
        await asyncio.sleep(0.01)  # the loop is free: the batch is computed elsewhere
        assert not first.done()
        go_on.set()
        await asyncio.gather(first, *others)

    assert computing(scenario, budget=0.001, compute=slow)[1] == [1, 3]
    assert threading.current_thread() not in threads


def test_an_error_reaches_everybody_in_its_batch_and_nobody_else() -> None:
    def fails_once(pixels: np.ndarray) -> np.ndarray:
        if pixels.min() == 0:
            raise ValueError("broken")
        return pixels

    async def scenario(batches: Batches) -> Any:
        first = await asyncio.gather(batches.logits(rows(0)), batches.logits(rows(1)), return_exceptions=True)
        return [*first, await batches.logits(rows(2))]

    (one, other, third), sizes = computing(scenario, compute=fails_once)
    assert sizes == [2, 1]
    assert [str(each) for each in (one, other)] == ["the batch could not be computed: ValueError('broken')"] * 2
    np.testing.assert_array_equal(third, rows(2))


def test_who_has_given_up_is_not_computed() -> None:
    async def scenario(batches: Batches) -> Any:
        given_up = asyncio.create_task(batches.logits(rows(1)))
        other = asyncio.create_task(batches.logits(rows(2)))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        return await other

    answer, sizes = computing(scenario)
    assert sizes == [1]
    np.testing.assert_array_equal(answer, -rows(2))


def test_who_waits_when_the_worker_is_shut_down_gets_an_error() -> None:
    begun, may_end = threading.Event(), threading.Event()

    async def scenario() -> list[Any]:
        with ThreadPoolExecutor(1) as worker:
            worker.submit(lambda: (begun.set(), may_end.wait()))
            begun.wait()
            answer = asyncio.ensure_future(Batches(np.negative, worker, 1, 0, int).logits(rows(1)))
            await asyncio.sleep(0)
            worker.shutdown(wait=False, cancel_futures=True)
            may_end.set()
            return await asyncio.gather(answer, return_exceptions=True)

    (error,) = asyncio.run(scenario())
    assert str(error) == "the batch could not be computed: CancelledError()"
