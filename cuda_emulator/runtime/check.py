"""Check mode: look at the accesses of a launch, then run it in several orders of threads and blocks, and compare.

A device runs threads and blocks in any order. A detector (hooks.py), if there is one, finds the accesses of two threads
that nothing orders, in the whole launch or in a sample of its blocks. Then the launch runs in four orders from the same
memory, with other values in fresh memory each time: in shared and local memory, and in global memory that nobody has
written (unwritten.py). Shuffles get other values, too, from lanes that take no part. A result that differs has one of
four causes:

    the values of fresh memory    the kernel reads what nobody has written: refused
    the values of absent lanes    a shuffle reads from a lane that takes no part: refused
    a race                        refused
    the order of atomics          a place taken from a counter, a sum of floats: what a correct kernel may do
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..errors import KernelError
from ..helpers.status import ABSENT, CODE, NEGATIVE_INDEX, ONLY, POISON, READ_SITE, SHIFT
from ..hooks import Detection, progress
from ..intrinsics import SHUFFLES
from ..poison import POISONS
from . import check_report
from .chance import left_to_chance
from .check_messages import (
    Difference,
    depends_on_order,
    differences,
    different,
    first_difference,
    noted,
    race_error,
    unwritten_error,
)
from .launch import Ready, explained, warn
from .limits import Extent
from .unwritten import Unwritten, forget
from .workers import Fault, run_on_workers

Arrays = list[tuple[str, np.ndarray]]

__all__ = ["CheckedLaunch", "check_launch", "different", "orders"]


@dataclass
class CheckedLaunch:
    """A launch in check mode.

    function: the Python function of the kernel, for messages; ready: compiled with Variant(check=True)
    arguments: the values of arguments.Arguments; names: the kernel's parameters
    wrapping: compiles the kernel so that reads with a negative index wrap; None if that is not wanted
    """

    function: Callable[..., Any]
    ready: Ready
    arguments: list[Any]
    names: Sequence[str]
    grid: Extent
    block: Extent
    dynamic_bytes: int = 0
    seed: int = 0
    arrays: Arrays = field(init=False)
    before: list[np.ndarray] = field(init=False)
    unwritten: Unwritten = field(init=False)
    wrapping: Callable[[], Ready] | None = None

    def __post_init__(self) -> None:
        self.arrays = list(_arrays(self.arguments, self.names))
        self.before = [array.copy(order="K") for _, array in self.arrays]
        self.unwritten = Unwritten(self.arrays)

    def restore(self, values: Sequence[np.ndarray]) -> None:
        """Copy values into the arrays."""
        for (_, array), value in zip(self.arrays, values, strict=True):
            if array.flags.writeable:
                np.copyto(array, value)

    def run(
        self,
        poison: int,
        threads: np.ndarray,
        blocks: np.ndarray,
        fresh: Sequence[str] = (),
        absent: int | None = None,
        only: int | None = None,
        shift: int = 0,
    ) -> list[np.ndarray]:
        """Run the launch from the arrays' first values, in one order. Raises Fault.

        Returns the statuses: one, or one for each time that the blocks went on from a barrier across the grid.

        poison: the values of fresh shared and local memory; fresh: the arguments whose unwritten elements get them, too
        absent: the values of lanes that take no part in a shuffle; None: the same
        only: the site of the shuffle that gives these; the others give those of `poison`. None: all do
        shift: how far off negative indices read, of a kernel that is compiled so
        """
        self.restore(self.before)
        self.unwritten.fill(poison, fresh)
        compiled = self.ready.compiled
        everything = (*self.arguments, *compiled.constants, self.grid, self.block)
        together = compiled.together(self.grid, self.block, self.dynamic_bytes)
        last = () if together is None else together.arguments

        def work(first: int, end: int, status: np.ndarray) -> None:
            status[POISON], status[ABSENT] = poison, poison if absent is None else absent
            # 0 stands for every shuffle, so sites count from 1 here.
            status[ONLY] = 0 if only is None else only + 1
            status[SHIFT] = shift
            compiled.run(*everything, first, end, self.dynamic_bytes, status, threads, blocks, *last)

        statuses = run_on_workers(work, len(blocks), len(blocks), 1)
        while together is not None and together.go_on():
            blocks = next_order(blocks)
            statuses += run_on_workers(work, len(blocks), len(blocks), 1)
        self.unwritten.settle()
        return statuses

    def results(self) -> list[np.ndarray]:
        """Copies of the arrays."""
        return [array.copy(order="K") for _, array in self.arrays]


def orders(threads: int, blocks: int, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(name, order of the threads of a block, order of the blocks): int64 permutations; the first is 0, 1, 2, ..."""
    for name, step in (("forward", 1), ("in reverse", -1)):
        yield name, np.arange(threads)[::step].copy(), np.arange(blocks)[::step].copy()
    for number in (seed, seed + 1):
        random = np.random.default_rng(number)
        yield f"shuffled with seed {number}", random.permutation(threads), random.permutation(blocks)


