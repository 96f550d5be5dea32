"""Compare two results files: which measurements became faster or slower, and which differ only by noise.

    compare(old, new)        a Difference for each measurement in both
    machines(old, new)       what else differs: processor, versions, threads, revision
    as_document, table       the same for JSON and for a terminal

The verdict rests on the ratio to a reference that was measured in the same rounds, because that holds when the machine
is slower today. Its noise comes from the disagreement of several passes; with one pass the verdict is
unknown.
What has no reference is judged by its time, whose noise is taken from the quartiles of its samples. That is less than
another run may find (see `passes`), and says nothing across machines, so there nothing is judged by its time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shared.bench.measuring.noise import agree
from shared.bench.measuring.rows import BenchRow
from shared.bench.records.document import Results
from shared.numbers import duration, noise_text, plural, size_of, three_digits

FASTER, SLOWER, SAME, UNKNOWN = "faster", "slower", "within the noise", "unknown"
VERDICTS = (FASTER, SLOWER, UNKNOWN, SAME)
"""In the order in which they are listed."""

HEADINGS = {
    (FASTER, "ratio"): "Faster than the noise explains",
    (SLOWER, "ratio"): "Slower than the noise explains",
    (FASTER, "time"): "Faster by the clock alone, as all is on a better day of the machine",
    (SLOWER, "time"): "Slower by the clock alone, as all is on a worse day of the machine",
    (UNKNOWN, ""): "Nobody knows how much of it is noise",
    (SAME, ""): "Within the noise",
}
"""(verdict, what it is based on, "" for any) -> heading of its table, in the order of the tables."""

MACHINE = ("cpu", "architecture", "cores", "physical_cores", "memory", "caches", "gpus")
"""Facts of `environment()` that make it another machine."""

_UNTOLD = ("date", "load_average")
"""Facts that differ between any two runs."""


class Change(NamedTuple):
    """One number in both runs. noise: how far the factor may be off by chance, as a share; None if unknown."""

    old: float
    new: float
    old_noise: float | None
    new_noise: float | None

    @property
    def factor(self) -> float:
        """New / old."""
        return self.new / self.old

    @property
    def noise(self) -> float | None:
        """Both runs' noise together, as `agree` adds them."""
        if self.old_noise is None or self.new_noise is None:
            return None
        return (1 + self.old_noise) * (1 + self.new_noise) - 1

    @property
    def verdict(self) -> str:
        """faster, slower, within the noise or unknown; a smaller number is faster."""
        same = agree(self.old, self.old_noise, self.new, self.new_noise)
        return UNKNOWN if same is None else SAME if same else FASTER if self.new < self.old else SLOWER


@dataclass(frozen=True)
class Difference:
    """The change of one row between two runs.

    time: seconds, with the quartiles' noise. ratio: time as a multiple of `reference`, with the passes' noise.
    memory: bytes. Each None where one of the two rows has none.
    basis: what the verdict rests on: "ratio", "time", "memory", or "" for nothing.
    """

    old: BenchRow
    new: BenchRow
    time: Change | None
    ratio: Change | None
    reference: str
    memory: Change | None
    verdict: str
    basis: str

    @property
    def shown(self) -> Change | None:
        """What the verdict rests on; the time or the memory, if it rests on nothing."""
        rests_on = {"ratio": self.ratio, "time": self.time, "memory": self.memory}
        return rests_on.get(self.basis) or self.time or self.memory

    @property
    def factor(self) -> float:
        """New / old of what is shown; 1 where there is nothing."""
        return self.shown.factor if self.shown else 1.0


def compare(old: Results, new: Results) -> list[Difference]:
    """A Difference for each measurement in both files: the largest changes first, those within the noise last."""
    before = {row.key: row for row in old.rows}
    one_machine = same_machine(old, new)
    pairs = [(before[row.key], row) for row in new.rows if row.key in before]
    found = [_difference(*pair, one_machine) for pair in pairs if all(row.skipped is None for row in pair)]
    return sorted(found, key=lambda each: (VERDICTS.index(each.verdict), -abs(math.log(each.factor))))


def only_in(one: Results, other: Results) -> list[BenchRow]:
    """The rows that are in one file only."""
    known = {row.key for row in other.rows if row.skipped is None}
    return [row for row in one.rows if row.skipped is None and row.key not in known]


