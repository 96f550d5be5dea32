"""The fourth stage: the same network in CUDA kernels written in Python, on a GPU or, emulated, on the CPU.

Beside the rooms that every stage has:

    kernels/                     what runs on the device
    backend                      GPU, emulator or simulator: chosen once; everything takes `cuda` from here
    trial                        one kernel before all others, on a GPU
    kernel_cache, kernel_fingerprint
                                 compiled kernels kept on disk on a GPU, and the name of each
    copies                       Python's copy and pickle for a GPU's arrays
    launch, tile_choice          how many blocks of how many threads; which of the products' tiles
    shared_memory                more than 48 KB of it for a block
    geometry, convolution_passes the sizes of a convolution and its tables; its launches, without checks
    dense_passes                 a dense layer's launches, without checks
    tensor_cores, precision      the products that round their factors, and their ladder; who may round
    reductions, dropout          sums and dropout masks, on the device
    parts                        the layers of a network that have no weights
    plans/                       the faster ways of a network: fewer kernels, CUDA graphs, data on the device
    packed_parameters            arrays side by side in one piece of memory
    optimizer_state              what an optimizer remembers between steps, on the device
    interchange                  the kernels as PyTorch layers
"""

from __future__ import annotations

import os
import sys
from typing import Any

import shared

if getattr(shared, "PROJECT", "") != "groundup":
    raise SystemExit(f"error: {shared} is imported in place of groundup's package shared: give it another name")

ANNOUNCED = "GROUNDUP_ANNOUNCED"
"""Set once the device has been announced: processes that this one starts need not say it again."""


def prepare() -> None:
    """Choose the device, try a kernel where it is a GPU, and say once, on stderr, which it is; load_stage of
    shared.contract calls this before the rooms.

    Raises shared.contract.StageUnavailable where GROUNDUP_CUDA asks for what this machine has not, and where no kernel
    runs on its GPU.
    """
    try:
        from .backend import BACKEND  # here and not above: choosing imports numba, and the emulator needs no choice

        if BACKEND.name == "gpu" and ANNOUNCED not in os.environ:
            from . import trial

            trial.attempt()
    except RuntimeError as error:
        from shared.contract import StageUnavailable

        raise StageUnavailable(f"stage4_numba_cuda: {error}", fix=getattr(error, "fix", None)) from error
    if ANNOUNCED not in os.environ:
        os.environ[ANNOUNCED] = BACKEND.name
        print(BACKEND.line(), file=sys.stderr)


def facts() -> dict[str, Any]:
    """What a measurement must be read with: backend, device, whether its times are emulated, and whether networks round
    their factors (precision.py); {} before `prepare`."""
    backend = sys.modules.get("stage4_numba_cuda.backend")
    chosen = getattr(backend, "BACKEND", None)  # another thread may be in the middle of importing it
    if chosen is None:
        return {}
    found = {"backend": chosen.name, "device": chosen.reason, "emulated": chosen.emulated}
    rounded = os.environ.get("GROUNDUP_TENSOR_CORES", "0")
    return found if rounded in ("", "0") else found | {"tensor_cores": rounded}
