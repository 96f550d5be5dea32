"""The learner's program of a detective exercise with a kernel.

It runs on the emulator, also where there is a GPU: it sees races, reads of what nobody wrote, and addresses.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import cuda_emulator
from cuda_emulator.runtime import tracing
from groundup.course.checks.check import Tally
from groundup.course.grading.calling.kernel_launches import MOST_EVENTS, Launch, of_the_project


def program(name: str) -> Any:
    """The module of a program with kernels, such as "week09_smooth"; its main() does not run."""
    os.environ["GROUNDUP_CUDA"] = "emulator"
    cuda_emulator.install()
    return importlib.import_module(name)


def kernel_of(name: str, kernel: str) -> Any:
    """A kernel of a program. Raises Wrong if it is none."""
    found = getattr(program(name), kernel)
    of_the_project(found)
    return found


def work_is_shared(
    kernel: Any, launch: Launch, place: int, most: int, arguments: Callable[[], Sequence[Any]]
) -> Callable[[Tally], None]:
    """No thread loads more than `most` different numbers of the argument at that place.

    A fault that comes from threads that work together is not mended by one thread, or one block, that does everything.
    """

    def check(tally: Tally) -> None:
        name, read = _accesses(kernel, launch, arguments(), place, "load")
        threads, counts = np.unique(np.unique(read, axis=1)[:2], axis=1, return_counts=True)
        busiest = int(counts.argmax())
        block, thread = threads[:, busiest]
        tally.holds(
            counts.max() <= most,
            f"thread {thread} of block {block} reads {counts.max()} numbers of {name}",
            expected=f"at most {most}, if all threads of {launch} share the work",
            cause="all threads go on working as before; only what goes wrong between them has to change",
        )

    return check


def no_plain_writes_of_several_blocks(
    kernel: Any, launch: Launch, place: int, arguments: Callable[[], Sequence[Any]], cause: str
) -> Callable[[Tally], None]:
    """No element of the argument at that place is written by several blocks, but by atomic operations.

    The lens does not judge a race between blocks in a kernel with a fence, which may order them.
    """

    def check(tally: Tally) -> None:
        name, written = _accesses(kernel, launch, arguments(), place, "store")
        writers = np.unique(written[[0, 2]], axis=1)[1]
        shared = np.unique(writers, return_counts=True)[1].max(initial=0) > 1
        tally.holds(not shared, f"an element of {name} is written by several blocks, not by an atomic", cause=cause)

    return check


def _accesses(kernel: Any, launch: Launch, given: Sequence[Any], place: int, kind: str) -> tuple[str, np.ndarray]:
    """(name of the argument, [block, thread, address] of every access of that kind to it)."""
    blocks = int(np.prod(launch.grid))
    trace = tracing.trace_launch(kernel, launch.grid, launch.block, given, 0, blocks, MOST_EVENTS)
    memory = next(each for each in trace.memories if each.name == trace.arguments[place][0])
    address = trace.events["address"]
    inside = (address >= memory.address) & (address < memory.address + memory.nbytes)
    counted = inside & np.isin(trace.events["site"], [site.number for site in trace.sites if site.kind == kind])
    block = np.repeat(np.arange(len(trace.blocks)), np.diff(trace.bounds))
    return memory.name, np.stack([block[counted], trace.events["thread"][counted], address[counted]])
