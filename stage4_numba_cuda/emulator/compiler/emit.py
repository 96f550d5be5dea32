"""Step 7: the generated source: one function for a block, and one that runs a range of blocks.

The text is meant to be read. A loop over the threads stands where a region is executed; a line between two loops is
something the block does as a whole; `_all_acc[_thread]` is what thread number _thread carries in `acc` from one region
to the next.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba.core import types

from ..helpers import __all__ as HELPERS
from ..poison import poison_value
from .emit_regions import TreeWriter
from .infer import carried_dtype
from .regions import ALIVE, Regions
from .thread_code import Sites, ThreadCode, Variant
from .unit import ArrayDeclaration, Unit
from .writer import Writer

GRID = ("_gdx", "_gdy", "_gdz")
BLOCK = ("_bdx", "_bdy", "_bdz")
#: Local arrays up to this many bytes live in the function's frame, where they can become registers.
STACK_LIMIT = 16 * 1024
FAST = "error_model='numpy', nogil=True"


class Emitter:
    """Writes the functions of one kernel. unit and parts: steps 2 to 5; variable_types: step 6."""

    def __init__(
        self,
        unit: Unit,
        parts: Regions | None,
        variant: Variant,
        variable_types: Mapping[str, types.Type | None],
        contexts: Mapping[str, list[str]],
        sites: Sites,
    ) -> None:
        self.unit, self.parts, self.variant, self.types, self.sites = unit, parts, variant, variable_types, sites
        self.code = ThreadCode(unit, variant, sites, variable_types, contexts, per_thread=parts is not None)
        self.write = Writer(variant.check)
        carried = parts.carried if parts else []
        self.carried = {name: carried_dtype(unit, name, variable_types) for name in carried}
        self.masks = [*([ALIVE] if parts and parts.uses_alive else []), *(parts.masks if parts else [])]
        self.scratch = [
            *unit.shared,
            *(f"_all_{name}" for name in unit.local if parts),
            *(f"_all_{name}" for name in self.carried),
            *self.masks,
        ]
        self.inputs = [*unit.parameters, *unit.constants]
        self.order = ["_order"] if variant.check else []

    # ---------------------------------------------------------------- the three functions

    def source(self, devices: list[str]) -> str:
        """The whole generated module below its imports."""
        parts = [*devices]
        if self.parts is None:
            parts.append(self.thread_function())
        parts += [self.block_function(), self.run_function()]
        return "\n\n".join(parts)

    def decorator(self, cached: bool = False) -> str:
        """How a function is compiled: contraction to fused multiply-adds, as on a device, and no other liberty."""
        fast = "True" if self.variant.fastmath else "{'contract', 'nsz'}"
        return f"@njit(fastmath={fast}, {FAST}{', cache=CACHE' if cached else ''})"

    def finished(self) -> str:
        """What was written; with Numba's own bounds check where an access needs it, like A.T[i] or A[1:][i]."""
        text = "\n".join(self.write.lines)
        if self.variant.bounds and self.code.left_to_numba:
            text = text.replace(FAST, f"{FAST}, boundscheck=True", 1)
        return text

    def thread_function(self) -> str:
        """A kernel without a collective: its own statements, for one thread."""
        self.write = write = Writer(self.variant.check)
        names = ("_tx", "_ty", "_tz", *self.block_names(), "_thread", "_threads", "_status")
        write(self.decorator())
        with write.under(f"def run_thread({', '.join([*self.inputs, *self.unit.shared, *names])}):"):
            lines = self.code.lines(self.unit.body) or ["pass"]
            if any(re.search(r"\b_lane\b", line) for line in lines):
                write("_lane = _thread & 31")
            self.declare_stack_arrays(self.unit.local, self.variant.bounds)
            write(*lines)
        return self.finished()

    def declare_stack_arrays(self, arrays: Mapping[str, ArrayDeclaration], poisoned: bool) -> None:
        """Local arrays of one thread, in its frame; large ones on the heap."""
        for array in arrays.values():
            count = int(np.prod(array.shape))
            if array.nbytes <= STACK_LIMIT and array.dtype.kind != "V":
                self.write(f"{array.name} = carray(_stack_array({count}, {dtype_text(array.dtype)}), {array.shape})")
            else:
                self.write(f"{array.name} = np.empty({array.shape}, {dtype_text(array.dtype)})")
            if poisoned:
                self.poison(array.name, array.dtype)

    def block_names(self) -> tuple[str, ...]:
        """What every function below the launch knows about the block."""
        return ("_bx", "_by", "_bz", *BLOCK, *GRID, "_block")

    def block_function(self) -> str:
        """One block, from its first region to its last."""
        self.write = write = Writer(self.variant.check)
        arguments = [*self.inputs, *self.scratch, *self.block_names(), "_threads", *self.order, "_status"]
        write(self.decorator())
        with write.under(f"def run_block({', '.join(arguments)}):"):
            self.fresh_memory()
            if self.parts is None:
                with write.each_thread({"_thread"}):
                    names = ("_tx", "_ty", "_tz", *self.block_names(), "_thread", "_threads", "_status")
                    write(f"run_thread({', '.join([*self.inputs, *self.unit.shared, *names])})")
            else:
                for name in self.carried:
                    if name in self.unit.parameters:
                        write.for_all(f"_all_{name}", name)
                TreeWriter(self.parts, self.code, self.carried, self.masks, write).tree(self.parts.tree)
        return self.finished()

    def fresh_memory(self) -> None:
        """What a block finds in its memory when it starts."""
        if self.variant.bounds:
            for array in self.unit.shared.values():
                self.poison(array.name, array.dtype)
            if self.parts is not None:
                for array in self.unit.local.values():
                    self.poison(f"_all_{array.name}", array.dtype)
        if ALIVE in self.masks:
            self.write(f"_fill_bytes({ALIVE}, 1)")

    def poison(self, name: str, dtype: np.dtype[Any]) -> None:
        """Fill an array with what no kernel should read; poison.py says with what. NaN is all ones in every byte."""
        if dtype.kind != "V":
            byte = 0xFF if dtype.kind in "fc" else poison_value(dtype).tobytes()[0]
            self.write(f"_fill_bytes({name}, {byte:#x})")

    def run_function(self) -> str:
        """A range of blocks: what a launch calls, on one core or on several."""
        self.write = write = Writer(self.variant.check)
        order = ["_order", "_block_order"] if self.variant.check else []
        arguments = [*self.inputs, "_grid", "_block_shape", "_first", "_end", "_dynamic_bytes", "_report", *order]
        write(self.decorator(cached=True))
        with write.under(f"def run({', '.join(arguments)}):"):
            write(f"{', '.join(GRID)} = _grid", f"{', '.join(BLOCK)} = _block_shape", "_threads = _bdx * _bdy * _bdz")
            write("_status = _address_of(_report)")
            self.allocate()
            with write.under(f"for {'_turn' if order else '_block'} in range(_first, _end):"):
                if order:
                    write("_block = _block_order[_turn]")
                write(
                    "_go_on(_status)",
                    "_bx, _by, _bz = _block % _gdx, _block // _gdx % _gdy, _block // (_gdx * _gdy)",
                )
                names = [*self.inputs, *self.scratch, *self.block_names(), "_threads", *self.order, "_status"]
                write(f"run_block({', '.join(names)})")
        return "\n".join(write.lines)

    def allocate(self) -> None:
        """The memory of a block, used by one block after another."""
        write = self.write
        if any(array.shape == (0,) for array in self.unit.shared.values()):
            write("_dynamic = np.empty(_dynamic_bytes, np.uint8)")
        for array in self.unit.shared.values():
            if array.shape == (0,):
                size = array.dtype.itemsize
                write(f"{array.name} = _dynamic[:_dynamic_bytes // {size} * {size}].view({dtype_text(array.dtype)})")
            else:
                write(f"{array.name} = np.empty({array.shape}, {dtype_text(array.dtype)})")
        if self.parts is not None:
            for array in self.unit.local.values():
                shape = ", ".join(map(str, array.shape))
                write(f"_all_{array.name} = np.empty(({shape}, _threads), {dtype_text(array.dtype)})")
        for name, dtype in self.carried.items():
            write(f"_all_{name} = np.empty(_threads, {dtype_text(dtype)})")
        for name in self.masks:
            write(f"{name} = np.empty(_threads, np.bool_)")


