"""Tables that explain the numbers in a traced kernel's events; they are filled while its source is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class TraceTables:
    """The tables of a kernel and its device functions.

    sites: (file, line, column, kind, array, text, function, space)
    counters: (file, line, SIMPLE | DIVISION | SPECIAL | DOUBLE) for operations, or ("local", site, 0) for accesses to a
        thread's own array, which are counted and have no events
    not_traced: (file, line, text, reason)
    loops, calls: the number of loops, and of calls of device functions
    """

    sites: list[tuple[Any, ...]] = field(default_factory=list)
    counters: list[tuple[str, int, int]] = field(default_factory=list)
    not_traced: list[tuple[str, int, str, str]] = field(default_factory=list)
    loops: int = 0
    calls: int = 0

    def counter(self, entry: tuple[str, int, int]) -> int:
        """The number of a counter; adds it to the table if it is new."""
        if entry not in self.counters:
            self.counters.append(entry)
        return self.counters.index(entry)

    def text(self) -> str:
        """The tables as a Python expression."""
        return repr(
            {
                "sites": self.sites,
                "counters": self.counters,
                "not_traced": list(dict.fromkeys(self.not_traced)),
                "loops": self.loops,
            }
        )
