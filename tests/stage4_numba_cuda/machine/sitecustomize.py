"""Read by Python when it starts, where this folder is in PYTHONPATH: numba-cuda hands PTX to the driver, which the
machine of this folder can run, in place of machine code, which only a GPU can.

MACHINE_EDIT, a regular expression, "=>" and its replacement, changes the PTX before: for tests that plant a mistake.
"""

import os
import re
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

LINKER = "numba.cuda.cudadrv.driver"


class _Patch(MetaPathFinder):
    """Changes the module that links kernels as soon as it has been imported."""

    looking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != LINKER or self.looking:
            return None
        self.looking = True
        try:
            spec = find_spec(name)
        finally:
            self.looking = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                hand_over_ptx(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def hand_over_ptx(driver: Any) -> None:
    """The linker stops at PTX, which ptxas would turn into machine code. It links no library: those hold machine code,
    and no kernel of ours calls them."""

    pattern, _, replacement = os.environ.get("MACHINE_EDIT", "").partition("=>")

    def complete(self: Any) -> Any:
        self._object_codes = [code for code in self._object_codes if code.code_type == "ltoir"]
        ptx = self.get_linked_ptx()
        return driver.ObjectCode.from_ptx(re.sub(pattern.encode(), replacement.encode(), ptx) if pattern else ptx)

    driver._Linker.complete = complete


sys.meta_path.insert(0, _Patch())
