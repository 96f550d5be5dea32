"""What the page Benchmarks shows of two files: the comparison of `groundup bench compare`.

document(old, new, names)    all of it, ready for JSON
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from groundup.studio.benchmarks.page_document import KIND_TITLES, labels, origin
from shared.bench.measuring.rows import BenchRow
from shared.bench.records.compare import (
    HEADINGS,
    Difference,
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
from shared.bench.records.document import Results
from shared.numbers import three_digits


def document(old: Results, new: Results, names: tuple[str, str]) -> dict[str, Any]:
    """The comparison of two files. names: of the files"""
    differences = compare(old, new)
    groups = by_verdict(differences)
    kinds = {each.new.kind for each in differences}
    return {
        "names": list(names),
        "origins": [origin(old.environment), origin(new.environment)],
        "warnings": warnings(old, new),
        "machines": [
            [name.replace("_", " "), fact_text(one), fact_text(other)] for name, one, other in machines(old, new)
        ],
        "counts": {verdict: len(found) for verdict, found in groups.items()},
        "groups": list(_groups(groups)),
        "kinds": [{"name": kind, "title": text} for kind, text in KIND_TITLES.items() if kind in kinds],
        "only": [_names(only_in(old, new)), _names(only_in(new, old))],
    }


def _groups(groups: dict[str, list[Difference]]) -> Iterator[dict[str, Any]]:
    for (verdict, basis), heading in HEADINGS.items():
        found = [each for each in groups[verdict] if basis in ("", each.basis)]
        if found:
            yield {"verdict": verdict, "heading": heading, "rows": [_row(each) for each in found]}


def _row(each: Difference) -> dict[str, Any]:
    shown = each.shown
    return {
        **labels(each.new),
        "title": title(each.new),
        "contender": each.new.contender,
        "basis": each.basis,
        "reference": each.reference if each.basis == "ratio" else "",
        "old": number_text(each, shown.old, " times") if shown else "-",
        "new": number_text(each, shown.new, " times") if shown else "-",
        "factor": shown.factor if shown and math.isfinite(shown.factor) else None,
        "factor_text": three_digits(shown.factor) if shown else "-",
        "noise": shown.noise if shown else None,
        "noise_text": noise_of(shown),
        "time": three_digits(each.time.factor) if each.time else "-",
    }


def _names(rows: Sequence[BenchRow]) -> list[str]:
    return [f"{title(row)} ({row.contender})" for row in rows]
