"""What the learner has done: progress.toml in their folder, a plain text that they may read and edit.

A pass holds for one text of the function. The digest of that text is stored, so `status` knows whether the function was
changed since. There is no counting of days.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.machine import regular
from shared.machine.atomic import write_atomically

NAME = "progress.toml"


HEADING = """\
# What you have done, written by `groundup learn`. It is plain text: read it, keep it in git, edit it if you must.
# groundup writes its own entries again each time; comments that you add are lost.

"""


MOST_BYTES, LONGEST_NAME = 250_000, 60
"""Of the file, ten times what the whole course takes; of a task's name."""

STATES = ("", "passed", "skipped")
HINTS = 3
"""How many hints a task has."""


@dataclass
class TaskRecord:
    """What has become of one task.

    state: "passed", "skipped", or "" for neither; on: the date of the state, in ISO format
    digest: of the function's text that passed; hints: the highest hint that was taken
    revealed: whether the solution was opened before the task passed
    found: whether the fault of a detective exercise was named; its state is "passed" once the program is mended, too
    """

    state: str = ""
    on: str = ""
    digest: str = ""
    hints: int = 0
    revealed: bool = False
    found: bool = False


@dataclass
class LearnersRecord:
    """The whole of progress.toml.

    current: the task that a command means if it names none
    entries: by the task's id, or "checkpoint N"
    """

    current: str
    entries: dict[str, TaskRecord] = field(default_factory=dict)

    def of(self, name: str) -> TaskRecord:
        """The entry of a task; an empty one is made if there is none."""
        return self.entries.setdefault(name, TaskRecord())


def load(path: Path) -> LearnersRecord:
    """Read the file. Raises ValueError, with the place in it, if it is not as `save` writes it, and OSError if it
    cannot be read or is no regular file.
    """
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder; move it away, then groundup learn start makes the file of that name again"
        )
    text = regular.read(path, MOST_BYTES)
    try:
        document = tomllib.loads(text.decode("utf-8-sig"))
        _only(document, ("current", "tasks"))
        record = LearnersRecord(_field(document, "current", str))
        for name, table in _field(document, "tasks", dict).items():
            where = f"task {name[:LONGEST_NAME]}"
            if not name.strip() or len(name) > LONGEST_NAME:
                raise ValueError(f"{where}: expected the name of a task, such as 1.1")
            if not isinstance(table, dict):
                raise ValueError(f"{where} is {_shown(table)}, expected {WORDS[dict]}")
            _only(table, vars(TaskRecord()), where)
            entry = TaskRecord(
                **{key: _field(table, key, type(value), where) for key, value in vars(TaskRecord()).items()}
            )
            if entry.state not in STATES:
                raise ValueError(
                    f"{where}: state is {entry.state[:60]!r}, expected one of {', '.join(map(repr, STATES))}"
                )
            if not 0 <= entry.hints <= HINTS:
                raise ValueError(f"{where}: hints is {_shown(entry.hints)}, expected 0 to {HINTS}")
            record.entries[name] = entry
    except (ValueError, RecursionError) as error:  # tomllib and the decoder raise them, too
        raise ValueError(
            f"{path}: {error}. Mend that line, or run groundup learn start: it makes the file anew and grades what "
            "you have written"
        ) from None
    return record


WORDS = {
    str: 'text in quotation marks, such as "1.1"',
    int: "a whole number",
    bool: "true or false",
    dict: "entries of its own, below a line in brackets",
}
"""What a value has to be, for a learner who edits the file."""


def _only(table: dict[str, Any], known: Iterable[str], where: str = "") -> None:
    """Raise ValueError for an entry that has no meaning: `save` would lose it without a word."""
    if unknown := [name for name in table if name not in known]:
        raise ValueError(f"{where}{': ' * bool(where)}{unknown[0]} is unknown here, expected {' or '.join(known)}")


def _field(table: dict[str, Any], key: str, kind: type, where: str = "") -> Any:
    default = kind()
    value = table.get(key, default)
    if type(value) is not kind:
        name = f"{key} of {where}" if where else key
        raise ValueError(f"{name} is {_shown(value)}, expected {WORDS[kind]}")
    return value


def _shown(value: Any) -> str:
    """A value as it stands in the file."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else WORDS[dict]
    text = _toml(value) if isinstance(value, bool | int | str) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def save(record: LearnersRecord, path: Path) -> None:
    """Write the file, as a whole or not at all. Empty entries are left out."""
    lines = [HEADING, f"current = {_toml(record.current)}\n"]
    for name, entry in sorted(record.entries.items(), key=lambda each: _order(each[0])):
        told = {key: value for key, value in vars(entry).items() if value}
        if told:
            lines.append(f"\n[tasks.{_toml(name)}]\n")
            lines += [f"{key} = {_toml(value)}\n" for key, value in told.items()]
    write_atomically(path, "".join(lines).encode())


def _order(name: str) -> tuple[bool, list[int]]:
    return name.startswith("checkpoint"), [int(part) for part in name.split()[-1].split(".") if part.isdecimal()]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)  # TOML's strings are JSON's


def digest(function: str) -> str:
    """A short code of a function's text, to notice a change. Spaces at the ends of lines do not count."""
    text = "\n".join(line.rstrip() for line in function.split("\n"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
