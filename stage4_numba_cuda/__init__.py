"""The fourth floor: the same network in CUDA kernels written in Python, on a GPU or, emulated, on the CPU.

Beside the rooms that every floor has:

    kernels/                     what runs on the device
    backend                      GPU, emulator or simulator: chosen once; everything takes `cuda` from here
    launch                       how many blocks of how many threads
    reductions, gather, dropout  sums, mini-batches by index and dropout masks, on the device
    buffers, steps, graphs       the memory of a training step, the step in ever fewer launches, CUDA graphs
    resident                     training with the data set on the device
    optimizer_state              what an optimizer remembers between steps, on the device
    interchange                  the kernels as PyTorch layers
"""

from __future__ import annotations

import os
import sys
from typing import Any

ANNOUNCED = "GROUNDUP_ANNOUNCED"
"""Set once the device has been announced: processes that this one starts need not say it again."""


def prepare() -> None:
    """Choose the device and say once, on stderr, which it is; shared.contract.load_stage calls this before the rooms.

    Raises shared.contract.StageUnavailable where GROUNDUP_CUDA asks for what this machine has not.
    """
    try:
        from .backend import BACKEND  # here and not above: choosing imports numba, and the emulator needs no choice
    except RuntimeError as error:
        from shared.contract import StageUnavailable

        raise StageUnavailable(f"stage4_numba_cuda: {error}", fix=getattr(error, "fix", None)) from error
    if ANNOUNCED not in os.environ:
        os.environ[ANNOUNCED] = BACKEND.name
        print(BACKEND.line(), file=sys.stderr)


def facts() -> dict[str, Any]:
    """What a measurement must be read with: backend, device and whether its times are emulated; {} before `prepare`."""
    backend = sys.modules.get("stage4_numba_cuda.backend")
    if backend is None:
        return {}
    chosen = backend.BACKEND
    return {"backend": chosen.name, "device": chosen.reason, "emulated": chosen.emulated}
