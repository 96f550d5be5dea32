"""Versions of packages that are known not to work together, and what to install in their place.

An error deep inside a library names neither version. Where one of these pairs is installed, whatever tries the library
says this sentence. Only the standard library is imported: `groundup doctor` asks on broken machines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

PACKAGES = ("numpy", "numba", "numba-cuda")
"""What `misfit` wants to know the versions of."""


class Misfit(NamedTuple):
    """text: the rest of a sentence that names both versions; requirement: what pip has to be asked for."""

    text: str
    requirement: str


def misfit(installed: Mapping[str, str]) -> Misfit | None:
    """The first known pair among these versions, by distribution; None where there is none."""
    numpy, numba_cuda = installed.get("numpy"), installed.get("numba-cuda")
    if numpy and numba_cuda and _numbers(numpy) >= (2, 5) and _numbers(numba_cuda) <= (0, 30, 4):
        text = f"numba-cuda {numba_cuda} compiles no kernel with NumPy {numpy}, which no longer has numpy.row_stack"
        return Misfit(text, "numpy<2.5")
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """'2.5.0rc1' as (2, 5, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[a-z+]", version)[0]))
