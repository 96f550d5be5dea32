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
from groundup.course.checks.check import Tally
from groundup.course.grading.calling.kernel_launches import Launch, of_the_project
from groundup.course.grading.calling.kernel_memory import traced
from groundup.course.grading.calling.shared_work import touched


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


def no_plain_writes_of_several_blocks(
    kernel: Any, launch: Launch, place: int, arguments: Callable[[], Sequence[Any]], cause: str
) -> Callable[[Tally], None]:
    """No element of the argument at that place is written by several blocks, but by atomic operations.

    The lens does not judge a race between blocks in a kernel with a fence, which may order them.
    """

    def check(tally: Tally) -> None:
        those = touched(traced(kernel, launch, *arguments()), place, "store")
        writers = np.unique(np.stack([those.block, those.element]), axis=1)[1]
        shared = np.unique(writers, return_counts=True)[1].max(initial=0) > 1
        tally.holds(
            not shared, f"an element of {those.name} is written by several blocks, not by an atomic", cause=cause
        )

    return check
