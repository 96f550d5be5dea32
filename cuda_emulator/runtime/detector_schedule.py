"""When check mode calls the detector: for the first launches of each kind, and then for ever fewer of them."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import KernelWarning
from ..hooks import Detection, find_detector
from . import check_report
from .limits import Extent

ALWAYS = 4
"""The first launches of a kernel with one grid, block and shapes that are looked at; of the later ones those whose
number is a power of two."""


def looking(
    kernel: Any, grid: Extent, block: Extent, arguments: Sequence[Any], dynamic_bytes: int
) -> Callable[[bool], Detection | None]:
    """The function `look` for check_launch. kernel: a dispatcher.Kernel"""
    name = kernel.py_func.__name__
    # check_launch counts this launch only when it begins, which is after this.
    number = check_report.of(name).launches + 1
    key = (grid, block, dynamic_bytes, *map(_shape, arguments))
    times = kernel._looks[key] = kernel._looks.get(key, 0) + 1

    def look(now: bool) -> Detection | None:
        detector = find_detector()
        if detector is None or not (now or times <= ALWAYS or times & (times - 1) == 0):
            return None
        # The run that follows prints and warns.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWarning)
            detection = detector(kernel, grid, block, arguments, dynamic_bytes, number)
        check_report.looked(name, detection)
        return detection

    return look


def _shape(value: Any) -> Any:
    """The part of an argument that decides which accesses a kernel makes in most programs."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str
    return tuple(map(_shape, value)) if isinstance(value, tuple) else type(value)
