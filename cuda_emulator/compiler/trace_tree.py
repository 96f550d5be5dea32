"""Step 7 of a traced kernel, the block's part: count the iterations of the block's loops, and record collectives."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ..helpers.trace import BARRIER, OTHER, SYNC_WARP
from .emit_regions import TreeWriter
from .regions import CollectiveCall, MaskedIf, MaskedLoop, OncePerBlock, UniformLoop
from .trace_code import TracedCode
from .trees import call, copied


@dataclass
class NextRound:
    """A part of a tree of regions: the block begins the next iteration of a loop."""

    loop: int


class TracedTree(TreeWriter):
    """Writes a tree of regions with events."""

    code: TracedCode

    def tree(self, parts: list[Any]) -> None:
        """Write the parts one after another."""
        for part in parts:
            if isinstance(part, NextRound):
                self.write(f"_next_rounds(_status, _threads, {part.loop})")
            elif isinstance(part, OncePerBlock):
                with self.code.once_for_block():
                    super().tree([part])
            else:
                super().tree([part])

    def decision(self, part: Any) -> None:
        """Write a uniform `if`; its condition creates no event, since threads cannot diverge."""
        with self.code.once_for_block():
            test = self.code.text(part.statement.test)
        with self.write.under(f"if {test}:"):
            self.tree(part.body)
        if part.orelse:
            with self.write.under("else:"):
                self.tree(part.orelse)

    def loop(self, part: UniformLoop) -> None:
        """Write a uniform loop that counts its iterations for all threads."""
        number = self.code.new_loop()
        self.write(f"_enter_rounds(_status, _threads, {number})")
        with self.code.in_loop(number):
            super().loop(UniformLoop(part.statement, [NextRound(number), *part.body]))

    def header_text(self, node: ast.expr) -> str:
        """The text of the range or the test of a uniform loop."""
        with self.code.once_for_block():
            return super().header_text(node)

    def masked_loop(self, part: MaskedLoop) -> None:
        """Write a loop under masks that counts its iterations for all threads."""
        number = self.code.new_loop()
        self.write(f"_enter_rounds(_status, _threads, {number})")
        with self.code.in_loop(number):
            inside = MaskedLoop(part.test, part.active, part.current, [NextRound(number), *part.body])
            super().masked_loop(inside)

    def test_of(self, part: MaskedIf | MaskedLoop) -> str:
        """The text of a test that each thread evaluates, with an event."""
        statement = part.test.statements[0]
        assert isinstance(statement, ast.Expr)
        test = self.code.test(copied(statement.value), statement.value)
        return ast.unparse(ast.fix_missing_locations(test))

    def collective(self, part: CollectiveCall) -> None:
        """Write the collective, and an event for each warp that executes it."""
        super().collective(part)
        node = part.collective
        kind = BARRIER if node.path.startswith("syncthreads") else SYNC_WARP if node.path == "syncwarp" else OTHER
        with self.code.once_for_block():
            key = ast.unparse(self.code.key())
            shown = ast.copy_location(call(f"cuda.{node.path}"), node)
            if hasattr(node, "filename"):
                shown.filename, shown.function = node.filename, getattr(node, "function", "")  # type: ignore[attr-defined]
            site = ast.unparse(self.code.site(shown, "barrier" if kind == BARRIER else "warp"))
        self.write(f"_met(_status, {site}, _threads, {part.mask or 'None'}, {key}, {kind})")
