"""What the numbers in a traced kernel's events mean, filled in while its text is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class TraceTables:
    """What the numbers in events mean; one for a kernel and its device functions.

    sites: (file, line, column, kind, array, text, function, space)
    counters: (file, line, simple | division | special),
    or ("local", site, 0) for accesses to a thread's own array, which are counted only
    not_traced: (file, line, text, reason); loops: how many there are; calls: how many calls of device functions
    """

    sites: list[tuple[Any, ...]] = field(default_factory=list)
    counters: list[tuple[str, int, int]] = field(default_factory=list)
    not_traced: list[tuple[str, int, str, str]] = field(default_factory=list)
    loops: int = 0
    calls: int = 0

    def counter(self, entry: tuple[str, int, int]) -> int:
        """The number of a counter."""
        if entry not in self.counters:
            self.counters.append(entry)
        return self.counters.index(entry)

    def text(self) -> str:
        """As Python."""
        return repr(
            {
                "sites": self.sites,
                "counters": self.counters,
                "not_traced": list(dict.fromkeys(self.not_traced)),
                "loops": self.loops,
            }
        )
