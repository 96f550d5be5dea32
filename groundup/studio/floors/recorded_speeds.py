"""The recorded speeds of functions, which the page shows beside their text.

    recorded_times(stage, kind, name, part)
                                         the recorded times of a function, as texts
    python -m groundup.studio.floors.recorded_speeds
                                         makes recorded.json again from docs/benchmarks

recorded.json lies beside this file and holds a few numbers of each record, so that an installed package, which has no
docs, shows the same. Of stage 4 only a GPU's times are shown, never the emulator's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from shared.contract import STAGES, short_title
from shared.machine.processes import ROOT
from shared.numbers import as_fast, duration, quantity

PATH = Path(__file__).with_name("recorded.json")
DOCS = ROOT / "docs" / "benchmarks"

CONVOLUTION = "6x14x14 by 16 of 5x5"
NETWORK = "784-128-10, batch 64"
SIDES = (128, 512)
"""Of the ladders' square matrices."""


@dataclass(frozen=True)
class Time:
    """One recorded time.

    kind: "op", "ladder", "convolution" or "step", as in a results file; name, part: of the operation; for the others
        name is the rung
    case: on how much, and in which numbers; seconds: the median; flops: of one call, 0 where nobody counted
    """

    stage: str
    kind: str
    name: str
    part: str
    case: str
    seconds: float
    flops: int = 0


@dataclass(frozen=True)
class Record:
    """One source of times. file: below docs/benchmarks; title: the machine and the day"""

    file: str
    title: str
    times: Sequence[Time]


@cache
def records(path: Path = PATH) -> list[Record]:
    """All sources of recorded times."""
    found = json.loads(path.read_text(encoding="utf-8"))["records"]
    return [Record(each["file"], each["title"], [Time(**time) for time in each["times"]]) for each in found]


def recorded_times(stage: str, kind: str, name: str, part: str) -> list[str]:
    """The recorded times of a function as texts: '8.14 µs for 64 by 128, float64: 89 times as fast as stage 1'."""
    return [
        _told(each, record)
        for record in records()
        for each in record.times
        if (each.stage, each.kind, each.name, each.part) == (stage, kind, name, part)
    ]


def _told(each: Time, record: Record) -> str:
    speed = f", {quantity(each.flops / each.seconds, 'FLOP/s')}" if each.flops and each.kind != "op" else ""
    text = f"{duration(each.seconds)}{speed} for {each.case}"
    alike = [other for other in record.times if _same(each, other)]  # the lowest floor's first
    if alike[0].stage == each.stage or each.kind == "ladder":
        return text
    first = min((other for other in alike if other.stage == alike[0].stage), key=lambda other: other.seconds)
    factor = first.seconds / each.seconds
    return f"{text}: {as_fast(factor)} as {short_title(first.stage, False)}"


def _same(one: Time, other: Time) -> bool:
    """Whether two times are of the same work; rungs of different floors have different names."""
    names = one.kind in ("convolution", "step") or one.name == other.name
    return names and (one.kind, one.part, one.case) == (other.kind, other.part, other.case)


def collected(docs: Path = DOCS) -> dict[str, Any]:
    """What recorded.json holds, from the records in docs/benchmarks."""
    return {"records": [asdict(each) for each in (*_benchmarks(docs), *_gpu(docs))]}


def _benchmarks(docs: Path) -> Iterator[Record]:
    from shared.bench.records.document import load
    from shared.machine.environment import describe

    for file in ("bench-2-threads/results.json", "convolutions/results.json"):
        results = load(docs / file)
        found = [time for row in results.rows if row.measurement and not row.emulated for time in _time(row)]
        order = sorted(found, key=lambda each: STAGES.index(each.stage))
        yield Record(file, describe(results.environment), order)


def _time(row: Any) -> Iterator[Time]:
    """A row of a benchmark as a Time, if it is one of the cases that are shown."""
    if row.stage not in STAGES:
        return
    name, part, case = row.name, row.part, ""
    if row.kind == "op" and row.dtype == "float64":
        case = " by ".join(map(str, row.shape))
    elif row.kind == "ladder" and row.dtype == "float64" and row.shape[0] in SIDES:
        case = f"{row.shape[0]} by {row.shape[0]}"
    elif row.name.startswith({"step": NETWORK, "convolution": CONVOLUTION}.get(row.kind, "\n")):
        name, case = row.variant, row.name
    if case:
        flops = row.flops if row.kind in ("ladder", "convolution") else 0
        yield Time(row.stage, row.kind, name, part, f"{case}, {row.dtype}", row.measurement.median, flops)


def _gpu(docs: Path) -> Iterator[Record]:
    from shared.bench.on_gpu import gpu_record

    folder = gpu_record.newest(docs / "gpu")
    if folder is None:
        return
    record: Mapping[str, Any] = gpu_record.extract(folder)
    ladder = [
        Time(STAGES[3], "ladder", row["rung"], "", f"{row['size']:,} by {row['size']:,}, float32", seconds, flops)
        for row in record["ladder"]
        if row["precision"] == "float32" and row["rung"] != "cuBLAS"
        for flops in (2 * row["size"] ** 3,)
        for seconds in (flops / (1e12 * row["tflops"]),)
    ]
    steps = [
        Time(STAGES[3], "step", row["who"], "", f"{NETWORK}, float32", row["median"])
        for row in record["steps"]
        if (row["network"], row["batch"]) == ([784, 128, 10], 64) and "PyTorch" not in row["who"]
    ]
    file = (folder / gpu_record.REPORT).relative_to(docs).as_posix()
    yield Record(file, f"{record['device']} · {record['date']}", [*ladder, *steps])


if __name__ == "__main__":
    from shared.machine.results import write_json

    print(f"Written: {write_json(PATH, collected())}")
