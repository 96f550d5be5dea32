"""Step 7 of a traced kernel, the block's part: count the iterations of the block's loops, and record collectives."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ...helpers.trace import BARRIER, OTHER, SYNC_WARP
from ...intrinsics import BARRIERS, GRID_BARRIER
from ..analysis.regions import CollectiveCall, MaskedIf, MaskedLoop, OncePerBlock, UniformLoop
from ..trees import call, copied
from .emit_regions import TreeWriter
from .trace_code import TracedCode


@dataclass
class NextRound:
    """A part of a tree of regions: the block begins the next iteration of a loop."""

    loop: int


class TracedTree(TreeWriter):
    """Writes a tree of regions with events."""

    code: TracedCode

    def part(self, part: Any) -> None:
        """Write one part."""
        if isinstance(part, NextRound):
            if not self.code.variant.accesses_only:
                self.write(f"_next_rounds(_status, _threads, {part.loop})")
        elif isinstance(part, OncePerBlock):
            with self.code.once_for_block():
                super().part(part)
        else:
            super().part(part)

    def counted_from_here(self, part: UniformLoop | MaskedLoop) -> int:
        """The number of a loop; all threads start to count its iterations here."""
        number = self.code.new_loop()
        if not self.code.variant.accesses_only:
            with self.at_first(part):
                self.write(f"_enter_rounds(_status, _threads, {number})")
        return number

    def loop(self, part: UniformLoop) -> None:
        """Write a uniform loop that counts its iterations for all threads."""
        number = self.counted_from_here(part)
        with self.code.in_loop(number):
            super().loop(UniformLoop(part.statement, [NextRound(number), *part.body]))

    def header_text(self, node: ast.expr) -> str:
        """The text of the range or the test of a uniform loop, or the test of a uniform `if`; it creates no event,
        since threads cannot diverge."""
        with self.code.once_for_block():
            return super().header_text(node)

    def masked_loop(self, part: MaskedLoop) -> None:
        """Write a loop under masks that counts its iterations for all threads."""
        number = self.counted_from_here(part)
        with self.code.in_loop(number):
            inside = MaskedLoop(part.test, part.active, part.current, [NextRound(number), *part.body])
            super().masked_loop(inside)

    def test_of(self, part: MaskedIf | MaskedLoop) -> str:
        """The text of a test that each thread evaluates, with an event."""
        statement = part.test.statements[0]
        assert isinstance(statement, ast.Expr)
        test = self.code.test(copied(statement.value), statement.value)
        return ast.unparse(ast.fix_missing_locations(test))

    def meeting(self, part: CollectiveCall) -> None:
        """Write the collective, and an event for each warp that executes it."""
        super().meeting(part)
        node = part.collective
        barrier = node.path in BARRIERS or node.path == GRID_BARRIER
        kind = BARRIER if barrier else SYNC_WARP if node.path == "syncwarp" else OTHER
        if kind == OTHER and self.code.variant.accesses_only:
            return
        with self.code.once_for_block():
            key = ast.unparse(self.code.key())
            shown = ast.copy_location(call(f"cuda.{node.path}"), node)
            if hasattr(node, "filename"):
                shown.filename, shown.function = node.filename, getattr(node, "function", "")  # type: ignore[attr-defined]
            site = ast.unparse(self.code.site(shown, "barrier" if kind == BARRIER else "warp"))
        self.write(f"_met(_status, {site}, _threads, {part.mask or 'None'}, {key}, {kind})")
