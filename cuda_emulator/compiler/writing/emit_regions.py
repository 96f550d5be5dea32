"""Step 7b: write the tree of regions: a loop over the threads for each region, and the parts between them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any

from ..analysis.pauses import ENDED, RESUME, Pauses
from ..analysis.regions import (
    CollectiveCall,
    Jump,
    Leave,
    MaskedIf,
    MaskedLoop,
    OncePerBlock,
    Region,
    Regions,
    UniformIf,
    UniformLoop,
)
from ..trees import loaded_names
from .emit_collectives import write_collective
from .thread_code import ThreadCode
from .writer import Writer


class TreeWriter:
    """Writes a tree of regions.

    code: the writer of one thread's statements
    carried: the variables that each thread carries from one region to the next, stored in `_all_NAME`
    masks: the names of all masks
    pauses: of a kernel with barriers across the grid, how its blocks stop there and go on; else None
    """

    def __init__(
        self,
        regions: Regions,
        code: ThreadCode,
        carried: Collection[str],
        masks: Collection[str],
        pauses: Pauses | None,
        write: Writer,
    ) -> None:
        self.regions, self.code, self.carried, self.masks, self.write = regions, code, carried, masks, write
        self.pauses = pauses
        self.variant = code.variant

    def tree(self, parts: list[Any]) -> None:
        """Write the parts one after another. Parts without a barrier across the grid are passed over when a block goes
        on behind one."""
        if self.pauses is None:
            for part in parts:
                self.part(part)
            return
        for skipped, some in groupby(parts, self.pauses.may_skip):
            with self.write.under(f"if {RESUME} == 0:") if skipped else nullcontext():
                for part in some:
                    self.part(part)

    def at_first(self, part: Any) -> AbstractContextManager[None]:
        """Around lines before a part: the block does not execute them again when it goes on inside the part."""
        inside = self.pauses is not None and not self.pauses.may_skip(part)
        return self.write.under(f"if {RESUME} == 0:") if inside else nullcontext()

    def entered(self, part: Any, test: str, inner: list[Any]) -> str:
        """The condition to enter the parts `inner` of a part: the test, or that the block goes on inside them."""
        if self.pauses is None or self.pauses.may_skip(part):
            return test
        return self.pauses.entered(test, inner)

    def part(self, part: Any) -> None:
        """Write one part."""
        writers: dict[type, Callable[[Any], None]] = {
            Region: self.region,
            OncePerBlock: lambda part: self.write(*self.code.lines([part.statement])),
            UniformIf: self.decision,
            UniformLoop: self.loop,
            Jump: lambda part: self.write(self.jump(part.word)),
            MaskedIf: self.masked_if,
            MaskedLoop: self.masked_loop,
            Leave: self.leave,
            CollectiveCall: self.collective,
        }
        writers[type(part)](part)

    # ---------------------------------------------------------------- regions

    def region(self, region: Region) -> None:
        """Write a region: a loop over the threads that contains its statements."""
        self.note(region.statements)
        self.region_loop(region, region.mask, self.code.lines(region.statements))

    def region_loop(self, region: Region, mask: str | None, lines: list[str]) -> None:
        """Write the loop: load carried variables, compute others again, then `lines`, then store carried variables."""
        again = self.regions.recomputed_in(region)
        reads = region.reads | {n for value in again.values() for n in loaded_names(value)}
        brought = [n for n in self.carried if n in reads or n in region.writes - region.always]
        body = [
            *(f"{name} = _all_{name}[_thread]" for name in brought),
            *(f"{name} = {self.code.text_again(name, value)}" for name, value in again.items()),
            *lines,
            *(f"_all_{name}[_thread] = {name}" for name in self.carried if name in region.writes),
        ]
        used = set(re.findall(r"\b_\w+", "\n".join(body))) | ({"_thread"} if mask else set())
        with self.write.each_thread(used):
            if mask:
                with self.write.under(f"if {mask}[_thread]:"):
                    self.write(*body)
            else:
                self.write(*body)

    def note(self, statements: list[ast.stmt]) -> None:
        """Write a comment with the line numbers of the statements in the kernel."""
        lines = sorted(
            {s.lineno for s in statements} | {getattr(s, "end_lineno", None) or s.lineno for s in statements}
        )
        if lines:
            where = f"line {lines[0]}" if lines[0] == lines[-1] else f"lines {lines[0]} to {lines[-1]}"
            self.write(f"# {where}, for each thread")

    # ---------------------------------------------------------------- uniform parts

    def decision(self, part: UniformIf) -> None:
        """Write a uniform `if`."""
        with self.write.under(f"if {self.entered(part, self.header_text(part.statement.test), part.body)}:"):
            self.tree(part.body)
        if part.orelse:
            otherwise = "else:"
            if self.pauses is not None and not self.pauses.may_skip(part):
                otherwise = f"elif {self.pauses.entered(None, part.orelse)}:"
            with self.write.under(otherwise):
                self.tree(part.orelse)

    def jump(self, word: str) -> str:
        """A return, break or continue of the whole block."""
        return f"return {ENDED}" if word == "return" and self.pauses is not None else word

    def loop(self, part: UniformLoop) -> None:
        """Write a uniform loop."""
        node = part.statement
        if isinstance(node, ast.For):
            header = f"for {ast.unparse(node.target)} in {self.header_text(node.iter)}:"
        else:
            test = self.entered(part, self.header_text(node.test), part.body)
            header = f"while {'_go_on(_status) and ' if self.variant.bounds else ''}{test}:"
        with self.write.under(header):
            if self.variant.bounds and isinstance(node, ast.For):
                self.write("_go_on(_status)")
            self.tree(part.body)

    def header_text(self, node: ast.expr) -> str:
        """The text of the range or the test of a uniform loop, or the test of a uniform `if`."""
        return self.code.text(node)

    def collective(self, part: CollectiveCall) -> None:
        """Write a barrier, vote or shuffle. At a barrier across the grid the function returns; it is called again when
        all blocks are there."""
        number = self.pauses.number(part) if self.pauses is not None else None
        if self.pauses is None or number is None:
            self.meeting(part)
            return
        with self.write.under(f"if {RESUME} == 0:"):
            self.meeting(part)
            self.write(*self.pauses.kept_lines(), f"return {number}")
        with self.write.under(f"if {RESUME} == {number}:"):
            self.write(f"{RESUME} = 0")

    def meeting(self, part: CollectiveCall) -> None:
        """Write what the threads of the block do together."""
        write_collective(part, self.carried, self.masks, self.variant, self.code.sites, self.write)

    # ---------------------------------------------------------------- parts under a mask

    def masked_if(self, part: MaskedIf) -> None:
        """Write an `if` under masks: set the masks, then run each branch for the threads in its mask."""
        with self.at_first(part):
            self.note(part.test.statements)
            self.write(f"_fill_bytes({part.then}, 0)")
            if part.orelse:
                self.write(f"_fill_bytes({part.orelse}, 0)")
            lines = [f"_test = bool({self.test_of(part)})", f"{part.then}[_thread] = _test"]
            if part.orelse:
                lines.append(f"{part.orelse}[_thread] = not _test")
            self.region_loop(part.test, part.test.mask, lines)
        for mask, inner in ((part.then, part.body), (part.orelse, part.other)):
            if mask and inner:
                with self.write.under(f"if {self.entered(part, f'_anyone({mask})', inner)}:"):
                    self.tree(inner)

    def masked_loop(self, part: MaskedLoop) -> None:
        """Write a loop under masks, which ends when no thread is left."""
        copied = f"_copy_mask({part.active}, {part.test.mask})"
        with self.at_first(part):
            self.write(copied if part.test.mask else f"_fill_bytes({part.active}, 1)")
        with self.write.under(f"while {'_go_on(_status)' if self.variant.bounds else 'True'}:"):
            with self.at_first(part):
                self.note(part.test.statements)
                self.region_loop(part.test, part.active, [f"{part.active}[_thread] = bool({self.test_of(part)})"])
                with self.write.under(f"if not _anyone({part.active}):"):
                    self.write("break")
                self.write(f"_copy_mask({part.current}, {part.active})")
            self.tree(part.body)

    def test_of(self, part: MaskedIf | MaskedLoop) -> str:
        """The text of the test of an `if` or loop under masks."""
        statement = part.test.statements[0]
        assert isinstance(statement, ast.Expr)
        return self.code.text(statement.value)

    def leave(self, part: Leave) -> None:
        """Write the removal of threads that return, break or continue from the masks."""
        cleared = dict.fromkeys([*part.cleared, part.mask])
        with self.write.under("for _thread in range(_threads):", f"if {part.mask}[_thread]:"):
            self.write(*(f"{mask}[_thread] = False" for mask in cleared))
