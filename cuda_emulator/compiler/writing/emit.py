"""Step 7: write the generated source: a function that runs a range of blocks.

The lines of a thread of a kernel without collectives are the body of loops over blocks and threads. They are a function
of their own, `run_thread`, where they have to be: they may return from the middle of a loop, or would see the values
that the round before has left in their variables. Each function costs time to compile. The lines of a block of a kernel
with collectives are a function, too, `run_block`, since LLVM takes longer for their many loops inside one more.

The text is meant to be read. Each region is a loop over the threads; the lines between two loops are executed once for
the block; `_all_acc[_thread]` is the value of `acc` that thread number _thread carries from one region to the next.
"""

from __future__ import annotations

import ast
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numba.core import types

from ... import helpers
from ...intrinsics import GRID_BARRIER
from ...poison import kind_of, poison_value
from ..analysis.infer import carried_dtype
from ..analysis.ownership import may_own
from ..analysis.pauses import ENDED, RESUME, Pauses
from ..analysis.recompute import starts_afresh
from ..analysis.regions import ALIVE, CollectiveCall, Regions
from ..trees import LOOPS, contains, copied, has_grid_barrier, walk
from ..unit import ArrayDeclaration, Unit
from .emit_regions import TreeWriter
from .thread_code import Sites, ThreadCode, Variant
from .trace_code import TracedCode
from .trace_tree import TracedTree
from .writer import Writer

GRID = ("_gdx", "_gdy", "_gdz")
BLOCK = ("_bdx", "_bdy", "_bdz")
#: Up to this many bytes of local arrays are stored in the function's stack frame, where they can become registers. Many
#: calls of a device function may be inlined into one frame, and a thread's stack may be small (512 KB on macOS).
STACK_LIMIT = 4 * 1024
LINE = 64  # bytes of a cache line; each array starts at a multiple
FAST = "error_model='numpy', nogil=True"
NO_OWNERS = "_nrt=False"  # Numba's name for: nobody counts the owners of an array


