"""The results files to choose from, read, and their HTML reports.

    given       named on the command line, or in a folder that is
    yours       below the folder runs of the folder in which the studio was started, the newest first
    recorded    the project's own, from docs/benchmarks; none where groundup was installed without its documents

The page names a file by a short code of its path, so no other file can be asked for. A report is drawn anew from its
results file: a report.html that a stranger wrote is not served.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from groundup import race_file
from groundup.studio.benchmarks.side_by_side import OTHER, RECORDED, YOURS, Side, common_work, document
from shared.bench.records import document as bench_file
from shared.bench.records.document import MOST_BYTES, Results
from shared.bench.records.schema import shown
from shared.machine import regular
from shared.machine.processes import ROOT

RECORDS = ROOT / "docs" / "benchmarks"
FIRST = "race-2-cores/results.json"  # is shown to a reader who has none

READERS = {race_file.KIND: race_file.results_of, bench_file.KIND: bench_file.results_of}
GROUPS = {
    "given": "Named on the command line",
    "yours": "Below runs, the newest first",
    "recorded": "Recorded with the project",
}
NAME, NEAREST = "results.json", "nearest"
HEAD, DEEPEST, MOST_FOLDERS = 4096, 4, 20_000

_drawing = Lock()  # matplotlib's style holds for the whole process


class Entry(NamedTuple):
    """A file to choose. name: as it is shown."""

    group: str
    name: str
    path: Path

    @property
    def code(self) -> str:
        """How the page names the file."""
        return hashlib.sha256(os.fsencode(self.path.absolute())).hexdigest()[:16]

    def read(self) -> Results:
        """What the file holds."""
        return read(regular.read(self.path, MOST_BYTES), self.name)


def read(text: bytes, name: str) -> Results:
    """A file of `groundup race` or `groundup bench`. Raises ValueError for any other, with its name and the fault."""
    found = bench_file.object_of(text, name)
    if reader := READERS.get(str(found.get("kind"))):
        return reader(found, name)
    raise ValueError(f"{name}: expected a results file of {' or '.join(READERS)}; got kind {shown(found.get('kind'))}")


@dataclass
class Desk:
    """The files of one studio. folder: where it was started; paths: those of the command line"""

    folder: Path
    paths: Sequence[Path] = ()
    recorded: Path = RECORDS

    def files(self) -> dict[str, Any]:
        """Every file to choose, in the order of GROUPS."""
        found = [{"group": each.group, "name": each.name, "code": code} for code, each in self._entries().items()]
        return {"groups": GROUPS, "files": found, "folder": os.fsencode(self.folder).decode(errors="replace")}

    def shown(self, mine: str, other: str) -> dict[str, Any]:
        """What the page shows of two files. other: NEAREST for the recorded file with most of the same work, or ''"""
        first = self._named(mine)
        side = Side(mine, first.name, RECORDED if first.group == "recorded" else YOURS, first.read())
        second = self._nearest(side) if other == NEAREST else self._named(other) if other else None
        if second is None:
            return document(side, None)
        word = RECORDED if second.group == "recorded" and side.word == YOURS else OTHER
        return document(side, Side(second.code, second.name, word, second.read()))

    def report(self, code: str) -> str:
        """The HTML report: all figures, all tables and the machine."""
        from shared.charts import book  # matplotlib, when a report is asked for
        from shared.charts.report import page

        results = self._named(code).read()
        with _drawing:
            return page.html(results, book.draw(results))

    def _entries(self) -> dict[str, Entry]:
        """Code -> file. A file that is in two groups is in the first."""
        yours = sorted(self._yours(), key=lambda entry: _changed(entry.path), reverse=True)
        found: dict[str, Entry] = {}
        for entry in (*self._given(), *yours, *self._recorded()):
            found.setdefault(entry.code, entry)
        return found

    def _named(self, code: str) -> Entry:
        if entry := self._entries().get(code):
            return entry
        raise ValueError("that file is not there any more: load the page again to see which are")

    def _nearest(self, mine: Side) -> Entry | None:
        found: list[tuple[float, Entry]] = []
        for entry in self._recorded():
            with suppress(ValueError, OSError):  # a record in an older version of the format, or not for our eyes
                found += [(common_work(mine.results, entry.read()), entry)] if entry.code != mine.code else []
        share, nearest = max(found, key=lambda each: each[0], default=(0.0, None))
        return nearest if share else None

    def _given(self) -> Iterator[Entry]:
        """Of whatever kind: opening one says what is wrong with it."""
        for path in (each / NAME if (each / NAME).is_file() else each for each in self.paths):
            if path.suffix == ".json":
                yield Entry("given", os.fsencode(path).decode(errors="replace"), path)

    def _yours(self) -> Iterator[Entry]:
        runs = self.folder / "runs"
        inside = regular.real(runs)
        for place, folders, files in islice(os.walk(runs), MOST_FOLDERS):
            path = Path(place) / NAME
            if len(path.relative_to(runs).parts) > DEEPEST:
                folders.clear()
            if NAME in files and regular.real(path).is_relative_to(inside) and _is_ours(path):
                yield Entry("yours", os.fsencode(path.relative_to(self.folder)).decode(errors="replace"), path)

    def _recorded(self) -> list[Entry]:
        paths = sorted(self.recorded.rglob("*.json"), key=lambda path: (path != self.recorded / FIRST, path))
        return [Entry("recorded", path.relative_to(self.recorded).as_posix(), path) for path in paths if _is_ours(path)]


def _is_ours(path: Path) -> bool:
    """Whether a file says at its beginning that it is of a kind that is read here."""
    with suppress(OSError), regular.opened(path) as file:  # it may be moved away just now, or not for our eyes
        head = file.read(HEAD)
        return any(re.search(rf'"kind"\s*:\s*"{kind}"'.encode(), head) for kind in READERS)
    return False


def _changed(path: Path) -> float:
    """When a file was written, in seconds since 1970; 0 if it is gone since it was listed."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
