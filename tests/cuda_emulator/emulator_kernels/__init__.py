"""Kernels as learners write them, each with a reference: one table, which kernels/test_kernels.py runs in every mode
and compatibility/test_real_compiler.py hands to the real compiler.

Every module holds ordinary kernels and a table EXAMPLES that says how to launch each of them. They take `cuda` from the
emulator; where the real compiler is asked, the test puts numba.cuda in its place before it imports them.
"""

from __future__ import annotations

import importlib

from tests.cuda_emulator.emulator_kernels.example import Example

MODULES = ("matmul", "elementwise", "reductions", "warps", "scans", "images", "control", "language", "randomness")
EMULATED = ("programs", "edges", "halves", "grids")
"""Run on the emulator only: they need more than numba-cuda compiles without a device, or its newest version."""


def all_examples(modules: tuple[str, ...] = MODULES) -> dict[str, Example]:
    """Every example of these modules by name, like "matmul.tiled_16"."""
    return {
        f"{module}.{name}": example
        for module in modules
        for name, example in importlib.import_module(f"{__name__}.{module}").EXAMPLES.items()
    }
