"""`groundup bench compare`: the differences between two results files, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from shared.bench.measuring.rows import BenchRow
from shared.bench.records.compare import (
    HEADINGS,
    SAME,
    Change,
    Difference,
    as_document,
    by_verdict,
    compare,
    fact_text,
    machines,
    noise_of,
    number_text,
    only_in,
    title,
    warnings,
)
from shared.bench.records.document import Results, load
from shared.machine.environment import describe
from shared.machine.results import as_json
from shared.terminal import TextConsole, Whole, say

LISTED = 12
"""The largest number of rows of only one file that are named."""


def bench_compare_command(old: Path, new: Path, all_: bool, as_json: bool) -> None:
    """Print the differences between two results files. all_: equal rows, too; as_json: print JSON instead of tables."""
    before, after = load(old), load(new)
    if as_json:
        say(_json(before, after), nl=False)
        return
    console = TextConsole()

    def tell(text: str, **style: Any) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True, **style)

    tell(f"old: {old}: {_origin(before)}")
    tell(f"new: {new}: {_origin(after)}")
    for warning in warnings(before, after):
        tell(f"warning: {warning}")
    if differing := machines(before, after):
        tell("\nWhat else differs", style="bold")
        console.print(Whole(_facts(differing)), crop=False)
    groups = by_verdict(compare(before, after))
    for (verdict, basis), heading in HEADINGS.items():
        mine = [difference for difference in groups[verdict] if basis in ("", difference.basis)]
        if mine and (all_ or verdict != SAME):
            tell(f"\n{heading}", style="bold")
            console.print(Whole(_table(mine)), crop=False)
    tell("")
    for text in _summary(groups, all_):
        tell(text)
    for rows, which in ((only_in(before, after), "old"), (only_in(after, before), "new")):
        if rows:
            tell(f"only in the {which} file: {_names(rows)}")


def _json(before: Results, after: Results) -> str:
    return as_json(as_document(before, after))


def _origin(results: Results) -> str:
    facts = results.environment
    revision = facts.get("revision")
    return describe(facts) + (f" · revision {revision}" if revision else "")


def _facts(differing: Sequence[tuple[str, Any, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("fact", "old", "new"):
        table.add_column(heading, overflow="fold")
    for name, one, other in differing:
        table.add_row(name.replace("_", " "), fact_text(one), fact_text(other))
    return table


def _table(differences: Sequence[Difference]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    table.add_column("what", overflow="fold", ratio=1)
    table.add_column("who", overflow="fold")
    for heading in ("old", "new", "new/old", "±", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in differences:
        shown = each.shown
        table.add_row(
            ", ".join(filter(None, (title(each.new), each.new.dtype))),
            each.new.contender,
            *((number_text(each, shown.old, "x"), number_text(each, shown.new, "x")) if shown else ("-", "-")),
            _factor(shown),
            noise_of(shown, gap=""),
            _factor(each.time),
        )
    return table


def _factor(change: Change | None) -> str:
    return f"{change.factor:.3f}" if change else "-"


def _summary(groups: Mapping[str, Sequence[Difference]], all_: bool) -> Iterator[str]:
    counts = {verdict: len(differences) for verdict, differences in groups.items()}
    total = sum(counts.values())
    if not total:
        yield "Nothing was measured in both."
        return
    hidden = " (--all shows them)" if counts[SAME] and not all_ else ""
    yield f"Of {total} measured in both: " + ", ".join(
        f"{count} {verdict}{hidden if verdict == SAME else ''}" for verdict, count in counts.items()
    )
    if any(each.basis == "ratio" for group in groups.values() for each in group):
        yield "old, new with an x: time as a multiple of what was measured in the same rounds (--json names it)"
    yield "±: how far new/old may be off by chance; of times, which have only their quartiles, more than that"
    yield "time: the median's new/old, which also changes when the machine is slower today"


def _names(rows: Sequence[BenchRow]) -> str:
    names = [f"{title(row)} ({row.contender})" for row in rows[:LISTED]]
    return ", ".join(names) + (f" and {len(rows) - LISTED} more" if len(rows) > LISTED else "")
