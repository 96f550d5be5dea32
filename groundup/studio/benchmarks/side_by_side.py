"""What the page Benchmarks shows of one results file, or of two beside each other.

document(mine, other)     the bars of each work, and the comparison of `groundup bench compare`, ready for JSON
common_work(one, other)   how much both measured of what either did

A work is what several contenders did alike: the same network, batch and type of numbers. Its bars show times, or how
many times as fast a contender is as the first one, which can be compared between two machines. The emulator's times
are shown as times, marked, and never as a speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, permutations
from typing import Any, NamedTuple

from shared.bench.measuring.rows import LIBRARIES, BenchRow
from shared.bench.records import compare as comparing
from shared.bench.records.document import Results
from shared.contract import STAGE_TITLES, STAGES
from shared.machine.environment import describe
from shared.numbers import as_fast, duration, listed, plural, three_digits

WORKS = {
    "epoch": "An epoch of training",
    "step": "A training step",
    "inference": "Predictions of a batch",
    "ladder": "The square matrix product, rung by rung",
    "product": "A product of a network",
    "convolution": "A convolution of a network",
    "integer": "A product in eight bits",
}
"""Kind of a row that has bars -> what was done, in the page's order."""

PLACES = [*STAGES, *LIBRARIES]

YOURS, RECORDED, OTHER = LABELS = {"your run": "Yours", "the recorded run": "Recorded", "the other run": "Other"}
"""What a file is in a sentence -> before its bar and above its column."""


class Side(NamedTuple):
    """One of the two files. code and name: of its entry; word: one of LABELS."""

    code: str
    name: str
    word: str
    results: Results

    def about(self) -> dict[str, str]:
        """Its names, and its machine and day."""
        threads = self.results.environment.get("threads")
        parts = [describe(self.results.environment), *([plural(threads, "thread")] if threads else [])]
        parts += [] if self.results.complete else ["interrupted: some numbers are missing"]
        return {"code": self.code, "name": self.name, "label": LABELS[self.word], "about": " · ".join(parts)}


def document(mine: Side, other: Side | None) -> dict[str, Any]:
    """All that the page shows."""
    sides = [mine, other] if other else [mine]
    measured = [_measured(side.results) for side in sides]
    order = list(WORKS.values())
    works = [_work(work, [rows.get(work, {}) for rows in measured]) for work in dict.fromkeys(chain(*measured))]
    return {
        "sides": [side.about() for side in sides],
        "works": sorted(works, key=lambda work: (not work["common"], order.index(work["group"]))),
        "comparison": _comparison(other, mine) if other else None,
    }


def common_work(one: Results, other: Results) -> float:
    """The share that both measured of what either did, a contender at a work being one."""
    here, there = ({(work, who) for work, rows in _measured(each).items() for who in rows} for each in (one, other))
    return len(here & there) / max(1, len(here | there))


def _measured(results: Results) -> dict[tuple[str, str, str], dict[str, BenchRow]]:
    """(kind, case, dtype) -> contender -> its row, the stages in their order and the libraries behind them."""
    rows = [row for row in results.rows if row.kind in WORKS and row.measurement]
    found: dict[tuple[str, str, str], dict[str, BenchRow]] = {}
    for row in sorted(rows, key=lambda row: PLACES.index(row.stage)):
        is_ladder = row.kind == "ladder"  # whose name is the rung
        case = f"{row.shape[0]:,} by {row.shape[0]:,}" if is_ladder else f"{row.name} {row.part}".strip()
        who = {**STAGE_TITLES, **LIBRARIES}[row.stage]
        who += f", {row.name if is_ladder else row.variant}".removesuffix(", ")
        who += ", emulated on the CPU: not the time of a GPU" if row.emulated else ""
        found.setdefault((row.kind, case, row.dtype), {}).setdefault(who, row)
    return found


def _work(work: tuple[str, str, str], sides: Sequence[Mapping[str, BenchRow]]) -> dict[str, Any]:
    """The bars of one work. base: the contender that the others are set beside; None where there is none"""
    rows = {who: row for side in reversed(sides) for who, row in side.items()}
    order = sorted(rows, key=lambda who: PLACES.index(rows[who].stage))
    own = [who for who in order if not rows[who].emulated and all(who in side for side in sides if side)]
    base = own[0] if len(order) > 1 and own else ""
    return {
        "group": WORKS[work[0]],
        "title": f"{work[1]}, {work[2]}",
        "common": any(all(who in side for side in sides) for who in order),
        "base": base,
        "contenders": [
            {"who": who, "stage": rows[who].stage, "bars": [_bar(side.get(who), side.get(base)) for side in sides]}
            for who in order
        ],
    }


def _bar(row: BenchRow | None, base: BenchRow | None) -> dict[str, Any] | None:
    """length: times as fast as the base; without one, the speed itself; 0 for the emulator"""
    if row is None or not row.seconds:
        return None
    if row.emulated or base is None or not base.seconds:
        return {"length": 0 if row.emulated else 1 / row.seconds, "text": duration(row.seconds)}
    length = base.seconds / row.seconds
    factor = "" if row is base else f"{three_digits(length)} times · "
    return {"length": length, "text": f"{factor}{duration(row.seconds)}"}


def _comparison(old: Side, new: Side) -> dict[str, Any]:
    """What `groundup bench compare` says, in one table."""
    found = comparing.compare(old.results, new.results)
    groups = {name.replace("unknown", "without a verdict"): each for name, each in comparing.by_verdict(found).items()}
    counts = [f"{name} in {len(group)}" for name, group in groups.items() if group]
    here, there = (len(comparing.only_in(*pair)) for pair in permutations((new.results, old.results)))
    return {
        "warnings": comparing.warnings(old.results, new.results, (old.word, new.word)),
        "summary": f"Of {plural(len(found), 'result')} of both, {new.word} is {listed(counts) or 'compared in none'}; "
        f"{here:,} more are in {new.word} alone, {there:,} in {old.word}.",
        "rows": [_row(each) for each in found],
    }


def _row(each: comparing.Difference) -> list[str]:
    """The cells of a row of the table, and behind them what its multiples are multiples of."""
    cells = [each.verdict, f"{comparing.title(each.new)}, {each.new.dtype}", each.new.contender]
    if (change := each.shown) is None:
        return [*cells, "", "", "", ""]
    noise = comparing.noise_of(change)
    cells += [comparing.number_text(each, value, " times") for value in (change.new, change.old)]
    cells += [f"{as_fast(1 / change.factor)}{noise and f' ± {noise}'}"]
    return [*cells, f"its time over that of {each.reference}: less is faster" if each.basis == "ratio" else ""]
