"""Puts the emulator in the place of numba.cuda in a process whose environment says CUDA_EMULATOR=1, check or warn.

`cuda-emulator enable` writes a .pth file that runs this file when Python starts; `cuda-emulator run` and the pytest
plugin let child processes find it through PYTHONPATH (child/sitecustomize.py). Until the process imports numba.cuda,
nothing of the emulator is loaded. It is run by its path, so that it works where the package cannot be imported.
"""

from __future__ import annotations

import importlib.abc
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any

VARIABLE = "CUDA_EMULATOR"
REPLACED = ("numba.cuda", "numba_cuda_mlir")
OFF = ("", "0", "off", "no", "false")
"""Values of the variable with which nothing happens."""


class _AtFirstUse(importlib.abc.MetaPathFinder):
    """Installs the emulator when numba.cuda is first looked for."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """The spec of the emulator's module of this name; None for every other module."""
        if fullname not in REPLACED:
            return None
        sys.meta_path.remove(self)
        import cuda_emulator

        cuda_emulator.install()
        return sys.modules[fullname].__spec__


def start() -> None:
    """Wait for the first import of numba.cuda, if the environment asks for the emulator and nobody waits yet."""
    waiting = any(type(finder).__name__ == _AtFirstUse.__name__ for finder in sys.meta_path)
    if os.environ.get(VARIABLE, "").strip().lower() not in OFF and "numba.cuda" not in sys.modules and not waiting:
        sys.meta_path.insert(0, _AtFirstUse())


start()
