"""One part of the GPU report: what it was asked for, what it found so far, and the file that keeps it.

Every part runs in a process of its own, because a kernel that reads where it must not takes the whole process's device
with it. What a part finds is written after every row: a part that crashes or runs out of time loses only the row that
it was at.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shared.bench.results import write_json

from ..backend import BACKEND

NO_GPU = "no GPU"


class Skip(Exception):
    """The part, or what is left of it, cannot be done here; the message says why."""


@dataclass(frozen=True)
class Plan:
    """seconds: what the part may take; quick: fewer sizes and rounds; data_dir: where the full data sets are, None for
    the usual places; tiny: sizes that the emulator, or a GPU under compute-sanitizer, is done with in seconds."""

    seconds: float
    quick: bool = False
    data_dir: Path | None = None
    tiny: bool = BACKEND.emulated


class Part:
    """The rows of one part, kept in a file of JSON.

    file: where they go; None keeps them in memory
    """

    def __init__(self, name: str, plan: Plan, file: Path | None = None) -> None:
        self.name, self.plan, self.file = name, plan, file
        self.rows: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {}
        self.skipped: list[str] = []
        self.status, self.error = "running", ""
        self._begin = time.monotonic()

    @property
    def left(self) -> float:
        """Seconds that the part still has."""
        return self.plan.seconds - (time.monotonic() - self._begin)

    def add(self, line: str = "", **row: Any) -> None:
        """Keep a row. line: the same for the screen."""
        self.rows.append(row | ({"emulated": True} if BACKEND.emulated else {}))
        if line:
            print(f"  {line}{'  (emulated on the CPU)' if BACKEND.emulated else ''}", flush=True)
        self.write()

    def skip(self, what: str, reason: str) -> None:
        """Keep that something was left out, and why."""
        self.skipped.append(f"{what}: skipped: {reason}")
        print(f"  {self.skipped[-1]}", flush=True)
        self.write()

    def finish(self, status: str, error: str = "") -> None:
        """How it ended: ok, failed (something was computed wrongly), skipped or error, with its text."""
        self.status, self.error = status, error
        self.write()

    def as_dict(self) -> dict[str, Any]:
        """For the results document."""
        plan = {name: value for name, value in asdict(self.plan).items() if name != "data_dir"}
        return {
            "status": self.status,
            "error": self.error,
            "taken": round(time.monotonic() - self._begin, 2),
            **plan,
            "emulated": BACKEND.emulated,
            **self.facts,
            "skipped": self.skipped,
            "rows": self.rows,
        }

    def write(self) -> None:
        """Bring the file up to date."""
        if self.file is not None:
            write_json(self.file, self.as_dict())
