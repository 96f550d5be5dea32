"""What a part of the GPU report has found: its rows, in a file that is written after every row.

A part that crashes or runs out of time loses only the row that it was at.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared.bench.on_gpu.gpu_plan import GpuPlan
from shared.contract import STAGES, load_part
from shared.machine.results import write_json

_backend = load_part(STAGES[3], "backend")
BACKEND, VARIABLE = _backend.BACKEND, _backend.VARIABLE
NO_TIME = "there was no time left"

SHOWN = 40
"""Lines of a program's output that are kept where something failed."""


class Part:
    """The rows of one part, kept in a file of JSON.

    file: None keeps them in memory; report: the names of all parts of the report that this one belongs to
    """

    def __init__(self, plan: GpuPlan, file: Path | None = None, report: Sequence[str] = ()) -> None:
        self.plan, self.file, self.report = plan, file, report
        self.rows: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {}
        self.skipped: list[str] = []
        self.status, self.error = "running", ""

    def add(self, line: str = "", **row: Any) -> None:
        """Keep a row. line: what the screen shows of it"""
        self.rows.append(row | ({"emulated": True} if BACKEND.emulated else {}))
        self.write()  # first: the part may be ended as soon as somebody reads the line
        if line:
            print(f"  {line}{'  (emulated on the CPU)' if BACKEND.emulated else ''}", flush=True)

    def skip(self, subject: str, reason: str) -> None:
        """Keep that something was left out, and why."""
        self.skipped.append(f"{subject}: skipped: {reason}")
        self.write()
        print(f"  {self.skipped[-1]}", flush=True)

    def finish(self, status: str, error: str = "") -> None:
        """End the part as ok, failed (something was computed wrongly), skipped or error, with its text."""
        self.status, self.error = status, error
        self.write()

    def write(self) -> None:
        """Bring the file up to date. Where that fails the part goes on, since the disk may have room again for its next
        row; what it has found stands on the screen."""
        if self.file is None:
            return
        try:
            write_json(self.file, self.as_dict())
        except OSError as error:
            print(f"  {self.file} cannot be written: {error.strerror or error}", file=sys.stderr, flush=True)

    @property
    def folder(self) -> Path:
        """The folder for what a part writes beside its rows."""
        return self.file.parent if self.file is not None else Path(tempfile.gettempdir())

    def as_dict(self) -> dict[str, Any]:
        """The part as the report has it."""
        plan = {name: getattr(self.plan, name) for name in ("seconds", "quick", "tiny")}
        own = {"status": self.status, "error": self.error, "taken": round(self.plan.seconds - self.plan.left, 2)}
        return own | plan | {"emulated": BACKEND.emulated} | self.facts | {"skipped": self.skipped, "rows": self.rows}
