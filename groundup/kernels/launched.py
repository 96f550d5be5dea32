"""The kernels that `groundup bench`, `groundup check` and the GPU report launch on a GPU, to be compiled beforehand.

launched.json lists them: what a GPU with 40, 68, 108, 132 or 144 multiprocessors launches, which choose different
tiles; the known networks in float32 and with TF32. Rehearsals of the runs find them: bench_rehearsal.py,
report_rehearsal.py and model_rehearsal.py in tests/groundup/compiling.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from groundup.kernels.catalogue import CATALOGUE
from groundup.kernels.entries import Entry, entry
from groundup.kernels.images import MAX_POOL_INT64

OF_BENCH = (
    entry("device_clock.sleep", "int64", 1, 255, 255, package="shared.bench.measuring"),
    entry("device_roofs.multiply_add", "int64 T[1] T[1]", 256, 255, 255, package="shared.bench.measuring"),
    entry("device_roofs.triad_kernel", "T[1] T[1] T T[1]", 256, 255, 255, package="shared.bench.measuring"),
)
"""The kernels of shared.bench, which are no part of stage 4."""

KNOWN: dict[str, tuple[Entry, str]] = {
    f"{each.kernel} {dtype}".strip(): (each, dtype) for each in (*OF_BENCH, *CATALOGUE) for dtype in each.dtypes
} | {f"pooling.max_pool, int64 {dtype}": (MAX_POOL_INT64, dtype) for dtype in MAX_POOL_INT64.dtypes}
"""Name and dtype of every kernel -> its line in a list, and the dtype."""

_LISTS: dict[str, Any] = json.loads(files(__package__).joinpath("launched.json").read_bytes())

QUICK: dict[str, list[str]] = _LISTS["quick bench"]
"""Part of a quick `groundup bench` -> names of KNOWN: what no earlier part has launched."""

CHECK: list[str] = _LISTS["check"]
"""Names of KNOWN: what `groundup check` launches."""

REPORT: dict[str, list[str]] = _LISTS["report"]
"""Part of the GPU report -> names of KNOWN. Its parts about convolutional networks, "networks" and "network_training",
launch what `groundup bench --model` launches, too."""
