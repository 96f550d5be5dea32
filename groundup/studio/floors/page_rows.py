"""What the page Floors shows of a room: for each function and each stage its text, what lies below it, and its speed.

rooms()          the rooms, and where the recorded speeds come from
room(name)       the rows of one
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from groundup.studio.floors import recorded_speeds, source, underlying_code
from groundup.studio.floors.colouring import coloured
from groundup.studio.floors.rooms import NAMES, SENTENCES, Row, rows
from groundup.studio.floors.source import Found
from shared.contract import STAGE_TITLES, STAGES

LONG = 60
"""Lines of a function that is folded at first."""

LANGUAGES = {"python": "Python", "c": "C", "kernel": "kernel"}


def rooms() -> dict[str, Any]:
    """The rooms to choose from, the stages, and the records of the speeds."""
    return {
        "rooms": [{"name": name, "sentence": SENTENCES[name]} for name in NAMES],
        "floors": [{"name": stage, "title": title} for stage, title in STAGE_TITLES.items()],
        "records": [{"file": each.file, "title": each.title} for each in recorded_speeds.records()],
    }


@cache
def room(name: str) -> dict[str, Any]:
    """The rows of a room. Raises ValueError for an unknown one."""
    found = [{"title": row.title, "floors": {stage: _cell(stage, name, row) for stage in STAGES}} for row in rows(name)]
    return {"name": name, "sentence": SENTENCES[name], "rows": found}


def _cell(stage: str, room: str, row: Row) -> dict[str, Any]:
    """What stands on one stage of a row: functions, each with its speed, or a sentence why there is none."""
    if row.ladder:
        rungs = source.ladder(stage, row.ladder)
        kind = {"matmul": "ladder", "steps": "step"}.get(row.ladder, row.ladder)
        part = "forward" if kind == "convolution" else ""
        functions = [_function(stage, row.ladder, name, rung, (kind, rung, part)) for rung, name in rungs.items()]
        return {"functions": functions, "folded": True, "note": "" if rungs else _no_ladder(row)}
    function = _function(stage, room, row.name, "", row.speed)
    return {"functions": [function] if function["parts"] else [], "folded": False, "note": ""}


def _no_ladder(row: Row) -> str:
    way = "This stage takes its step in one way: train_step." if row.ladder == "steps" else ""
    return way or "This stage has one way only."


def _function(stage: str, file: str, name: str, rung: str, speed: tuple[str, str, str] | None) -> dict[str, Any]:
    """A function with what lies below it. rung: its name in a ladder, "" for none"""
    found = source.python(stage, file, name)
    parts = []
    if found is not None:
        helped = [_part(each, at == 0 and passes_on(found)) for at, each in enumerate(source.helpers(found))]
        lower = underlying_code.of_stage3(file, found) if stage == STAGES[2] else []
        lower = underlying_code.of_stage4(file, name) if stage == STAGES[3] else lower
        parts = [_part(found, True), *helped, *(_part(each, at == 0) for at, each in enumerate(lower))]
    return {"name": rung or name, "parts": parts, "speeds": _speeds(stage, speed), "measured": speed is not None}


def _speeds(stage: str, speed: tuple[str, str, str] | None) -> list[str]:
    if speed is None:
        return []
    kind, name, part = speed
    if name != "last":
        return recorded_speeds.recorded_times(stage, kind, name, part)
    file = {"ladder": "matmul", "step": "steps"}.get(kind, kind)
    rungs = list(source.ladder(stage, file)) or [""]
    for rung in reversed(rungs):  # the last one may be younger than the record
        if told := recorded_speeds.recorded_times(stage, kind, rung, part):
            return told if rung == rungs[-1] else [f"{each} (rung {rung})" for each in told]
    return []


def passes_on(listing: Found) -> bool:
    """Whether a function does nothing but call another one."""
    (function,) = ast.parse(listing.text).body
    statements = function.body[1:] if ast.get_docstring(function) else function.body  # type: ignore[attr-defined, arg-type]
    return len(statements) == 1


def _part(found: Found, wanted: bool) -> dict[str, Any]:
    """A function's text for the page. wanted: whether it is unfolded, if it is not long"""
    lines = coloured(found.text, found.language)
    return {
        "name": found.name,
        "place": f"{found.file}:{found.line}",
        "language": LANGUAGES[found.language],
        "lines": lines,
        "open": wanted and len(lines) <= LONG,
    }
