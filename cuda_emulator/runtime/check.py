"""Check mode: run a launch in several orders of threads and blocks, from the same memory, and compare the results.

A device runs threads and blocks in any order. A kernel without a race gives the same result in every order; a kernel
with a missing barrier or atomic gives another result in some of them. Only results are compared: a race that does not
change the result is not found, and a correct kernel that takes positions from an atomic counter is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import KernelError
from .launch import Ready, explained, warn
from .limits import Extent
from .places import definition_error
from .workers import Fault, run_on_workers

ROUNDING = 1024
"""Units in the last place that a float may differ by: the order of threads changes the rounding of sums by atomics."""

ROUNDING_OF_LARGEST = 64
"""The same for the largest value of the array: a small value may be the difference of two large sums."""


def orders(threads: int, blocks: int, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(name, order of the threads of a block, order of the blocks): int64 permutations; the first is 0, 1, 2, ..."""
    for name, step in (("forward", 1), ("in reverse", -1)):
        yield name, np.arange(threads)[::step].copy(), np.arange(blocks)[::step].copy()
    for number in (seed, seed + 1):
        random = np.random.default_rng(number)
        yield f"shuffled with seed {number}", random.permutation(threads), random.permutation(blocks)


def check_launch(
    function: Callable[..., Any],
    ready: Ready,
    arguments: list[Any],
    names: Sequence[str],
    grid: Extent,
    block: Extent,
    dynamic_bytes: int,
    seed: int,
) -> None:
    """Run the launch in every order and compare the results. At the end the arrays hold those of the forward order.

    function: the Python function of the kernel, for messages; ready: compiled with Variant(check=True)
    arguments: the values of arguments.Arguments; names: the kernel's parameters
    Raises KernelError for an error in any order, and for results that differ.
    """
    compiled = ready.compiled
    arrays = list(_arrays(arguments, names))
    before = [array.copy(order="K") for _, array in arrays]
    forward: list[np.ndarray] = []
    blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    for name, thread_order, block_order in orders(threads, blocks, seed):
        for (_, array), saved in zip(arrays, before, strict=True):
            if array.flags.writeable:
                np.copyto(array, saved)

        def run(first: int, end: int, status: np.ndarray, order: tuple[Any, Any] = (thread_order, block_order)) -> None:
            compiled.run(*arguments, *compiled.constants, grid, block, first, end, dynamic_bytes, status, *order)

        try:
            statuses = run_on_workers(run, blocks, blocks, 1)
        except Fault as fault:
            error = explained(ready, fault, grid, block)
            if forward:
                error.add_note(f"It happened with threads and blocks {name}; forward, the launch went well.")
            raise error from error.__cause__
        if not forward:
            forward = [array.copy(order="K") for _, array in arrays]
            for status in statuses:
                warn(compiled.notes(status))
            continue
        for (argument, array), expected in zip(arrays, forward, strict=True):
            _compare(argument, expected, array, name, function)
    for (_, array), result in zip(arrays, forward, strict=True):
        if array.flags.writeable:
            np.copyto(array, result)


def _arrays(values: Sequence[Any], names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array) of each array among the arguments; the name is `a[1]` for one in a tuple."""
    for value, name in zip(values, names, strict=True):
        if isinstance(value, np.ndarray):
            yield name, value
        elif isinstance(value, tuple):
            yield from _arrays(value, [f"{name}[{place}]" for place in range(len(value))])


def _compare(name: str, forward: np.ndarray, other: np.ndarray, order: str, function: Callable[..., Any]) -> None:
    if forward.dtype.names:
        for field in forward.dtype.names:
            _compare(f"{name}.{field}", forward[field], other[field], order, function)
        return
    differs = different(forward, other)
    if differs.any():
        raise _race(name, forward, other, differs, order, function)


def different(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A bool array: where two results differ by more than the rounding of sums in another order.

    Integers must be equal. Two NaNs count as equal.
    """
    if a.dtype.kind not in "fc":
        return np.asarray(a != b)
    unit = np.finfo(a.dtype).eps
    with np.errstate(invalid="ignore", over="ignore"):
        magnitude = np.abs(a)
        largest = magnitude[np.isfinite(magnitude)].max(initial=0.0)
        near = np.abs(a - b) <= unit * (ROUNDING * magnitude + ROUNDING_OF_LARGEST * largest)
    # Infinity minus infinity is NaN, and an infinite tolerance would accept every number.
    near &= np.isfinite(a) & np.isfinite(b)
    return np.asarray(~(near | (a == b) | (np.isnan(a) & np.isnan(b))))


def _race(
    name: str, forward: np.ndarray, other: np.ndarray, differs: np.ndarray, order: str, function: Callable[..., Any]
) -> KernelError:
    index = tuple(int(i) for i in np.argwhere(differs)[0])
    place = f"{name}[{', '.join(map(str, index))}]" if index else name
    count = int(differs.sum())
    more = f" ({count} elements differ)" if count > 1 else ""
    return definition_error(
        f"the result depends on the order in which threads run: {place} is {forward[index].item()!r} with threads and "
        f"blocks in order, and {other[index].item()!r} with them {order}{more}. A device may run them in any order, so "
        "this is a race: put a cuda.syncthreads() between writing and reading shared memory, let each element be "
        "written by one thread, or use cuda.atomic. A kernel that takes places from an atomic counter has no fixed "
        "order: sort its result before comparing it, and leave check mode off for it",
        function,
    )
