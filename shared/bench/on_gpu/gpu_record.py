"""What a GPU measured, kept for machines that have none: recorded GPU reports, in every version of their format.

    load(path)         a gpu_report.json, brought to the newest version of the format
    reference()        the numbers that are shown beside emulated results, from recorded_gpu.json; None without it
    beside(...)        these numbers as the rows of a table
    python -m shared.bench.on_gpu.gpu_record
                       makes recorded_gpu.json from the newest record in docs/benchmarks/gpu

A record is a folder with the report as it was written, gpu_report.json, and about.json, which has what the report
could not know: the revision of a checkout without git, numbers that were written down from a terminal, and what the run
lacked. recorded_gpu.json holds a few of the numbers beside this file, so that an installed package has them, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from shared.bench.measuring.rows import BenchRow
from shared.bench.on_gpu import gpu_rules
from shared.bench.records.document import read_json
from shared.bench.records.schema import shown
from shared.bench.records.tables import empty_table
from shared.machine.processes import ROOT
from shared.machine.results import write_json
from shared.numbers import duration, three_digits

KIND = "groundup gpu report"
SCHEMA = 2
"""From 2 on ladder, steps and training are measured by shared/bench: an epoch's row has the fields that a curve of
`groundup bench` has, and cuBLAS's own row only its median. Everything else is as in 1."""

RECORDS = ROOT / "docs" / "benchmarks" / "gpu"
REPORT, ABOUT = "gpu_report.json", "about.json"
REFERENCE = Path(__file__).with_name("recorded_gpu.json")

EPOCH = ("kind", "dataset", "epoch", "train_loss", "test_accuracy", "training_seconds", "seconds")
CUBLAS = ("size", "precision", "reference", "rung", "tflops", "share_of_cublas", "median")
"""The fields of these rows from version 2 on."""


def load(path: Path) -> dict[str, Any]:
    """The report in the newest version of its format, whatever version the file has.

    Raises ValueError, with the file and what is wrong with it, for anything else; OSError where it cannot be read.
    """
    document = read_json(path)
    if document.get("kind") != KIND:
        raise ValueError(f"{path} is no GPU report: expected a JSON object of kind {KIND!r}")
    version = document.get("schema")
    if isinstance(version, bool) or version not in (1, SCHEMA):
        raise ValueError(f"{path}: schema: expected 1 to {SCHEMA}, got {shown(version)}; it needs another groundup")
    gpu_rules.check(document, str(path))
    try:
        return migrated(document) if version == 1 else document
    except KeyError as error:
        raise ValueError(f"{path}: parts: a row of version 1 is without its field {error}") from None


def migrated(document: Mapping[str, Any]) -> dict[str, Any]:
    """A report of version 1 as one of version 2: fields that version 2 lacks are left out, and no number changes."""

    def row(part: str, values: Mapping[str, Any]) -> dict[str, Any]:
        wanted: tuple[str, ...] = tuple(values)
        if part == "training" and values["kind"] == "epoch":
            wanted = EPOCH
        if part == "ladder" and values["rung"] == "cuBLAS":
            wanted = CUBLAS
        return {name: values[name] for name in wanted}

    parts = {
        name: {**part, "rows": [row(name, each) for each in part["rows"]]} for name, part in document["parts"].items()
    }
    return {**document, "schema": SCHEMA, "parts": parts}


@dataclass(frozen=True)
class Reference:
    """A GPU's numbers for machines without one.

    page: where they are written up; device, date, revision: what measured them
    steps: {"network", "batch", "who", "resident", "median"}; ladder: {"size", "precision", "rung", "tflops",
    "share_of_cublas"} of the largest size; training: {"dataset", "seconds", "seconds_to_goal", "goal",
    "test_accuracy"}
    """

    page: str
    device: str
    date: str
    revision: str
    steps: list[dict[str, Any]]
    ladder: list[dict[str, Any]]
    training: list[dict[str, Any]]

    @property
    def title(self) -> str:
        """'NVIDIA H100 80GB HBM3, 2026-11-22, revision aa8f7fd'."""
        return title(vars(self))

    def step(self, network: tuple[int, ...], batch: int, who: str) -> float | None:
        """Seconds of a training step of this contender; None where it was not measured."""
        key = (list(network), batch, who)
        found = (row["median"] for row in self.steps if (row["network"], row["batch"], row["who"]) == key)
        return next(found, None)


