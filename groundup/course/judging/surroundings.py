"""The environment of the processes that grade."""

from __future__ import annotations

import os

from shared.machine import processes

BACKEND = "GROUNDUP_CUDA"
"""Where stage 4 runs its kernels, if it is set (stage4_numba_cuda/backend.py)."""


def variables(checkpoint: bool = False) -> dict[str, str]:
    """The environment of a process that grades an exercise, or the checkpoint of a phase.

    An exercise's kernels run on the emulator, also where there is a GPU: only the emulator sees races, numbers that are
    read before they are written, and an index outside an array. On a GPU a kernel with such a mistake often gives right
    numbers. A checkpoint trains with functions that have passed, and takes the GPU. If BACKEND is set, it decides both.
    """
    found = processes.finding_our_packages(os.environ)
    return found if checkpoint or found.get(BACKEND) else found | {BACKEND: "emulator"}