def device_function(
    unit: Unit, name: str, context: list[str], contexts: Mapping[str, list[str]], variant: Variant, sites: Sites
) -> str:
    """The source of a plain device function."""
    emitter = Emitter(unit, None, variant, {}, contexts, sites)
    emitter.code = ThreadCode(unit, variant, sites, None, contexts, per_thread=False)
    write = emitter.write
    write(emitter.decorator())
    with write.under(f"def {name}({', '.join([*unit.parameters, *context])}):"):
        emitter.declare_stack_arrays(unit.local, variant.bounds)
        write(*(emitter.code.lines(unit.body) or ["pass"]))
    return emitter.finished()


def dtype_text(dtype: np.dtype[Any]) -> str:
    """How the generated source names a dtype."""
    if dtype.kind == "V":
        return f"_record_{zlib.crc32(repr(dtype.descr).encode()):08x}"
    return "np.bool_" if dtype == np.bool_ else f"np.{dtype.name}"


def header(
    name: str, where: str, argument_types: tuple[types.Type, ...], body: str, records: list[np.dtype[Any]]
) -> str:
    """The imports, and a comment that says what this is."""
    used = [helper for helper in HELPERS if re.search(rf"\b_{helper}\b", body)]
    lines = [
        f"# {name}, from {where}, as groundup's CUDA emulator runs it.",
        f"# Arguments: {', '.join(str(kind) for kind in argument_types) or 'none'}",
        "import cmath",
        "import math",
        "import operator",
        "",
        "import numpy as np",
        "from numba import carray, njit",
    ]
    if used:
        lines += ["", "from stage4_numba_cuda.emulator.helpers import ("]
        lines += [f"    {helper} as _{helper}," for helper in used]
        lines += [")"]
    lines += [f"{dtype_text(dtype)} = np.dtype({dtype.descr!r}, align={dtype.isalignedstruct})" for dtype in records]
    return "\n".join(lines)
