"""What groundup adds to the emulator: its own kernels by name, a GPU's compiler for their registers, and its advice.

The entry point of "cuda_emulator.hooks" in pyproject.toml; the emulator calls register() when it first needs one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundup import own_packages

BACKEND = "GROUNDUP_CUDA"


def register() -> None:
    """Register with the emulator. The compiler and stage 4 are imported when they are asked for."""
    from cuda_emulator import inspection

    inspection.register(
        registers=_registers, named_kernel=_named_kernel, import_advice=_import_advice, command="groundup"
    )


def _registers(kernel: Any, types: tuple[Any, ...], capability: tuple[int, int]) -> Any:
    from groundup.compiling.registers import registers_of

    return registers_of(kernel, types, capability)


def _named_kernel(name: str, size: tuple[int, int, int], dtype: str) -> Any:
    from groundup.kernels.launching import project_launch

    return project_launch(name, size, dtype)


def _import_advice(folder: Path, error: ImportError) -> str:
    if not own_packages.holds(folder, error.name or ""):
        return ""
    name = str(error.name).partition(".")[0]
    return f"{name} is a package of groundup, which hides the {name} beside the script; give yours another name"


@contextlib.contextmanager
def emulator_for_stage_4() -> Iterator[None]:
    """Select the emulator for stage 4's kernels, even with a GPU; stage 4 reads the choice at its import. A
    KernelError becomes a ValueError whose notes are the kernel's lines."""
    from cuda_emulator import KernelError
    from cuda_emulator.inspection import with_lines_as_notes

    before = os.environ.get(BACKEND)
    os.environ[BACKEND] = "emulator"
    try:
        yield
    except KernelError as error:
        raise with_lines_as_notes(error) from error
    finally:
        if before is None:
            del os.environ[BACKEND]
        else:
            os.environ[BACKEND] = before
