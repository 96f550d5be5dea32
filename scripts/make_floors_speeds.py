"""Makes groundup/studio/floors/recorded.json, the times that the studio's page Floors shows, from docs/benchmarks.

    python scripts/make_floors_speeds.py

The file holds a few numbers of each record, so that an installed package, which has no docs, shows them, too. For each
function and ladder it has the times of the case that most stages have, like beside like: one machine, one case, one
dtype; and of another case only if a further stage has that. Of stage 4 it has only a GPU's times, never the emulator's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from groundup.studio.floors import source
from groundup.studio.floors.columns import SPEEDS
from groundup.studio.floors.rooms import FUNCTIONS, LADDERS
from shared.bench.on_gpu import gpu_record
from shared.bench.records.document import load
from shared.contract import STAGES, short_title
from shared.machine.environment import describe
from shared.machine.processes import ROOT
from shared.machine.results import write_json
from shared.numbers import as_fast, duration

DOCS = ROOT / "docs" / "benchmarks"
RESULTS = ("bench-2-threads/results.json", "convolutions/results.json")

CASES = {"step": "784-128-10, batch 64", "convolution": "6x14x14 by 16 of 5x5"}
SIDES = (128, 512)
"""Of the ladders' square matrices."""

LADDER_OF = {called: ladder for ladder, (_, called) in LADDERS.items()}
"""Function -> the ladder of whose rungs it takes the last one that suits."""

KINDS = {"matmul": ("ladder", ""), "convolution": ("convolution", "forward"), "steps": ("step", "")}
"""File with a ladder -> (kind, part) of its times."""


class Time(NamedTuple):
    """One time. kind: "op", "ladder", "convolution" or "step", as in a results file; name: of the operation, or of the
    rung; case: on how much, and in which numbers; seconds: the median; threads: that computed."""

    stage: str
    kind: str
    name: str
    part: str
    case: str
    seconds: float
    threads: int = 1

    @property
    def label(self) -> str:
        """'stage 1', or 'stage 1 index_loops' for a rung; 'stage 2, 2 threads'."""
        label = " ".join(filter(None, (short_title(self.stage, False), self.name if self.kind != "op" else "")))
        return f"{label}, {self.threads} threads" if self.threads > 1 else label


def collected(docs: Path = DOCS) -> dict[str, list[dict[str, Any]]]:
    """Function or ladder -> for each machine "title", "file", "case" and "bars", the lowest stage first."""
    records = [*_benchmarks(docs), *_gpu(docs)]
    speeds = {}
    for room, name in ((room, name) for room, names in FUNCTIONS.items() for name in names):
        groups = []
        for about, times in records:
            cases: dict[str, list[Time]] = {}
            for time in times:
                if _is_of(time, room, name):
                    cases.setdefault(time.case, []).append(time)
            shown: set[str] = set()
            for case in sorted(cases.values(), key=lambda case: -len({time.stage for time in case})):
                if not {time.stage for time in case} <= shown:
                    bars = case if name in LADDERS else _in_use(case, name)
                    groups.append({**about, "case": bars[0].case, "bars": [_bar(time, bars[0], name) for time in bars]})
                    shown |= {time.stage for time in case}
        if groups:
            speeds[name] = groups
    return speeds


def _bar(time: Time, first: Time, name: str) -> dict[str, Any]:
    other = "the first" if name in LADDERS else short_title(first.stage, False)
    compared = "" if time is first else f"{as_fast(first.seconds / time.seconds)} as {other}"
    told = {"label": time.label.capitalize(), "time": duration(time.seconds), "compared": compared}
    return {"stage": time.stage, "seconds": time.seconds, **told}


def _is_of(time: Time, room: str, name: str) -> bool:
    if ladder := name if name in LADDERS else LADDER_OF.get(name):
        return (time.kind, time.part) == KINDS[LADDERS[ladder][0]]
    if name == "conv2d_backward":
        return (time.kind, time.part) == ("convolution", "backward")
    own, _, method = name.partition(".")
    own = room if own == "Dense" else own
    part = method or ("backward" if name.endswith("_backward") else "forward")
    return (time.kind, time.name, time.part) == ("op", own.removesuffix("_backward"), part)


def _in_use(times: list[Time], name: str) -> list[Time]:
    """One time of each stage, that of its last rung."""
    file = LADDERS[LADDER_OF[name]][0] if name in LADDER_OF else ""
    rungs = [rung for stage in STAGES for rung in source.ladder(stage, file)] if file else []
    ordered = sorted(times, key=lambda time: rungs.index(time.name) if time.name in rungs else -1)
    return sorted({time.stage: time for time in ordered}.values())


def _benchmarks(docs: Path) -> Iterator[tuple[dict[str, str], list[Time]]]:
    for file in RESULTS:
        results = load(docs / file)
        times = [time for row in results.rows if row.measurement and not row.emulated for time in _times(row)]
        times.sort(key=lambda time: STAGES.index(time.stage))
        yield {"file": file, "title": describe(results.environment)}, times


def _times(row: Any) -> Iterator[Time]:
    """A row of a benchmark, if it is one of the cases that are shown."""
    if row.stage not in STAGES:
        return
    name, case = row.name, ""
    if row.kind == "op" and row.dtype == "float64":
        case = " by ".join(map(str, row.shape))
    elif row.kind == "ladder" and row.dtype == "float64" and row.shape[0] in SIDES:
        case = f"{row.shape[0]} by {row.shape[0]}"
    elif row.name.startswith(CASES.get(row.kind, "\n")):
        name, case = row.variant, row.name
    if case:
        yield Time(row.stage, row.kind, name, row.part, f"{case}, {row.dtype}", row.measurement.median, row.threads)


def _gpu(docs: Path) -> Iterator[tuple[dict[str, str], list[Time]]]:
    folder = gpu_record.newest(docs / "gpu")
    if folder is None:
        return
    record: dict[str, Any] = gpu_record.extract(folder)
    times = []
    for row in record["ladder"]:
        if row["precision"] == "float32" and row["rung"] != "cuBLAS":
            case, seconds = (
                f"{row['size']:,} by {row['size']:,}, float32",
                2 * row["size"] ** 3 / (1e12 * row["tflops"]),
            )
            times.append(Time(STAGES[3], "ladder", row["rung"], "", case, seconds))
    for row in record["steps"]:
        if (row["network"], row["batch"]) == ([784, 128, 10], 64) and "PyTorch" not in row["who"]:
            times.append(Time(STAGES[3], "step", row["who"], "", f"{CASES['step']}, float32", row["median"]))
    file = (folder / gpu_record.REPORT).relative_to(docs).as_posix()
    yield {"file": file, "title": f"{record['device']} · {record['date']}"}, times


if __name__ == "__main__":
    print(f"Written: {write_json(SPEEDS, collected())}")