def reference(path: Path = REFERENCE) -> Reference | None:
    """The recorded GPU; None where no record lies beside this file."""
    return Reference(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


HEADS = ("recorded on a GPU", "here", "there", "beside it there")


def beside(record: Reference, rows: Sequence[BenchRow]) -> list[tuple[str, ...]]:
    """The rows of a table with the columns HEADS: what the recorded GPU took ("there"), and where `rows` has it what
    the emulator took ("here")."""
    network, batch = (784, 128, 10), 64
    name = f"{'-'.join(map(str, network))}, batch {batch}"
    emulated = {
        row.variant: row.seconds
        for row in rows
        if row.kind == "step" and row.emulated and (row.name, row.dtype) == (name, "float32") and row.seconds
    }
    lines: list[tuple[str, ...]] = []
    text = f"step of {'-'.join(map(str, network))}, {batch} images"
    for who, case in (("graph", text), ("resident", "the same, data on the device")):
        ours, suffix = record.step(network, batch, who), ", resident" if who == "resident" else ""
        theirs = record.step(network, batch, f"PyTorch graph{suffix}")
        if ours and theirs:
            here = duration(emulated[who]) if who in emulated else "-"
            lines.append((case, here, duration(ours), f"{duration(theirs)}, PyTorch graph"))
    plain = [row for row in record.ladder if row["precision"] == "float32" and row["rung"] != "cuBLAS"]
    if plain:
        best = max(plain, key=lambda row: float(row["tflops"]))
        text = f"product of {best['size']:,}³, {best['rung']}"
        lines.append((text, "-", f"{three_digits(best['tflops'])} TFLOP/s", f"{best['share_of_cublas']:.0%} of cuBLAS"))
    for row in record.training:
        if row["seconds_to_goal"] is not None:
            text = f"{row['dataset']}, training until {row['goal']:.0%}"
            lines.append((text, "-", duration(row["seconds_to_goal"]), f"{row['test_accuracy']:.2%} at the end"))
    return lines


def recorded(rows: Sequence[BenchRow], record: Reference) -> Table:
    """What a GPU measured, on another machine, beside the emulator's times in `rows`."""
    table = empty_table([(heading, "right" if i else "left") for i, heading in enumerate(HEADS)])
    for line in beside(record, rows):
        table.add_row(*line)
    return table


def newest(folder: Path = RECORDS) -> Path | None:
    """The record with the latest date of those with rows of all the usual parts; None where there is none. A report of
    other parts alone, and one of which a part failed, lacks what `extract` reads."""
    found = {path.parent: load(path) for path in folder.glob(f"*/{REPORT}")}
    whole = [
        record
        for record, document in found.items()
        if all(document["parts"].get(name, {}).get("rows") for name in ("ladder", "steps", "training"))
    ]
    return max(whole, key=lambda record: str(found[record]["date"]), default=None)


def title(measured: Mapping[str, Any]) -> str:
    """'NVIDIA H100 80GB HBM3, 2026-11-22, revision aa8f7fd'."""
    return f"{measured['device']}, {measured['date']}, revision {measured['revision']}"


def extract(record: Path) -> dict[str, Any]:
    """The fields of `Reference` from a record's folder; the forward pass, which only a checkpoint of the course
    measures, from the newest record beside it that has one."""
    document = load(record / REPORT)
    rows = {name: part["rows"] for name, part in document["parts"].items()}
    largest = max(row["size"] for row in rows["ladder"])
    chosen = {
        "steps": ("network", "batch", "who", "resident", "median"),
        "ladder": ("size", "precision", "rung", "tflops", "share_of_cublas"),
        "training": ("dataset", "network", "batch", "epochs", "seconds", "seconds_to_goal", "goal", "test_accuracy"),
    }
    wanted = {
        "steps": rows["steps"],
        "ladder": [row for row in rows["ladder"] if row["size"] == largest],
        "training": [row for row in rows["training"] if row["kind"] == "summary"],
    }
    return {
        "page": "docs/benchmarks/gpu.md",
        **_measured_by(document, _about(record)),
        **{name: [{field: row[field] for field in chosen[name]} for row in rows] for name, rows in wanted.items()},
    }


def _about(record: Path) -> dict[str, Any]:
    """What the report could not know; nothing where nobody wrote it down."""
    path = record / ABOUT
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _measured_by(document: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, str]:
    revision = about.get("revision") or document["environment"].get("revision") or "unknown"
    return {"device": document["device"]["name"], "date": str(document["date"])[:10], "revision": revision}


if __name__ == "__main__":
    folder = newest()
    if folder is None:
        raise SystemExit(f"there is no record in {RECORDS}")
    print(f"Written: {write_json(REFERENCE, extract(folder))} from {folder}")
