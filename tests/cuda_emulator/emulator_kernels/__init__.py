"""Kernels as learners write them, each with a reference: what kernels/test_kernels.py runs and
compatibility/test_real_compiler.py hands to the real compiler.

Every module holds ordinary kernels and a table EXAMPLES that says how to launch each of them. They take `cuda` from the
emulator; where the real compiler is asked, the test puts numba.cuda in its place before it imports them.
"""

from __future__ import annotations

import importlib

from tests.cuda_emulator.emulator_kernels.example import Example

MODULES = ("matmul", "elementwise", "reductions", "warps", "scans", "images", "control", "language", "randomness")


def all_examples() -> dict[str, Example]:
    """Every example by name, like "matmul.tiled_16"."""
    return {
        f"{module}.{name}": example
        for module in MODULES
        for name, example in importlib.import_module(f"{__name__}.{module}").EXAMPLES.items()
    }
