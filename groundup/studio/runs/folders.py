"""Which run folders there are: all below the studio's folder "runs" and below the folders of the command line."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from groundup.studio.answers import Refused
from shared.machine.regular import real

LAST, BEST, METRICS, STEPS, FACTS = FILES = (
    "last.safetensors",
    "best.safetensors",
    "metrics.jsonl",
    "steps.jsonl",
    "run.json",
)
"""The files of a run: shared/training/runs.py, which is not imported here because it takes NumPy along."""

DEPTH = 5
"""Folders below a root that are looked into."""

MOST = 500
"""Runs that are listed, the newest ones."""

RESTS = 1.0
"""The least seconds between two walks through the folders."""

MOST_FOLDERS = 20_000
"""Folders that are looked into: a root may be the whole disk."""


@dataclass(frozen=True)
class RunFolder:
    """One run folder. code: its name in addresses; name: as it is shown; root: the folder that it was found in."""

    code: str
    name: str
    path: Path
    root: Path

    def file(self, name: str) -> Path | None:
        """A file of the run; None if it is missing, in a folder that may not be read, or a link out of the root."""
        path = self.path / name
        try:
            return path if path.is_file() and real(path).is_relative_to(self.root) else None
        except OSError:
            return None

    def changed(self) -> float:
        """When the newest of its files was written, in seconds since 1970; 0 if there is none any more."""
        return max((stat.st_mtime for _, stat in self.stats()), default=0.0)

    def stats(self) -> Iterator[tuple[str, os.stat_result]]:
        """(name, facts) of the files that are there."""
        for name in FILES:
            try:
                yield name, os.stat(self.path / name)
            except OSError:  # missing, or gone since the folder was listed
                continue


class Folders:
    """The run folders of a studio. given: files and folders of the command line; a file stands for its folder."""

    def __init__(self, folder: Path, given: Sequence[Path]) -> None:
        places = [folder / "runs", *(path if path.is_dir() else path.parent for path in given)]
        self.roots = list(dict.fromkeys(real(place) for place in places))
        self._found: dict[str, RunFolder] = {}
        self._again = 0.0
        self._lock = threading.Lock()

    def all(self) -> list[RunFolder]:
        """Every run folder, the one that changed last first; a new one is seen after RESTS seconds or a little more."""
        with self._lock:
            begin = time.monotonic()
            if begin >= self._again:
                self._found = {each.code: each for root in self.roots for each in _below(root)}
                now = time.monotonic()
                self._again = now + max(RESTS, 20 * (now - begin))  # a root with many folders takes long
            found = list(self._found.values())
        return sorted(found, key=RunFolder.changed, reverse=True)[:MOST]

    def named(self, code: str) -> RunFolder:
        """The run folder with this code. Raises Refused if there is none."""
        if code not in self._found:
            self.all()
        if code not in self._found:
            raise Refused("there is no such run; its folder may have been moved or removed", 404)
        return self._found[code]


def _below(root: Path) -> Iterator[RunFolder]:
    # Links to folders are not followed.
    for place, folders, files in islice(os.walk(root), MOST_FOLDERS):
        path = Path(place)
        depth = len(path.relative_to(root).parts)
        folders[:] = sorted(each for each in folders if not each.startswith(".")) if depth < DEPTH else []
        if not {LAST, BEST, METRICS, STEPS}.isdisjoint(files):
            name = root.name if path == root else str(path.relative_to(root))
            code = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
            yield RunFolder(code, name.encode(errors="replace").decode(), path, root)