def next_order(blocks: np.ndarray) -> np.ndarray:
    """The order of the blocks behind a barrier across the grid: the same if it is forward or in reverse, else
    another."""
    step = np.diff(blocks)
    # A device may order the blocks anew behind each barrier. A permutation applied to itself is another one that needs
    # no seed of its own.
    return blocks if (step == 1).all() or (step == -1).all() else blocks[blocks]


def check_launch(launch: CheckedLaunch, look: Callable[[bool], Detection | None] | None = None) -> None:
    """Check a launch. At the end the arrays hold the results of the forward order.

    look: runs the detector on the launch; it may return None for a launch like earlier ones, unless its argument is
        True
    Raises KernelError for an error in any order, for a race, and for results that differ without a good reason.
    """
    try:
        _check(launch, look)
    except BaseException:
        forget(launch.arguments)
        raise
    launch.unwritten.note()


def _check(launch: CheckedLaunch, look: Callable[[bool], Detection | None] | None) -> None:
    name, grid, block = launch.ready.name, launch.grid, launch.block
    check_report.of(name).launches += 1
    activity, parts = f"checking {name}, launch {check_report.of(name).launches}", 1 + len(POISONS)
    progress(activity, 0, parts)  # the detector, then the orders
    detection = look(False) if look is not None else None
    threads, blocks = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
    if launch.ready.compiled.waits:  # a thread waits for an earlier one, and in other orders for ever
        check_report.remark(name, "has a loop that waits for other threads, and was run in one order only")
    forward: list[np.ndarray] = []
    by_chance: set[str] = set()
    for number, ((order, thread_order, block_order), poison) in enumerate(
        zip(orders(threads, blocks, launch.seed), POISONS, strict=True), start=1
    ):
        progress(activity, number, parts)
        if launch.ready.compiled.waits and forward:
            order, thread_order, block_order = next(orders(threads, blocks, launch.seed))
        try:
            # Only the first run prints: the program called the kernel once.
            with contextlib.redirect_stdout(io.StringIO()) if forward else contextlib.nullcontext():
                # The first run's results are what the program gets, so its unwritten memory stays as it was found.
                fresh = launch.unwritten.names if forward else ()
                statuses = launch.run(poison, thread_order, block_order, fresh)
        except Fault as fault:
            error = explained(launch.ready, fault, grid, block)
            may_wrap = fault.status[CODE] == NEGATIVE_INDEX and not forward and isinstance(error, KernelError)
            if may_wrap and _wraps_without_effect(launch, cast(KernelError, error)):
                check_report.of(name).launches -= 1  # the check begins anew, with the kernel that wraps
                return _check(launch, _looked_already(look, detection))
            if forward:
                error.add_note(f"It happened with threads and blocks {order}; forward, the launch went well.")
            raise noted(error, detection) from error.__cause__
        if not forward:
            forward = launch.results()
            for status in statuses:
                warn(launch.ready.compiled.notes(status))
            if detection is not None and detection.races:
                raise race_error(detection, name)
        elif {difference.array for difference in differences(launch.arrays, forward)} - by_chance:
            detection, more = _judged(launch, detection, look, forward, (order, poison))
            by_chance |= more
    for read in detection.unwritten if detection is not None else ():
        if read.space == "global" and detection is not None and detection.blocks < detection.grid_blocks:
            continue  # a block that was not looked at may have written it
        check_report.remark(name, f"reads what nobody has written, which changes no result: {read.sentence}")
    launch.restore(forward)
    progress("")


def _looked_already(
    look: Callable[[bool], Detection | None] | None, found: Detection | None
) -> Callable[[bool], Detection | None]:
    return lambda now: look(True) if now and look is not None else found


def _wraps_without_effect(launch: CheckedLaunch, error: KernelError) -> bool:
    """Whether what is read with a negative index changes no result. Then a remark says so, and the launch goes on with
    a kernel whose reads wrap, as Numba defines it."""
    if launch.wrapping is None:
        return False
    strict, wrapping, launch.wrapping = launch.ready, launch.wrapping, None
    launch.ready = wrapping()
    _, threads, blocks = next(orders(int(np.prod(launch.block)), int(np.prod(launch.grid)), launch.seed))
    results: list[list[np.ndarray]] = []
    for shift in (0, 1, 2):
        try:
            launch.run(POISONS[0], threads, blocks, shift=shift)
        except Fault:  # another mistake, which the strict kernel comes to, too, once this one is mended
            break
        results.append(launch.results())
    alike = len(results) == 3 and all(first_difference(launch.arrays, other) is None for other in results)
    if not alike:
        launch.ready = strict
        return False
    sentence = error.sentence.partition(". A computed")[0]
    check_report.remark(launch.ready.name, f"line {error.line}: {sentence}; what it reads there changes no result")
    return True