class Emitter:
    """Writes the functions of one kernel.

    unit, regions: the results of steps 2 to 5; regions is None for a kernel without collectives
    variable_types: the result of step 6
    """

    def __init__(
        self,
        unit: Unit,
        regions: Regions | None,
        variant: Variant,
        variable_types: Mapping[str, types.Type | None],
        contexts: Mapping[str, list[str]],
        sites: Sites,
    ) -> None:
        self.unit, self.regions, self.variant, self.types, self.sites = unit, regions, variant, variable_types, sites
        self.code = code_of(unit, variant, sites, variable_types, contexts, per_thread=regions is not None)
        self.write = Writer(variant.check)
        carried = regions.carried if regions else []
        self.carried = {name: carried_dtype(unit, name, variable_types) for name in carried}
        self.masks = [*([ALIVE] if regions and regions.uses_alive else []), *(regions.masks if regions else [])]
        together = regions is not None and has_grid_barrier(unit.body)
        self.pauses = Pauses(unit, regions, variable_types) if regions is not None and together else None
        self.kept = {f"_kept_{name}": dtype for name, dtype in (self.pauses.kept if self.pauses else {}).items()}
        self.in_frame, in_workspace = split_by_size(unit.local) if regions is None else ({}, {})
        self.in_workspace = {**unit.shared, **in_workspace}
        self.scratch = [
            *self.in_workspace,
            *(f"_all_{name}" for name in unit.local if regions),
            *(f"_all_{name}" for name in self.carried),
            *self.masks,
            *self.kept,
        ]
        self.inputs = [*unit.parameters, *unit.constants]
        self.order = ["_order"] if variant.check else []
        self.owning = variant.trace or unit.prints or may_own(unit, variable_types, contexts)
        self.thread_apart = regions is None and (
            bool(unit.local) or returns_in_loop(unit.body) or not starts_afresh(unit)
        )

    # ---------------------------------------------------------------- the functions

    def source(self, devices: list[str]) -> str:
        """The text of the generated module, without its imports."""
        parts = [*devices]
        if self.thread_apart:
            parts.append(self.thread_function())
        if self.regions is not None:
            parts.append(self.block_function())
        parts.append(self.run_function())
        return "\n\n".join(parts)

    def decorator(self, of_run: bool = False) -> str:
        """The decorator of a function. It allows fused multiply-adds and the loss of a zero's sign, as on a device."""
        fast = "True" if self.variant.fastmath else "{'contract', 'nsz'}"
        options = f"fastmath={fast}, {FAST}" if self.owning else f"fastmath={fast}, {FAST}, {NO_OWNERS}"
        if self.variant.bounds:
            options += ", quick=True"
        return f"@_outer({options})" if of_run else f"@_inner({options})"

    def finished(self) -> str:
        """The written function; with Numba's own bounds check if an index like A.T[i] or A[1:][i] needs it."""
        text = "\n".join(self.write.lines)
        if self.variant.bounds and self.code.left_to_numba:
            text = text.replace(FAST, f"{FAST}, boundscheck=True", 1)
        return text

    def thread_function(self) -> str:
        """The function for one thread of a kernel without collectives."""
        self.write = write = Writer(self.variant.check)
        names = ("_tx", "_ty", "_tz", *self.block_names(), "_thread", "_threads", "_status")
        write(self.decorator())
        with write.under(f"def run_thread({', '.join([*self.inputs, *self.in_workspace, *names])}):"):
            lines = self.code.lines(self.unit.body) or ["pass"]
            if any(re.search(r"\b_lane\b", line) for line in lines):
                write("_lane = _thread & 31")
            self.declare_in_frame(self.in_frame)
            # Local arrays too large for the frame: the threads use the same memory one after another.
            for name in self.in_workspace.keys() - self.unit.shared.keys():
                self.poison_if_checked(self.in_workspace[name])
            write(*lines)
        return self.finished()

    def declare_in_frame(self, arrays: Mapping[str, ArrayDeclaration]) -> None:
        """Write the local arrays in the stack frame of a thread's function."""
        for array in arrays.values():
            count, dtype = math.prod(array.shape), dtype_text(array.dtype)
            self.write(f"{array.name} = _array_from(_stack_array({count}, {dtype}), {array.shape})")
            self.poison_if_checked(array)

    def poison_if_checked(self, array: ArrayDeclaration) -> None:
        """Fill a fresh local array with poison values, if bounds are checked."""
        if self.variant.bounds:
            self.poison(array.name, array.dtype)

    def block_names(self) -> tuple[str, ...]:
        """The names of the variables that describe the block: arguments of each function."""
        return ("_bx", "_by", "_bz", *BLOCK, *GRID, "_block")

    def block_function(self) -> str:
        """The function that runs one block."""
        self.write = write = Writer(self.variant.check)
        resume = [RESUME] if self.pauses else []
        arguments = [*self.inputs, *self.scratch, *self.block_names(), "_threads", *self.order, "_status", *resume]
        write(self.decorator())
        with write.under(f"def run_block({', '.join(arguments)}):"):
            if self.pauses is not None:
                write(*self.pauses.restored_lines())
                written = len(write.lines)
                with write.under(f"if {RESUME} == 0:"):  # a block that goes on has begun already
                    self.begin()
                # begin() had nothing to write.
                if write.lines[-1].strip() == "pass":
                    del write.lines[written:]
            else:
                self.begin()
            self.all_threads()
            if self.pauses is not None:
                write(f"return {ENDED}")
        return self.finished()

    def all_threads(self) -> None:
        """Write what the threads of a block do."""
        if self.regions is not None:
            writer = TracedTree if isinstance(self.code, TracedCode) else TreeWriter
            tree = writer(self.regions, self.code, self.carried, self.masks, self.pauses, self.write)
            tree.tree(self.regions.tree)
            return
        if self.thread_apart:
            names = ("_tx", "_ty", "_tz", *self.block_names(), "_thread", "_threads", "_status")
            lines = [f"run_thread({', '.join([*self.inputs, *self.in_workspace, *names])})"]
        else:
            lines = self.code.lines(in_a_loop(self.unit.body)) or ["pass"]
        with self.write.each_thread(set(re.findall(r"\b_\w+", "\n".join(lines)))):
            self.write(*lines)

    def begin(self) -> None:
        """Fill the block's memory at its start: poison values, the mask of living threads, carried arguments."""
        if self.variant.bounds:
            for array in self.unit.shared.values():
                self.poison(array.name, array.dtype)
            if self.regions is not None:
                for array in self.unit.local.values():
                    self.poison(f"_all_{array.name}", array.dtype)
        if ALIVE in self.masks:
            self.write(f"_fill_bytes({ALIVE}, 1)")
        for name in self.carried:
            if name in self.unit.parameters:
                self.write.for_all(f"_all_{name}", name)

    def poison(self, name: str, dtype: np.dtype[Any]) -> None:
        """Fill an array with its poison value (poison.py), or with that of the run. A NaN has all bits set."""
        if self.variant.check:
            kind = kind_of(dtype)
            if kind is not None:
                self.write(f"_fill_bytes({name}, _poison(_status, {kind}))")
        elif dtype.kind != "V":
            byte = 0xFF if dtype.kind in "fc" else poison_value(dtype).tobytes()[0]
            self.write(f"_fill_bytes({name}, {byte:#x})")

    def run_function(self) -> str:
        """The function that runs a range of blocks: a launch calls it, once or once for each chunk."""
        self.write = write = Writer(self.variant.check)
        order = ["_order", "_block_order"] if self.variant.check else []
        arguments = [*self.inputs, "_launch", "_report", *order]
        arguments += ["_workspace", "_waiting"] if self.pauses else ["_workspace"]
        write(self.decorator(of_run=True))
        with write.under(f"def run({', '.join(arguments)}):"):
            write(f"{', '.join([*GRID, *BLOCK, '_first', '_end', '_dynamic_bytes'])} = _numbers(_launch)")
            write("_threads = _bdx * _bdy * _bdz")
            if self.owning:
                # Nothing below counts as an owner of an array: a run that ends early would never give its share back.
                constants = self.unit.constants
                held = [name for name in self.inputs if name in constants or may_hold_array(self.types.get(name))]
                write(*(f"{name} = _borrowed({name})" for name in [*held, *order]))
            write("_status = _address_of(_report)", "_memory = _address_of(_workspace)")
            if self.pauses is None:
                self.allocate()
            else:
                write("_share = _workspace.size // (_gdx * _gdy * _gdz)")
            with write.under(f"for {'_block_turn' if order else '_block'} in range(_first, _end):"):
                if order:
                    write("_block = _block_order[_block_turn]")
                write(
                    "_go_on(_status)",
                    "_bx, _by, _bz = _unravelled(_block, _gdx, _gdy)",
                )
                names = [*self.inputs, *self.scratch, *self.block_names(), "_threads", *self.order, "_status"]
                if self.regions is None:
                    self.begin()
                    self.all_threads()
                elif self.pauses is None:
                    write(f"run_block({', '.join(names)})")
                else:  # each block has its own part of the workspace, and goes on where it waits
                    write("_start = _block * _share")
                    self.allocate()
                    write(f"_waiting[_block] = run_block({', '.join([*names, '_waiting[_block]'])})")
        return self.finished()

    def allocate(self) -> None:
        """Place a block's arrays in the workspace, which one block after another uses. facts() has its size."""
        write, offset = self.write, 0
        for array in self.in_workspace.values():
            if array.shape != (0,):
                self.place(array.name, str(offset), array.dtype, str(array.shape))
                offset += rounded(array.nbytes)
        for array in self.in_workspace.values():
            if array.shape == (0,):  # all dynamic arrays are the same memory
                self.place(array.name, str(offset), array.dtype, f"_dynamic_bytes // {array.dtype.itemsize}")
        per_thread = self.per_thread()
        if per_thread:
            write(f"_offset = {offset} + (_dynamic_bytes + {LINE - 1}) // {LINE} * {LINE}")
        for name, (dtype, shape) in per_thread.items():
            size = math.prod(shape) * dtype.itemsize
            axes = ", ".join([*map(str, shape), "_threads"])
            self.place(name, "_offset", dtype, f"({axes})" if shape else axes)
            write(f"_offset += ({size} * _threads + {LINE - 1}) // {LINE} * {LINE}")

    def place(self, name: str, offset: str, dtype: np.dtype[Any], shape: str) -> None:
        """Write an array at this offset of the workspace."""
        if self.pauses is not None:
            offset = f"_start + {offset}"
        self.write(f"{name} = _array_from(_part_of(_memory, {offset}, {dtype_text(dtype)}), {shape})")

    def per_thread(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """{name: (dtype, shape without the last axis)} of the arrays whose last axis is the thread."""
        if self.regions is None:
            return {}
        return {
            **{f"_all_{array.name}": (array.dtype, array.shape) for array in self.unit.local.values()},
            **{f"_all_{name}": (dtype, ()) for name, dtype in self.carried.items()},
            **dict.fromkeys(self.masks, (np.dtype(np.bool_), ())),
            **{name: (dtype, ()) for name, dtype in self.kept.items()},
        }

    def facts(self) -> list[str]:
        """The constants of the generated module: the size of the workspace, and the tables of a trace."""
        block = sum(rounded(array.nbytes) for array in self.in_workspace.values())
        each = [math.prod(shape) * dtype.itemsize for dtype, shape in self.per_thread().values()]
        meetings = [self.sites.number(part.collective, f"cuda.{GRID_BARRIER}") for part in self.meetings()]
        facts = [f"BLOCK_BYTES = {block}", f"THREAD_BYTES = {each}", f"MEETINGS = {meetings}"]
        if isinstance(self.code, TracedCode):
            facts += [f"TRACE = {self.code.tables.text()}", f"MEMORY = {self.layout()!r}", f"FENCE = {self.unit.fence}"]
            facts += [
                f"CONSTANT_NAMES = {[self.unit.learners_name(name) for name in self.unit.constants]!r}",
                f"LOCAL_BYTES = {sum(array.nbytes for array in self.unit.local.values())}",
            ]
        return facts

    def meetings(self) -> list[CollectiveCall]:
        """The barriers across the grid, in the order of their numbers."""
        return self.pauses.calls if self.pauses is not None else []

    def layout(self) -> list[tuple[str, str, int, int, tuple[int, ...], Any]]:
        """The arrays of a block in the workspace: (name, space, offset, bytes, shape, dtype).

        -1 bytes stands for dynamic shared memory, whose size the launch gives. Arrays with an entry for each thread are
        not listed: they fill the rest of the workspace, at offsets that depend on the launch.
        """
        arrays: list[tuple[str, str, int, int, tuple[int, ...], Any]] = []
        offset = 0
        for array in self.in_workspace.values():
            name, dtype = (
                self.unit.learners_name(array.name),
                array.dtype.descr if array.dtype.kind == "V" else array.dtype.str,
            )
            if array.shape != (0,):
                space = "shared" if array.name in self.unit.shared else "local"
                arrays.append((name, space, offset, array.nbytes, array.shape, dtype))
                offset += rounded(array.nbytes)
        for array in self.in_workspace.values():
            if array.shape == (0,):
                arrays.append((self.unit.learners_name(array.name), "shared", offset, -1, (0,), array.dtype.str))
        return arrays


def code_of(
    unit: Unit,
    variant: Variant,
    sites: Sites,
    variable_types: Mapping[str, types.Type | None] | None,
    contexts: Mapping[str, list[str]],
    per_thread: bool,
) -> ThreadCode:
    """The writer of one thread's statements: TracedCode for a traced kernel, else ThreadCode."""
    kind = TracedCode if variant.trace else ThreadCode
    return kind(unit, variant, sites, variable_types, contexts, per_thread)


def returns_in_loop(body: Sequence[ast.stmt]) -> bool:
    """Whether there is a `return` in a loop."""
    return any(contains(node, ast.Return) for node in walk(body) if isinstance(node, LOOPS))


def in_a_loop(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The lines of a thread as the body of the loop over the threads: where it returns, the loop continues."""
    return [ContinueInstead().visit(copied(statement)) for statement in body]


class ContinueInstead(ast.NodeTransformer):
    """Replaces each `return`."""

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        """`continue`, at the same line."""
        return ast.copy_location(ast.Continue(), node)


def split_by_size(
    arrays: Mapping[str, ArrayDeclaration],
) -> tuple[dict[str, ArrayDeclaration], dict[str, ArrayDeclaration]]:
    """(local arrays that fit into a function's stack frame, the others); the smallest are taken first."""
    fit: dict[str, ArrayDeclaration] = {}
    total = 0
    for array in sorted(arrays.values(), key=lambda array: array.nbytes):
        total += rounded(array.nbytes)
        if total <= STACK_LIMIT and array.dtype.kind != "V":
            fit[array.name] = array
    return fit, {name: array for name, array in arrays.items() if name not in fit}


def rounded(size: int) -> int:
    """A number of bytes, rounded up to whole cache lines."""
    return -(-size // LINE) * LINE


def may_hold_array(kind: types.Type | None) -> bool:
    """Whether a value of this type may own an array's memory."""
    return isinstance(kind, types.Array) or hasattr(kind, "types")  # the latter: a tuple


def device_function(
    unit: Unit, name: str, context: list[str], contexts: Mapping[str, list[str]], variant: Variant, sites: Sites
) -> str:
    """The source of a plain device function."""
    emitter = Emitter(unit, None, variant, {}, contexts, sites)
    # np.empty below makes an array with an owner, who has to give it back.
    emitter.owning = True
    emitter.code = code_of(unit, variant, sites, None, contexts, per_thread=False)
    write = emitter.write
    write(emitter.decorator())
    with write.under(f"def {name}({', '.join([*unit.parameters, *context])}):"):
        emitter.declare_in_frame(emitter.in_frame)
        for array in unit.local.values():
            if array.name not in emitter.in_frame:
                # The workspace has no place for it: a device function may be called from several places, and call
                # others.
                write(f"{array.name} = np.empty({array.shape}, {dtype_text(array.dtype)})")
                emitter.poison_if_checked(array)
        write(*(emitter.code.lines(unit.body) or ["pass"]))
    return emitter.finished()


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The name of a dtype in the generated source."""
    if dtype.kind == "V":
        return f"_record_{zlib.crc32(repr(dtype.descr).encode()):08x}"
    return "np.bool_" if dtype == np.bool_ else f"np.{dtype.name}"


def _in_a_comment(text: str) -> str:
    """The text without what would end the line of a comment, such as the line separator in a file's name."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def header(
    name: str, where: str, argument_types: tuple[types.Type, ...], body: str, records: list[np.dtype[Any]]
) -> str:
    """The imports of the generated source, below a comment with the kernel's name, place and argument types."""
    used = [helper for helper in helpers.__all__ if re.search(rf"\b_{helper}\b", body)]
    lines = [
        f"# {name}, from {_in_a_comment(where)}, as groundup's CUDA emulator runs it.",
        f"# Arguments: {_in_a_comment(', '.join(str(kind) for kind in argument_types)) or 'none'}",
        "import cmath",
        "import math",
        "import operator",
        "",
        "import numpy as np",
    ]
    if used:
        lines += ["", f"from {helpers.__name__} import ("]
        lines += [f"    {helper} as _{helper}," for helper in used]
        lines += [")"]
    lines += [f"{dtype_text(dtype)} = np.dtype({dtype.descr!r}, align={dtype.isalignedstruct})" for dtype in records]
    return "\n".join(lines)
