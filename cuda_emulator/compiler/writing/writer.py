"""Write lines of generated source with their indentation, and the loops over a block's threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

FROM_LINEAR = "_tx, _ty, _tz = _unravelled(_thread, _bdx, _bdy)"
TO_LINEAR = "_thread = (_tz * _bdy + _ty) * _bdx + _tx"


class Writer:
    """Collects lines. in_order: whether the threads of a block run in an order that the launch gives (check mode)."""

    def __init__(self, in_order: bool) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.in_order = in_order

    def __call__(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line if line else "" for line in lines]

    @contextmanager
    def under(self, *headers: str) -> Iterator[None]:
        """Write the lines of the `with` below these headers, each header one level deeper than the one before."""
        for header in headers:
            self(header)
            self.depth += 1
        written = len(self.lines)
        yield
        if len(self.lines) == written:
            self("pass")
        self.depth -= len(headers)

    @contextmanager
    def each_thread(self, used: set[str]) -> Iterator[None]:
        """A loop over the block's threads. used: the names of the indices that its body needs."""
        if self.in_order:
            with self.under("for _turn in range(_threads):"):
                self("_thread = _order[_turn]", FROM_LINEAR)
                if "_lane" in used:
                    self("_lane = _thread & 31")
                yield
            return
        # Every loop costs time to compile, so the rows of a block are counted in one if their place is not asked for.
        flat = not used & {"_ty", "_tz"}
        rows = ["for _row in range(_bdz * _bdy):"] if flat else ["for _tz in range(_bdz):", "for _ty in range(_bdy):"]
        with self.under(*rows, "for _tx in range(_bdx):"):
            if used & {"_thread", "_lane"}:
                self("_thread = _row * _bdx + _tx" if flat else TO_LINEAR)
            if "_lane" in used:
                self("_lane = _thread & 31")
            yield

    def for_all(self, array: str, value: str) -> None:
        """Write a loop that sets every thread's entry of `array` to `value`."""
        with self.under("for _thread in range(_threads):"):
            self(f"{array}[_thread] = {value}")