def _judged(
    launch: CheckedLaunch,
    detection: Detection | None,
    look: Callable[[bool], Detection | None] | None,
    forward: list[np.ndarray],
    at: tuple[str, int],
) -> tuple[Detection | None, set[str]]:
    """Find out why the arrays differ from the results of the forward order. Raises KernelError unless atomics may.

    at: the name of the order that gave them, and the poison in that run
    Returns what the detector has found by now, and the names of the arrays that differ.
    """
    order, poison = at
    differing = list(differences(launch.arrays, forward))
    _, threads, blocks = next(orders(int(np.prod(launch.block)), int(np.prod(launch.grid)), launch.seed))
    # Absent lanes first: the run below changes what they give, too, and would blame unwritten memory for it.
    absent = _absent_lane(launch, poison, threads, blocks, forward)
    if absent is not None:
        raise noted(absent, detection)
    launch.run(poison, threads, blocks, launch.unwritten.names)
    poisoned = first_difference([(name, array.copy(order="K")) for name, array in launch.arrays], forward)
    if poisoned is not None:
        unwritten = _unwritten_argument(launch, poison, threads, blocks, forward) if launch.unwritten.names else ""
        if detection is None and look is not None:
            launch.restore(launch.before)
            detection = look(True)
        raise unwritten_error(poisoned, detection, launch.function, unwritten)
    if detection is None and look is not None:
        launch.restore(launch.before)
        detection = look(True)
        if detection is not None and detection.races:
            raise race_error(detection, launch.ready.name)
    whole = detection is not None and detection.complete
    for difference in differing:
        if detection is None or not _is_left_to_chance(launch, difference):
            raise noted(depends_on_order(difference, order, launch.function), detection)
    why = (
        "but no two threads race: it is left to chance, as the places that an atomic counter gives"
        if whole
        else "which its atomics can explain: the blocks that were looked at have no race"
    )
    check_report.remark(launch.ready.name, f"{differing[0].text(order)}, {why}")
    return detection, {difference.array for difference in differing}


def _is_left_to_chance(launch: CheckedLaunch, difference: Difference) -> bool:
    """Whether atomics may change the array with this difference, by any of its names."""
    arrays = dict(launch.arrays)
    names = {name.partition("[")[0] for name in arrays if np.may_share_memory(arrays[name], arrays[difference.array])}
    return not names.isdisjoint(left_to_chance(launch.ready.compiled.source, difference.dtype))


def _absent_lane(
    launch: CheckedLaunch, poison: int, threads: np.ndarray, blocks: np.ndarray, forward: list[np.ndarray]
) -> KernelError | None:
    """The error for the first shuffle whose reads from absent lanes change the results; None if there is none."""
    compiled = launch.ready.compiled
    for site, (_, _, what) in enumerate(compiled.places):
        if what.removeprefix("cuda.") in SHUFFLES:
            # Everything but this one shuffle is as in the forward run, so a difference is due to it alone.
            statuses = launch.run(POISONS[0], threads, blocks, absent=poison, only=site)
            difference = first_difference(launch.arrays, forward)
            if difference is not None:
                read = next(status for status in statuses if status[READ_SITE])
                return compiled.absent_lane(read, launch.grid, launch.block, difference.with_other_values())
    return None


def _unwritten_argument(
    launch: CheckedLaunch, poison: int, threads: np.ndarray, blocks: np.ndarray, forward: list[np.ndarray]
) -> str:
    """The argument whose unwritten elements the results depend on; "" if they depend on shared or local memory."""
    names = launch.unwritten.names
    # () is fresh shared and local memory alone. The last name needs no run: all together made a difference.
    for fresh in ((), *((name,) for name in names[:-1])):
        launch.run(poison, threads, blocks, fresh)
        if first_difference(launch.arrays, forward) is not None:
            return "".join(fresh)
    return names[-1]


def _arrays(values: Sequence[Any], names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array) of each array among the arguments; the name is `a[1]` for one in a tuple."""
    for value, name in zip(values, names, strict=True):
        if isinstance(value, np.ndarray):
            yield name, value
        elif isinstance(value, tuple):
            yield from _arrays(value, [f"{name}[{place}]" for place in range(len(value))])