def machines(old: Results, new: Results) -> list[tuple[str, Any, Any]]:
    """(fact, old, new) for each fact of the environments and of the runs in which they differ, facts of facts apart."""
    before, after = _facts(old), _facts(new)
    names = dict.fromkeys([*before, *after])
    return [(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]


def same_machine(old: Results, new: Results) -> bool:
    """Whether nothing that both tell of their machines differs."""
    one, other = old.environment, new.environment
    return all(one[name] == other[name] for name in MACHINE if one.get(name) and other.get(name))


def warnings(old: Results, new: Results, names: tuple[str, str] = ("the old run", "the new run")) -> list[str]:
    """Warnings about the two files, to be read before the numbers. names: what they are called in them"""
    found = []
    if not same_machine(old, new):
        found.append("the two runs are from different machines: their times cannot be compared, only ratios can")
    for results, name in zip((old, new), names, strict=True):
        if not results.complete:
            found.append(f"{name} was interrupted: some rows rest on fewer passes, others are missing")
        if results.passes < 2:
            found.append(f"{name} is a single pass: its ratios state no noise, so nothing follows from them")
    return found


def as_document(old: Results, new: Results) -> dict[str, Any]:
    """The comparison for JSON; times in seconds, memory in bytes."""
    return {
        "schema": 1,
        "kind": "groundup bench compare",
        "same_machine": same_machine(old, new),
        "warnings": warnings(old, new),
        "environment": [{"fact": name, "old": one, "new": other} for name, one, other in machines(old, new)],
        "differences": [_entry(each) for each in compare(old, new)],
        "only_old": [_identity(row) for row in only_in(old, new)],
        "only_new": [_identity(row) for row in only_in(new, old)],
    }


def _difference(old: BenchRow, new: BenchRow, one_machine: bool) -> Difference:
    time = ratio = memory = None
    if old.measurement and new.measurement:
        time = Change(old.measurement.median, new.measurement.median, _spread(old), _spread(new))
    if old.memory and new.memory:
        memory = Change(old.memory, new.memory, None, None)
    reference, before, after = _relative(old, new)
    if before and after:
        ratio = Change(before[0], after[0], before[1], after[1])
    if ratio:
        verdict, basis = ratio.verdict, "ratio"
    elif time and one_machine:
        verdict, basis = time.verdict, "time"
    elif memory and memory.old == memory.new:
        verdict, basis = SAME, "memory"
    else:
        verdict, basis = UNKNOWN, ""
    return Difference(old, new, time, ratio, reference, memory, verdict, basis)


_Noisy = tuple[float, float | None]


def _relative(old: BenchRow, new: BenchRow) -> tuple[str, _Noisy | None, _Noisy | None]:
    """The reference that both have and their times as multiples of its; what has none is set beside an opponent."""
    if old.ratio and new.ratio and old.reference == new.reference:
        return new.reference, (old.ratio, old.ratio_noise), (new.ratio, new.ratio_noise)
    for opponent in new.against:
        if opponent in old.against:
            before, after = ((1 / row.against[opponent], row.against_noise.get(opponent)) for row in (old, new))
            return opponent, before, after
    return "", None, None


def _spread(row: BenchRow) -> float | None:
    """How far the quartiles lie from the median, as a share of it."""
    if row.measurement is None:
        return None
    median, lower, upper = row.measurement.median, row.measurement.lower, row.measurement.upper
    return max(upper / median, median / lower) - 1


def _facts(results: Results) -> dict[str, Any]:
    """The environment with its inner facts spelt out, and what was asked for."""
    found: dict[str, Any] = {}
    for name, value in results.environment.items():
        if isinstance(value, Mapping):
            found |= {f"{name}, {inner}": fact for inner, fact in value.items()}
        elif name not in _UNTOLD:
            found[name] = value
    return found | {"quick": results.quick, "passes": results.passes, "complete": results.complete}


def _identity(row: BenchRow) -> dict[str, Any]:
    names = ("kind", "stage", "variant", "name", "part", "dtype", "shape", "threads", "emulated")
    return {name: getattr(row, name) for name in names}


def _entry(each: Difference) -> dict[str, Any]:
    def numbers(change: Change | None) -> dict[str, Any] | None:
        return change and {**change._asdict(), "factor": change.factor, "noise": change.noise}

    return {
        **_identity(each.new),
        "verdict": each.verdict,
        "basis": each.basis,
        "reference": each.reference,
        "ratio": numbers(each.ratio),
        "time": numbers(each.time),
        "memory": numbers(each.memory),
    }


def number_text(difference: Difference, value: float, times: str) -> str:
    """One of the two numbers that are shown: a multiple of the reference, a time, or bytes. times: behind a multiple"""
    if difference.basis == "ratio":
        return f"{three_digits(value)}{times}"
    return duration(value) if difference.shown == difference.time else size_of(value)


def noise_of(change: Change | None, gap: str = " ") -> str:
    """How far it may be off by chance: '3 %'; "" if unknown."""
    return "" if change is None or change.noise is None else noise_text(change.noise, gap)


def fact_text(value: object) -> str:
    """A fact about a machine or a run, for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def title(row: BenchRow) -> str:
    """What was measured, for people: 'ladder packed, 512', 'op relu forward, 64 by 128'."""
    words = " ".join(filter(None, (row.kind, row.name, row.part)))
    if row.kind == "bandwidth":
        return f"{words}, {size_of(row.shape[0])}, {plural(row.threads, 'thread')}"
    if row.kind == "ladder":
        return f"{words}, {row.shape[0]:,}"
    return f"{words}, {' by '.join(map(str, row.shape))}" if row.kind == "op" else words


def by_verdict(differences: Sequence[Difference]) -> dict[str, list[Difference]]:
    """Verdict -> its differences, in their order."""
    return {verdict: [each for each in differences if each.verdict == verdict] for verdict in VERDICTS}
