"""The roofs of this machine: how fast it can compute at most, and how fast it can move bytes, by how many there are.

Both are measured (shared/bench/kinds/machine.py), with as many threads as the profiled step may use: a loop that only
multiplies and adds in registers, and the triad a = b + s c over arrays that fit a cache or do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.bench.kinds.machine import bandwidth_rows, peak_rows
from shared.contract import Stage
from shared.numbers import size_of

REPEATS = 5
PEAK_REPEATS = 25
"""The peak is the fastest sample, so that more of them only bring it nearer to the truth."""

MEMORY = "memory"


@dataclass(frozen=True)
class Roofs:
    """The measured peaks and bandwidths of a machine.

    on: the stage that did it; "" for none
    peak: dtype -> operations a second of one core, or of a whole GPU
    bandwidth: (bytes, bytes a second) of arrays of so many bytes together on `threads` threads, ascending;
        bandwidth_of_one: the same on one thread
    """

    on: str = ""
    threads: int = 1
    peak: Mapping[str, float] = field(default_factory=dict)
    bandwidth: Sequence[tuple[int, float]] = ()
    bandwidth_of_one: Sequence[tuple[int, float]] = ()

    def as_dict(self) -> dict[str, Any]:
        """The roofs as values for JSON, as the profile's file holds them."""
        lists = {name: [list(pair) for pair in getattr(self, name)] for name in ("bandwidth", "bandwidth_of_one")}
        return {"on": self.on, "threads": self.threads, "peak": dict(self.peak), **lists}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Roofs:
        """The roofs from the values that `as_dict` made."""
        lists = {name: tuple((b, s) for b, s in saved[name]) for name in ("bandwidth", "bandwidth_of_one")}
        return cls(saved["on"], saved["threads"], dict(saved["peak"]), **lists)

    def peak_of(self, dtype: str, threads: int) -> float | None:
        """Operations a second of so many threads; None where it was not measured."""
        one = self.peak.get(dtype)
        return None if one is None else one * threads

    def roof_of(self, size: int, threads: int) -> tuple[str, float] | None:
        """(its name, bytes a second) of the smallest measured memory that holds so many bytes; None for none at all."""
        measured = self.bandwidth if threads > 1 else self.bandwidth_of_one
        for place, (holds, speed) in enumerate(measured):
            last = place + 1 == len(measured)
            if size <= holds or last:
                return (MEMORY if last else size_of(holds)), speed
        return None


def measured(stage: Stage, threads: int) -> Roofs:
    """The roofs that the stage can measure; empty ones where it cannot."""
    peaks = {row.dtype: row.peak for row in peak_rows([stage], repeats=PEAK_REPEATS) if row.peak is not None}
    found: dict[int, list[tuple[int, float]]] = {1: [], threads: []}
    for row in bandwidth_rows([stage], threads=threads, repeats=REPEATS):
        if row.seconds:
            found[row.threads].append((row.shape[0], row.bytes / row.seconds))
    return Roofs(stage.name if peaks else "", threads, peaks, tuple(sorted(found[threads])), tuple(sorted(found[1])))
