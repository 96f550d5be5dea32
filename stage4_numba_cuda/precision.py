"""The formats to which a network's convolutions and dense layers may round their factors, for tensor cores.

    tf32    11 bits, and float32's range
    bf16    8 bits, and float32's range

No factor is rounded unless you set it: by the attribute `precision` of a network, or for all networks of a process but
multilayer perceptrons by the environment variable GROUNDUP_TENSOR_CORES. PyTorch's switches for tf32 are
torch.backends.cudnn.allow_tf32 and torch.set_float32_matmul_precision("high").
"""

from __future__ import annotations

import os
from typing import Any

from .tensor_cores import check_device

PRECISIONS = ("tf32", "bf16")

VARIABLE = "GROUNDUP_TENSOR_CORES"
"""tf32 or bf16: networks of float32 begin with that precision. Not set, or 0: they round nothing."""


def checked(name: str, precision: Any, dtype: Any) -> str | None:
    """The precision, or an error that names it.

    Raises ValueError for one that is not in PRECISIONS, TypeError for float64, which no tensor core rounds, and
    BackendError on a GPU older than compute capability 8.0.
    """
    if precision is None:
        return None
    if precision not in PRECISIONS:
        raise ValueError(f"{name}: expected {' or '.join(PRECISIONS)}, got {precision!r}")
    if dtype != "float32":
        raise TypeError(f"{name}: {precision} rounds float32, but the numbers are {dtype}; convert them first")
    check_device(precision)
    return precision


def at_first(dtype: str) -> str | None:
    """The precision of a new network: what the environment variable says; None for float64, which it does not touch."""
    asked = os.environ.get(VARIABLE, "")
    return None if asked in ("", "0") or dtype != "float32" else checked(VARIABLE, asked, dtype)
