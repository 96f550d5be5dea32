"""Step 7: the generated source: one function for a block, and one that runs a range of blocks.

The text is meant to be read. A loop over the threads stands where a region is executed; a line between two loops is
something the block does as a whole; `_all_acc[_thread]` is what thread number _thread carries in `acc` from one region
to the next.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core import types
from numba.np import numpy_support

from .helpers import __all__ as HELPERS
from .poison import poison_value
from .regions import (
    ALIVE,
    Decision,
    ForBlock,
    Jump,
    Leave,
    Loop,
    MaskedIf,
    MaskedLoop,
    Meeting,
    Region,
    Regions,
)
from .thread_code import Sites, ThreadCode, Variant
from .trees import Collective, loaded_names
from .unit import ArrayDeclaration, Unit

GRID = ("_gdx", "_gdy", "_gdz")
BLOCK = ("_bdx", "_bdy", "_bdz")
#: Local arrays up to this many bytes live in the function's frame, where they can become registers.
STACK_LIMIT = 16 * 1024
WARP_FUNCTIONS = {
    "shfl_sync": "shuffle_index",
    "shfl_up_sync": "shuffle_up",
    "shfl_down_sync": "shuffle_down",
    "shfl_xor_sync": "shuffle_xor",
    "all_sync": "vote_all",
    "any_sync": "vote_any",
    "eq_sync": "vote_eq",
    "ballot_sync": "vote_ballot",
    "match_any_sync": "match_any",
    "match_all_sync": "match_all",
}
BLOCK_VOTES = {
    "syncthreads_count": "block_count",
    "syncthreads_and": "block_and",
    "syncthreads_or": "block_or",
}
FAST = "error_model='numpy', nogil=True"


class Writer:
    """Lines of source, indented."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line if line else "" for line in lines]

    @contextmanager
    def under(self, *headers: str) -> Iterator[None]:
        """What is written inside goes below these headers, each deeper than the last."""
        for header in headers:
            self(header)
            self.depth += 1
        written = len(self.lines)
        yield
        if len(self.lines) == written:
            self("pass")
        self.depth -= len(headers)


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
        self.write = Writer()
        carried = parts.carried if parts else []
        self.carried = {name: self.dtype_of(name) for name in carried}
        self.masks = [*([ALIVE] if parts and parts.uses_alive else []), *(parts.masks if parts else [])]
        self.scratch = [
            *unit.shared,
            *(f"_all_{name}" for name in unit.local if parts),
            *(f"_all_{name}" for name in self.carried),
            *self.masks,
        ]
        self.inputs = [*unit.parameters, *unit.constants]
        self.order = ["_order"] if variant.check else []

    def dtype_of(self, name: str) -> np.dtype[Any]:
        """The dtype of the array that carries a variable. KernelError where it cannot be carried."""
        kind = self.types.get(name, types.int64)  # a mask or lane that nothing else uses has no type: an integer
        line = next(
            (p.lineno for s in self.unit.body for p in ast.walk(s) if isinstance(p, ast.Name) and p.id == name),
            self.unit.source.first_line,
        )
        spelled = self.unit.learners_name(name)
        if kind is None:
            raise self.unit.source.error(
                f"{spelled!r} has two types that do not go together, and is needed on both sides of a cuda.syncthreads() or "
                "shuffle; give each its own name",
                line,
            )
        try:
            return np.dtype(numpy_support.as_dtype(kind))
        except (NotImplementedError, TypeError):
            what = "a view of an array" if isinstance(kind, types.Array) else f"a value of type {kind}"
            raise self.unit.source.error(
                f"{spelled!r} holds {what} on both sides of a cuda.syncthreads() or shuffle; only numbers can be kept "
                "there. Index the array itself after the barrier",
                line,
            ) from None

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
        self.write = write = Writer()
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
        self.write = write = Writer()
        arguments = [*self.inputs, *self.scratch, *self.block_names(), "_threads", *self.order, "_status"]
        write(self.decorator())
        with write.under(f"def run_block({', '.join(arguments)}):"):
            self.fresh_memory()
            if self.parts is None:
                with self.each_thread({"_thread"}):
                    names = ("_tx", "_ty", "_tz", *self.block_names(), "_thread", "_threads", "_status")
                    write(f"run_thread({', '.join([*self.inputs, *self.unit.shared, *names])})")
            else:
                for name in self.carried:
                    if name in self.unit.parameters:
                        self.for_all(f"_all_{name}", name)
                self.tree(self.parts.tree)
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
            self.write(f"_fill_bytes({name}, {poison_value(dtype).tobytes()[0] if dtype.kind not in 'fc' else 0xFF:#x})")

    def run_function(self) -> str:
        """A range of blocks: what a launch calls, on one core or on several."""
        self.write = write = Writer()
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

    # ---------------------------------------------------------------- the tree of regions

    def tree(self, parts: list[Any]) -> None:
        """Write the parts one after another."""
        writers: dict[type, Callable[[Any], None]] = {
            Region: self.region,
            ForBlock: self.for_block,
            Decision: self.decision,
            Loop: self.loop,
            Jump: lambda part: self.write(part.word),
            MaskedIf: self.masked_if,
            MaskedLoop: self.masked_loop,
            Leave: self.leave,
            Meeting: self.meeting,
        }
        for part in parts:
            writers[type(part)](part)

    @contextmanager
    def each_thread(self, used: set[str]) -> Iterator[None]:
        """A loop over the block's threads; `used`: which of their indices are needed."""
        write = self.write
        if self.variant.check:
            with write.under("for _turn in range(_threads):"):
                write("_thread = _order[_turn]")
                write("_tx, _ty, _tz = _thread % _bdx, _thread // _bdx % _bdy, _thread // (_bdx * _bdy)")
                if "_lane" in used:
                    write("_lane = _thread & 31")
                yield
            return
        loops = ("for _tz in range(_bdz):", "for _ty in range(_bdy):", "for _tx in range(_bdx):")
        with write.under(*loops):
            if used & {"_thread", "_lane"}:
                write("_thread = (_tz * _bdy + _ty) * _bdx + _tx")
            if "_lane" in used:
                write("_lane = _thread & 31")
            yield

    def region(self, region: Region) -> None:
        """A loop over the threads with the region's statements in it."""
        self.note(region.statements)
        self.region_loop(region, region.mask, self.code.lines(region.statements))

    def region_loop(self, region: Region, mask: str | None, lines: list[str], after: list[str] | None = None) -> None:
        """The loop: what is computed again, what comes from earlier, the lines, what goes on to later regions."""
        assert self.parts is not None
        again = self.parts.recomputed_in(region)
        computed = [f"{name} = {self.code.text(value)}" for name, value in again.items()]
        reads = region.reads | {n for value in again.values() for n in loaded_names(value)}
        brought = [n for n in self.carried if n in reads or n in region.writes - region.always]
        kept = [n for n in self.carried if n in region.writes]
        body = [
            *(f"{name} = _all_{name}[_thread]" for name in brought),
            *computed,
            *lines,
            *(f"_all_{name}[_thread] = {name}" for name in kept),
            *(after or []),
        ]
        used = set(re.findall(r"\b_\w+", "\n".join(body))) | ({"_thread"} if mask else set())
        with self.each_thread(used):
            if mask:
                with self.write.under(f"if {mask}[_thread]:"):
                    self.write(*body)
            else:
                self.write(*body)

    def note(self, statements: list[ast.stmt]) -> None:
        """A comment that says which lines of the kernel follow."""
        lines = sorted(
            {s.lineno for s in statements} | {getattr(s, "end_lineno", None) or s.lineno for s in statements}
        )
        if lines:
            where = f"line {lines[0]}" if lines[0] == lines[-1] else f"lines {lines[0]} to {lines[-1]}"
            self.write(f"# {where}, for each thread")

    def for_block(self, part: ForBlock) -> None:
        """A statement for the block."""
        self.write(*self.code.lines([part.statement]))

    def decision(self, part: Decision) -> None:
        """A uniform `if`."""
        with self.write.under(f"if {self.code.text(part.statement.test)}:"):
            self.tree(part.body)
        if part.orelse:
            with self.write.under("else:"):
                self.tree(part.orelse)

    def loop(self, part: Loop) -> None:
        """A uniform loop."""
        node = part.statement
        if isinstance(node, ast.For):
            header = f"for {ast.unparse(node.target)} in {self.code.text(node.iter)}:"
        else:
            test = self.code.text(node.test)
            header = f"while {'_go_on(_status) and ' if self.variant.bounds else ''}{test}:"
        with self.write.under(header):
            if self.variant.bounds and isinstance(node, ast.For):
                self.write("_go_on(_status)")
            self.tree(part.body)

    def masked_if(self, part: MaskedIf) -> None:
        """Set the masks, then run each side for the threads in its mask."""
        self.note(part.test.statements)
        test = part.test.statements[0]
        assert isinstance(test, ast.Expr)
        self.write(f"_fill_bytes({part.then}, 0)")
        if part.orelse:
            self.write(f"_fill_bytes({part.orelse}, 0)")
        lines = [f"_test = bool({self.code.text(test.value)})", f"{part.then}[_thread] = _test"]
        if part.orelse:
            lines.append(f"{part.orelse}[_thread] = not _test")
        self.region_loop(part.test, part.test.mask, lines)
        for mask, inner in ((part.then, part.body), (part.orelse, part.other)):
            if mask and inner:
                with self.write.under(f"if _anyone({mask}):"):
                    self.tree(inner)

    def masked_loop(self, part: MaskedLoop) -> None:
        """Rounds, until no thread is left."""
        test = part.test.statements[0]
        assert isinstance(test, ast.Expr)
        copied = f"_copy_mask({part.active}, {part.test.mask})"
        self.write(copied if part.test.mask else f"_fill_bytes({part.active}, 1)")
        with self.write.under(f"while {'_go_on(_status)' if self.variant.bounds else 'True'}:"):
            self.note(part.test.statements)
            self.region_loop(part.test, part.active, [f"{part.active}[_thread] = bool({self.code.text(test.value)})"])
            with self.write.under(f"if not _anyone({part.active}):"):
                self.write("break")
            self.write(f"_copy_mask({part.current}, {part.active})")
            self.tree(part.body)

    def leave(self, part: Leave) -> None:
        """Threads that return, break or continue."""
        cleared = dict.fromkeys([*part.cleared, part.mask])
        with self.write.under("for _thread in range(_threads):", f"if {part.mask}[_thread]:"):
            self.write(*(f"{mask}[_thread] = False" for mask in cleared))

    # ---------------------------------------------------------------- collectives

    def meeting(self, part: Meeting) -> None:
        """A barrier, a vote or a shuffle."""
        node, mask = part.collective, part.mask
        alive = ALIVE if ALIVE in self.masks else "None"
        site = self.sites.number(node, f"cuda.{node.path}")
        if node.path.startswith("syncthreads"):
            self.block_meeting(node, mask, alive, site)
            return
        where = f"{mask or 'None'}, {alive}, _threads"
        checked = f"{'_status' if self.variant.bounds else 'None'}, {site}, _block"
        operands = [self.operand(operand) for operand in node.operands]
        results = [f"_all_{result.id}" for result in node.results]
        if node.path == "activemask":
            self.write(f"_active_mask({results[0]}, {mask or 'None'}, _threads)")
        elif node.path == "syncwarp":
            members = operands[0] if operands else "0xffffffff"
            self.write(f"_sync_warp({members}, {where}, {checked})")
        else:
            # the value comes first, then the mask that names the lanes
            members, value, *lane = operands
            arguments = [*results, value, members, *lane]
            self.write(f"_{WARP_FUNCTIONS[node.path]}({', '.join(arguments)}, {where}, {checked})")

    def operand(self, node: ast.expr) -> str:
        """An operand: the array of all threads' values, or the one value of the block."""
        if isinstance(node, ast.Name) and node.id in self.carried:
            return f"_all_{node.id}"
        return ast.unparse(node)

    def block_meeting(self, node: Collective, mask: str | None, alive: str, site: int) -> None:
        """__syncthreads and its counting kin."""
        if mask is not None and mask != ALIVE:
            function = "_barrier" if self.variant.divergence == "error" else "_met_in_part"
            self.write(f"{function}({mask}, {alive}, _status, {site}, _block)")
        if mask is not None and alive != "None" and self.variant.check:
            self.write(f"_some_returned({alive}, _status, {site}, _block)")
        if node.results:
            vote = f"_{BLOCK_VOTES[node.path]}({self.operand(node.operands[0])}, {mask or 'None'}, _threads)"
            name = node.results[0].id
            if name in self.carried:
                self.write(f"_vote = {vote}")
                self.for_all(f"_all_{name}", "_vote")
            else:
                self.write(f"{name} = {vote}")

    def for_all(self, array: str, value: str) -> None:
        """Give every thread the same value."""
        with self.write.under("for _thread in range(_threads):"):
            self.write(f"{array}[_thread] = {value}")


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
