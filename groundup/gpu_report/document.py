"""The document of a GPU report: begun or gone on with, kept after every part, drawn, and recorded.

begun        a new one, or the one that a command before has left in the folder
keep         writes it; if the disk takes nothing, says so and lets the report go on
end          its charts and its goals
record       a copy in a folder of the device and day, for the documentation
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from groundup.gpu_report.commands import BENCH
from shared.bench.on_gpu import gpu_goals, gpu_record
from shared.machine.results import as_json, write_json

JSON_NAME = gpu_record.REPORT
USUAL = ("ladder", "steps", "training")
"""A record without these has its parts in its name, and stands beside the record that has them."""

Document = dict[str, Any]


def begun(out: Path, quick: bool, add: bool) -> Document:
    """A new document; with `add` the one in the folder, if there is one, to which parts are added.

    Raises ValueError where that is no report, or one that was measured in another way: quick, or emulated.
    """
    document: Document = {
        "schema": gpu_record.SCHEMA,
        "kind": gpu_record.KIND,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "complete": True,
        "emulated": None,
        "quick": quick,
        "parts": {},
        "charts": [],
        "seconds": 0.0,
    }
    if add and (out / JSON_NAME).is_file():
        earlier = gpu_record.load(out / JSON_NAME)
        if earlier.get("quick") is not quick:
            raise ValueError(
                f"--add: {out / JSON_NAME} was measured {'' if quick else 'with'}{'out' if quick else ''} --quick"
            )
        document |= earlier
    return document


def fits(document: Document, device: Document) -> str:
    """Why the parts of a document and those of this device belong to two documents; "" where they are one's.

    device: what the part of that name found
    """
    before, now = (each.get("device") or {} for each in (document, device))
    if not before:
        return ""
    revisions = [(each.get("environment") or {}).get("revision") for each in (document, device)]
    if before.get("name") != now.get("name"):
        return f"--add: the report in this folder is of {before.get('name')}, and this device is {now.get('name')}"
    if revisions[0] != revisions[1]:
        return f"--add: the report in this folder is of revision {revisions[0]}, and this is {revisions[1]}"
    return ""


def keep(document: Document, out: Path) -> bool:
    """Write the document; returns whether it was written. On a full disk the rows still stand on the screen."""
    try:
        write_json(out / JSON_NAME, document)
    except OSError as error:
        print(f"{out / JSON_NAME} cannot be written: {error.strerror or error}", file=sys.stderr, flush=True)
        return False
    return True


def end(document: Document, out: Path) -> bool:
    """Draw what there is to draw, judge the goals, and write the document; on the screen where the disk takes nothing.

    Returns whether it was written. Without matplotlib, or where a chart fails, the numbers are there all the same.
    """
    document["goals"] = []
    try:
        goals = gpu_goals.goals(document)
        document["goals"] = [goal._asdict() for goal in goals]
        for line in gpu_goals.lines(goals):
            print(line, flush=True)
    except Exception as error:  # a row that is not as it should be costs only the verdicts
        document["goals_error"] = f"{type(error).__name__}: {error}"
        print(f"goals: not judged: {document['goals_error']}", flush=True)
    document.pop("charts_error", None)
    try:
        from shared.charts.figures.gpu_report import draw

        document["charts"] = draw(document, out)
    except Exception as error:
        document["charts_error"] = f"{type(error).__name__}: {error}"
        print(f"charts: not drawn: {document['charts_error']}", flush=True)
    written = keep(document, out)
    if not written:
        print(as_json(document), flush=True)
    return written


def record(out: Path, document: Document, records: Path = gpu_record.RECORDS) -> Path:
    """Copy the results and the charts to where the documentation keeps them, into a folder of this device and day.

    `python -m shared.bench.on_gpu.gpu_record` then makes the numbers shown beside emulated results. Raises ValueError
    for what no GPU measured, and for a report that cannot be read again.
    """
    if document["emulated"] is not False:
        raise ValueError("record: these are not results of a GPU; docs/benchmarks keeps no others under that name")
    gpu_record.load(out / JSON_NAME)
    name = (document.get("device") or {}).get("name")
    if not isinstance(name, str):
        raise ValueError("record: the report does not say which GPU it is of: its part 'device' has found none")
    device = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    folder = records / f"{device}-{document['date'][:10]}{_which(tuple(document.get('parts', ())))}"
    folder.mkdir(parents=True, exist_ok=True)
    for name in [JSON_NAME, *(chart["file"] for chart in document["charts"])]:
        shutil.copy(out / name, folder / name)
    if (bench := out / BENCH / "results.json").is_file():
        shutil.copy(bench, folder / f"{BENCH}.json")
    return folder


def _which(parts: Sequence[str]) -> str:
    """'-networks' for a record of parts that were asked for, without the usual ones."""
    if not parts or set(USUAL) & set(parts):
        return ""
    named = [name for name in parts if name not in ("device", "compile")]
    return f"-{named[0].partition('_')[0]}" if named else ""


def main() -> int:
    """Draw a report anew, and record it."""
    if len(sys.argv) != 2:
        print("usage: python3 -m groundup.gpu_report.document FOLDER", file=sys.stderr)
        return 2
    out = Path(sys.argv[1])
    try:
        document = gpu_record.load(out / JSON_NAME)
        end(document, out)
        print(f"Recorded in {record(out, document)}")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
