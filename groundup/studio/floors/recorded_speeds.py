"""The recorded times of one function on several stages, like beside like: one machine, one case, one dtype.

    alike(room, name)    the times of a function or of a ladder's rungs, a group for each machine
    python -m groundup.studio.floors.recorded_speeds
                         makes recorded.json again from docs/benchmarks

recorded.json lies beside this file and holds a few numbers of each record, so that an installed package, which has no
docs, shows the same. Of stage 4 only a GPU's times are in it, never the emulator's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from groundup.studio.floors import source
from groundup.studio.floors.rooms import LADDERS
from shared.contract import STAGES, short_title
from shared.machine.processes import ROOT
from shared.numbers import as_fast, duration

PATH = Path(__file__).with_name("recorded.json")
DOCS = ROOT / "docs" / "benchmarks"

CASES = {"step": "784-128-10, batch 64", "convolution": "6x14x14 by 16 of 5x5"}
SIDES = (128, 512)
"""Of the ladders' square matrices."""

LADDER_OF = {"matmul": "matmul ladder", "conv2d": "conv2d ladder", "Network.train_step": "train_step ladder"}
"""Function -> the ladder of whose rungs it takes the last one that suits."""

KINDS = {"matmul": ("ladder", ""), "convolution": ("convolution", "forward"), "steps": ("step", "")}
"""File with a ladder -> (kind, part) of its times."""

Time = dict[str, Any]
"""stage; kind: "op", "ladder", "convolution" or "step", as in a results file; name: of the operation, else of the rung;
part: "forward", "backward", "step" or ""; case: on how much, and in which numbers; seconds: the median"""


@cache
def records(path: Path = PATH) -> list[dict[str, Any]]:
    """The sources: "file" below docs/benchmarks, "title", the machine and the day, and "times"."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["records"]
    return found


@cache
def alike(room: str, name: str) -> list[dict[str, Any]]:
    """For each record that has the function its "file", "title", "case" and "bars": the times of the case that most stages
    have, the lowest stage first, each with what stands beside its bar."""
    found = []
    for record in records():
        cases: dict[str, list[Time]] = {}
        for each in record["times"]:
            if _is_of(each, room, name):
                cases.setdefault(each["case"], []).append({**each, "rung": each["name"] if each["kind"] != "op" else ""})
        if cases:
            bars = max(cases.values(), key=lambda times: len({each["stage"] for each in times}))
            bars = bars if name in LADDERS else list({each["stage"]: each for each in _slowest_first(bars, name)}.values())
            about = {name: record[name] for name in ("file", "title")}
            found.append({**about, "case": bars[0]["case"], "bars": [_bar(each, bars[0]) for each in bars]})
    return found


def _bar(each: Time, first: Time) -> dict[str, Any]:
    factor = first["seconds"] / each["seconds"]
    compared = "" if each is first else f"{as_fast(factor)} as {_label(first)}"
    told = {"label": _label(each).capitalize(), "time": duration(each["seconds"]), "compared": compared}
    return {"stage": each["stage"], "seconds": each["seconds"], **told}


def _label(each: Time) -> str:
    return " ".join(filter(None, (short_title(each["stage"], False), each["rung"])))


def _is_of(each: Time, room: str, name: str) -> bool:
    file = LADDERS.get(LADDER_OF.get(name, name))
    if file:
        return (each["kind"], each["part"]) == KINDS[file]
    if name == "conv2d_backward":
        return (each["kind"], each["part"]) == ("convolution", "backward")
    own, _, method = name.partition(".")
    own = room if own == "Dense" else own
    part = method or ("backward" if name.endswith("_backward") else "forward")
    return (each["kind"], each["name"], each["part"]) == ("op", own.removesuffix("_backward"), part)


def _slowest_first(times: list[Time], name: str) -> list[Time]:
    """In the order of the rungs, so that the last time of a stage is that of the rung in use."""
    if name not in LADDER_OF:
        return times
    rungs = [rung for stage in STAGES for rung in source.ladder(stage, LADDERS[LADDER_OF[name]])]
    return sorted(times, key=lambda each: rungs.index(each["name"]) if each["name"] in rungs else -1)


def collected(docs: Path = DOCS) -> dict[str, Any]:
    """What recorded.json holds, from the records in docs/benchmarks."""
    return {"records": [*_benchmarks(docs), *_gpu(docs)]}


def _benchmarks(docs: Path) -> Iterator[dict[str, Any]]:
    from shared.bench.records.document import load
    from shared.machine.environment import describe

    for file in ("bench-2-threads/results.json", "convolutions/results.json"):
        results = load(docs / file)
        times = [time for row in results.rows if row.measurement and not row.emulated for time in _times(row)]
        times.sort(key=lambda each: STAGES.index(each["stage"]))
        yield {"file": file, "title": describe(results.environment), "times": times}


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
        yield _time(row.stage, row.kind, name, row.part, f"{case}, {row.dtype}", row.measurement.median)


def _time(stage: str, kind: str, name: str, part: str, case: str, seconds: float) -> Time:
    return {"stage": stage, "kind": kind, "name": name, "part": part, "case": case, "seconds": seconds}


def _gpu(docs: Path) -> Iterator[dict[str, Any]]:
    from shared.bench.on_gpu import gpu_record

    folder = gpu_record.newest(docs / "gpu")
    if folder is None:
        return
    record: dict[str, Any] = gpu_record.extract(folder)
    times = [
        _time(STAGES[3], "ladder", row["rung"], "", f"{size:,} by {size:,}, float32", 2 * size**3 / (1e12 * row["tflops"]))
        for row in record["ladder"]
        for size in (row["size"],)
        if row["precision"] == "float32" and row["rung"] != "cuBLAS"
    ]
    times += [
        _time(STAGES[3], "step", row["who"], "", f"{CASES['step']}, float32", row["median"])
        for row in record["steps"]
        if (row["network"], row["batch"]) == ([784, 128, 10], 64) and "PyTorch" not in row["who"]
    ]
    file = (folder / gpu_record.REPORT).relative_to(docs).as_posix()
    yield {"file": file, "title": f"{record['device']} · {record['date']}", "times": times}


if __name__ == "__main__":
    from shared.machine.results import write_json

    print(f"Written: {write_json(PATH, collected())}")
