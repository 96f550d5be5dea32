"""The report of a child process: its events, of which only well-formed ones count.

The learner's code can write into the file, too. So it may hold anything, and is of any length.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.machine import regular, strict_json

MOST_BYTES = 16 << 20
"""Of a report. One of a thousand calls is some hundred kilobytes."""

MOST_LINES = 50_000
"""Of a report. To read so many takes a second; without this limit the learner's code could make it take minutes."""

_PLACE = {"file": str, "line": int, "source": str}

_FIELDS: dict[str, dict[str, Any]] = {
    "check": {"name": str},
    "trying": {"text": str},
    "note": {"text": str},
    "passed": {"name": str, "comparisons": int},
    "wrong": {
        **dict.fromkeys(("what", "expected", "got", "cause", "by_hand"), str),
        **_PLACE,
        "picture": (dict, type(None)),
    },
    "raised": {**dict.fromkeys(("type", "text", "traceback"), str), **_PLACE, "notes": list},
    **{name: {} for name in ("done", "memory", "memory together", "processes")},
    "time": {"computed": float},
}
"""The events, and the types of what each tells."""


def events_in(report: Path) -> list[dict[str, Any]]:
    """The events of a report, in order. A line that is none is left out; a report that is too long has none."""
    try:
        text = regular.read(report, MOST_BYTES)
    except (OSError, ValueError):
        return []
    lines = text.split(b"\n") if text.count(b"\n") <= MOST_LINES else []
    return [event for line in lines if (event := _event(line)) is not None]


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        found = strict_json.loads(line)
    except ValueError:  # half a line, if the process has crashed while it wrote
        return None
    if not isinstance(found, dict) or not isinstance(name := found.pop("event", None), str):
        return None
    fields = _FIELDS.get(name)
    if fields is None or found.keys() != fields.keys():
        return None
    if not all(isinstance(found[each], kind) for each, kind in fields.items()):
        return None
    if not all(isinstance(note, str) for note in found.get("notes", ())):
        return None
    return {"event": name, **found}
