"""Threads that have left a kernel when the others of their warp or block meet.

    left_early         for an Exercise: recognises wrong numbers that come from threads which returned too early
    no_early_return    a check that refuses a `return` above a barrier although the numbers are right

A guard with `return` is right in most kernels. Above a shuffle or a barrier it is a mistake: the lanes and threads that
have left bring no value, and write nothing into shared memory. What they should have brought is undefined on a device,
and NaN on the emulator. So the numbers alone do not tell this cause from an output that was never written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from cuda_emulator import KernelError
from cuda_emulator.inspection import BARRIERS, SHUFFLES, WARP, Thread, members, step
from groundup.course.checks.check import Tally
from groundup.course.checks.mistakes import Mistake
from groundup.course.grading.calling.kernel_launches import Launch, backend, filled, last_launch

LANES_LEFT = (
    "lanes have left before the shuffle: a guard with `return` ends them, and what is read from such a lane is "
    "undefined. All 32 have to reach it: let lanes without a column bring a value that changes nothing"
)

NO_EARLY_RETURN = (
    "a guard before the barrier returns early: threads beyond the edge have left when the others wait for all of their "
    "block. Let them go along with a zero, and guard the last write"
)


def left_early(output: str = "", place: int = 0) -> list[Mistake]:
    """Known mistakes that come from a `return` above a shuffle or a barrier. The launch that gave the wrong numbers is
    run once more, line by line, to see who was there.

    output, place: the name of the result, and its place among those that the launch returns
    """

    def left(text: str) -> Callable[..., Any]:
        def wrong(*arguments: Any) -> Any:
            if backend() != "emulator" or not last_launch:
                return None
            kernel, launch, given, results = last_launch
            return results[place] if text in who_left(kernel, launch, given) else None

        return wrong

    return [Mistake(text, left(text), output, seen=True) for text in (LANES_LEFT, NO_EARLY_RETURN)]


def who_left(kernel: Any, launch: Launch, arguments: Sequence[Any]) -> set[str]:
    """LANES_LEFT if lanes had left before a shuffle whose mask names them, NO_EARLY_RETURN if threads had left before a
    barrier. arguments: as `launched` takes them. Emulator only."""
    reasons: set[str] = set()

    def met(threads: Sequence[Thread], going: Sequence[Thread]) -> None:
        for thread in going:
            name, *call = thread.request or ("",)
            if name in BARRIERS and any(other.left is not None for other in threads):
                reasons.add(NO_EARLY_RETURN)
            if name in SHUFFLES:
                first = thread.linear // WARP * WARP
                named = (
                    other for other in threads[first : first + WARP] if members(tuple(call)) >> other.linear % WARP & 1
                )
                if any(other.left is not None for other in named):
                    reasons.add(LANES_LEFT)

    configured = kernel.configure(launch.grid, launch.block)
    own_arguments = [filled(argument) for argument in arguments]
    with suppress(KernelError):  # it is told elsewhere; what was seen until then is true
        step.run_kernel(kernel.source, own_arguments, configured.griddim, configured.blockdim, 0, met=met)
    return reasons


def no_early_return(kernel: Any, then: Callable[[Tally], None]) -> Callable[[Tally], None]:
    """A check that first refuses a `return` above the kernel's last barrier, which many devices forgive."""

    def check(tally: Tally) -> None:
        if backend() == "emulator":
            nodes = list(ast.walk(kernel.source.tree))
            barriers = [each.lineno for each in nodes if isinstance(each, ast.Attribute) and each.attr == "syncthreads"]
            early = [
                each.lineno for each in nodes if isinstance(each, ast.Return) and each.lineno < max(barriers, default=0)
            ]
            what = "a thread may return before a barrier that the others of its block wait at" if early else ""
            tally.holds(not early, what, cause=NO_EARLY_RETURN, line=early[0] if early else None)
        then(tally)

    return check
