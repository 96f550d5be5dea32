"""Several passes over all measurements, each in a process of its own, and the noise that they show.

In one process, twenty measurements of the same call lie within a percent of each other; in the next process they are
all five percent higher. Its arrays have other addresses, and other programs run on the machine. So the spread within
one process does not tell how far another run will differ. Everything is measured in several passes, minutes apart, and
the noise of a ratio is computed from the differences between the passes.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from shared.bench.measuring.noise import noise
from shared.bench.measuring.rows import BenchRow
from shared.bench.measuring.timing import Measurement


def merge(passes: Iterable[BenchRow]) -> list[BenchRow]:
    """The rows of all passes, one after the other -> one row for each thing, in the order of their first appearance.

    A value is the median of the passes' values. What one pass skipped and another measured counts as measured.
    """
    found: dict[object, list[BenchRow]] = {}
    for row in passes:
        found.setdefault(row.key, []).append(row)
    return [_merged(rows) for rows in found.values()]


def _merged(rows: Sequence[BenchRow]) -> BenchRow:
    measured = [row for row in rows if row.skipped is None]
    if not measured:
        return rows[0]
    first = measured[0]
    ratios = [row.ratio for row in measured if row.ratio is not None]
    against = _columns([row.against for row in measured])
    peaks = [row.peak for row in measured if row.peak is not None]
    measurements = [row.measurement for row in measured if row.measurement]
    return replace(
        first,
        measurement=_pooled(measurements) if measurements else None,
        ratio=statistics.median(ratios) if ratios else None,
        ratio_noise=noise(ratios),
        against={name: statistics.median(values) for name, values in against.items()},
        against_noise={name: n for name, values in against.items() if (n := noise(values)) is not None},
        peak=statistics.median(peaks) if peaks else None,
        accuracy=_median([row.accuracy for row in measured if row.accuracy is not None]),
        memory=_whole(_median([row.memory for row in measured if row.memory is not None])),
        passes=len(measured),
    )


def _pooled(measurements: Sequence[Measurement]) -> Measurement:
    """Medians of medians and of quartiles; the fastest of all; as many samples as there were."""

    def median(name: str) -> float:
        return statistics.median(getattr(each, name) for each in measurements)

    return Measurement(
        median("median"),
        median("lower"),
        median("upper"),
        min(each.fastest for each in measurements),
        sum(each.samples for each in measurements),
        measurements[0].calls,
        all(each.settled for each in measurements),
    )


def _columns(rows: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row[name] for row in rows if name in row] for name in names}


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
