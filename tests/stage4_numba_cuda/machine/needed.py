"""What the tests of this folder need: marks that skip them elsewhere, with the reason."""

from __future__ import annotations

import importlib.util
import platform
import sys

import pytest

from tests.stage4_numba_cuda.machine.image import COMPILER

needs_numba_cuda = [
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
    pytest.mark.skipif(sys.platform != "linux", reason="the driver is found as libcuda.so.1"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="tried on x86-64 only"),
    pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"),
]
