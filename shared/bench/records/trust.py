"""What a reader must know before relying on the numbers of a run; the terminal, the figures and the page say the same.

A median is no better than the minutes in which it was taken. Another program beside the run, or an environment variable
that makes NumPy's BLAS use the instructions of an older processor, spoils every comparison with a library. And a ratio
that comes out otherwise in each pass is no number for a headline.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.bench.measuring.rows import BenchRow
from shared.bench.records.document import Results
from shared.machine.environment import busy, slowed

UNSTEADY = 0.25
"""A noise above this share of a ratio causes a warning, and keeps the ratio out of every headline."""


def doubts(results: Results) -> list[str]:
    """Each reason to doubt the run's numbers as the text of a warning, without a full stop."""
    found = []
    noises = [row.ratio_noise for row in results.rows if row.ratio_noise is not None]
    if unsteady := sum(noise > UNSTEADY for noise in noises):
        found.append(f"{unsteady} of {len(noises)} ratios are not known to better than {UNSTEADY:.0%}")
    return [*found, *spoilt(results)]


def spoilt(results: Results) -> list[str]:
    """The reasons in the machine and its environment: these spoil every comparison with a library."""
    facts = results.environment
    return [text for text in (busy(facts), slowed(facts)) if text] if facts else []


def steady(row: BenchRow) -> bool:
    """Whether a headline may rest on the row: its noise, or after a single pass the spread of its samples, is small."""
    spread = row.measurement.spread if row.measurement else 0.0
    return (spread if row.ratio_noise is None else row.ratio_noise) <= UNSTEADY


def same_reference(rows: Sequence[BenchRow]) -> bool:
    """Whether the rows, each measured beside a reference in its own rounds, agree about how fast that reference is.

    rows: of one product. Where they do not agree, something disturbed the reference while some of them were measured,
    and their ratios to it cannot all be right.
    """
    speeds: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.gflops and row.ratio:
            speeds.setdefault((row.reference, row.dtype), []).append(row.gflops * row.ratio)
    return all(max(found) <= (1 + UNSTEADY) * min(found) for found in speeds.values())
