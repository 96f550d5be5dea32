"""Which results files there are to choose from, and their texts.

    recorded    the project's own, from docs/benchmarks; none where groundup was installed without its documents
    yours       below the folder runs of the folder in which the studio was started
    given       named on the command line, or in a folder that is
    uploaded    sent by the page, kept in memory

The page names a file by a short code of its path and never by the path itself, so that no other file can be asked for.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from groundup.studio.benchmarks.reading import VERSIONS
from shared.bench.records.document import MOST_BYTES
from shared.machine import regular
from shared.machine.processes import ROOT

RECORDED = ROOT / "docs" / "benchmarks"

NAMES = ("results.json", "profile.json", "gpu_report.json")
"""How the files in a folder of runs are called."""

GROUPS = {
    "given": "Named on the command line",
    "uploaded": "Opened from this page",
    "yours": "Below runs",
    "recorded": "Recorded with the project",
}

FIRST = "bench-2-threads/results.json"
"""The recorded file that holds most, and that the page opens with."""

HEAD = 4096
"""Bytes at the beginning of a file in which its kind and its format's version stand."""

MOST_FILES, MOST_UPLOADS, DEEPEST = 200, 8, 4


@dataclass(frozen=True)
class Entry:
    """A file to choose.

    code: how the page names it; name: as it is shown; kind: as the file says, "" where it says none of ours
    path: None for what the page sent
    version: of the format, where it is another one than is read today, else None
    """

    code: str
    group: str
    name: str
    kind: str
    path: Path | None
    version: int | None = None

    def document(self) -> dict[str, Any]:
        """The entry for the page."""
        name = self.name if self.version is None else f"{self.name} (version {self.version} of the format is not read)"
        return {
            "code": self.code,
            "group": self.group,
            "name": name,
            "kind": self.kind,
            "old": self.version is not None,
        }


@dataclass
class Shelf:
    """The files of one studio. folder: where it was started; paths: those of the command line"""

    folder: Path
    paths: Sequence[Path] = ()
    recorded: Path = RECORDED
    uploads: OrderedDict[str, tuple[str, bytes]] = field(default_factory=OrderedDict)
    lock: Lock = field(default_factory=Lock)

    def entries(self) -> list[Entry]:
        """Every file, the recorded ones first."""
        found = [*self._recorded(), *self._given(), *self._uploaded(), *self._yours()]
        return list({entry.code: entry for entry in found}.values())

    def text(self, code: str) -> tuple[str, bytes]:
        """(name, text) of the file of a code. Raises ValueError for another code, or a file that is too large."""
        with self.lock:
            if code in self.uploads:
                return self.uploads[code]
        for entry in self.entries():
            if entry.code == code and entry.path is not None:
                return entry.name, regular.read(entry.path, MOST_BYTES)
        raise ValueError("that file is not there any more: load the page again to see which are")

    def add(self, name: str, text: str) -> Entry:
        """Keep a file that the page sent; the oldest of more than a few is forgotten."""
        raw = text.encode(errors="replace")
        entry = Entry(_code(f"{name}\n{hashlib.sha256(raw).hexdigest()}"), "uploaded", _short(name), "", None)
        with self.lock:
            self.uploads[entry.code] = (entry.name, raw)
            while len(self.uploads) > MOST_UPLOADS:
                self.uploads.popitem(last=False)
        return entry

    def _recorded(self) -> Iterator[Entry]:
        paths = [path for path in sorted(self.recorded.rglob("*.json")) if path.is_file()]
        for path in sorted(paths, key=lambda each: each != self.recorded / FIRST):
            yield from _entry(path, "recorded", path.relative_to(self.recorded).as_posix())

    def _given(self) -> Iterator[Entry]:
        inside = [path / name for path in self.paths for name in NAMES if (path / name).is_file()]
        for path in [*self.paths, *inside]:
            if path.suffix == ".json":
                yield Entry(_code(str(path.absolute())), "given", str(path), _kind(path)[0], path)

    def _uploaded(self) -> Iterator[Entry]:
        with self.lock:
            kept = list(self.uploads.items())
        for code, (name, raw) in kept:
            yield Entry(code, "uploaded", name, _kind_in(raw[:HEAD])[0], None)

    def _yours(self) -> Iterator[Entry]:
        runs = self.folder / "runs"
        inside = regular.real(runs)
        number = 0
        for place, folders, files in os.walk(runs):
            depth = len(Path(place).relative_to(runs).parts)
            folders[:] = sorted(folders) if depth < DEEPEST else []
            for file in sorted(set(files).intersection(NAMES)):
                path = Path(place) / file
                if regular.real(path).is_relative_to(inside) and number < MOST_FILES:
                    for entry in _entry(path, "yours", path.relative_to(self.folder).as_posix()):
                        number += 1
                        yield entry


def _entry(path: Path, group: str, name: str) -> Iterator[Entry]:
    """The entry of a file if it says that it is of one of our kinds; nothing for any other JSON."""
    kind, version = _kind(path)
    if kind:
        yield Entry(_code(str(path.absolute())), group, name, kind, path, version)


def _kind(path: Path) -> tuple[str, int | None]:
    try:
        with regular.opened(path) as file:
            return _kind_in(file.read(HEAD))
    except OSError:  # it was moved away just now, or may not be read: opening it says so
        return "", None


def _kind_in(head: bytes) -> tuple[str, int | None]:
    """(kind, version) that a file states at its beginning: the kind is "" for none of ours, the version None for
    today's."""
    kind, version = re.search(rb'"kind":\s*"([^"]{1,40})"', head), re.search(rb'"schema":\s*(\d{1,4})\b', head)
    told = kind[1].decode(errors="replace") if kind else ""
    if told not in VERSIONS:
        return "", None
    return told, int(version[1]) if version and int(version[1]) not in VERSIONS[told] else None


def _code(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _short(name: str) -> str:
    return Path(name.replace("\\", "/")).name[:120] or "results.json"
