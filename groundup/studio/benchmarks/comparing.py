"""What the page Benchmarks shows of two files: the comparison of `groundup bench compare`.

document(old, new, names)    all of it, ready for JSON
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from groundup.studio.benchmarks.shown import KIND_TITLES, labels, origin
from shared.bench.measuring.rows import BenchRow
from shared.bench.records.compare import (
    HEADINGS,
    Change,
    Difference,
    by_verdict,
    compare,
    machines,
    only_in,
    title,
    warnings,
)
from shared.bench.records.document import Results
from shared.numbers import duration, noise_text, size_of, three_digits


def document(old: Results, new: Results, names: tuple[str, str]) -> dict[str, Any]:
    """The comparison of two files; names: theirs."""
    differences = compare(old, new)
    groups = by_verdict(differences)
    kinds = {each.new.kind for each in differences}
    return {
        "names": list(names),
        "origins": [origin(old.environment), origin(new.environment)],
        "warnings": warnings(old, new),
        "machines": [[name.replace("_", " "), _fact(one), _fact(other)] for name, one, other in machines(old, new)],
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
    judged = each.ratio if each.basis == "ratio" else each.time or each.memory
    return {
        **labels(each.new),
        "title": title(each.new),
        "contender": each.new.contender,
        "basis": each.basis,
        "reference": each.reference if each.basis == "ratio" else "",
        "old": _number(each, judged.old) if judged else "-",
        "new": _number(each, judged.new) if judged else "-",
        "factor": judged.factor if judged and math.isfinite(judged.factor) else None,
        "factor_text": three_digits(judged.factor) if judged else "-",
        "noise": judged.noise if judged else None,
        "noise_text": _noise(judged),
        "time": three_digits(each.time.factor) if each.time else "-",
    }


def _number(each: Difference, value: float) -> str:
    """The number that the verdict rests on: a multiple of the reference, a time, or bytes."""
    if each.basis == "ratio":
        return f"{three_digits(value)} times"
    return duration(value) if each.time else size_of(value)


def _noise(change: Change | None) -> str:
    return "" if change is None or change.noise is None else noise_text(change.noise)


def _names(rows: Sequence[BenchRow]) -> list[str]:
    return [f"{title(row)} ({row.contender})" for row in rows]


def _fact(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
