"""One function on the four stages, as four columns: the text that does the work, and the Python that leads to it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from groundup.studio.floors import source
from groundup.studio.floors.aligned import aligned, changes
from groundup.studio.floors.colouring import coloured
from groundup.studio.floors.rooms import LADDERS, check
from shared.contract import STAGES

SPEEDS = Path(__file__).with_name("recorded.json")
"""Recorded times by function, made by scripts/make_floors_speeds.py. An installed package has no other record."""

LADDER = "The same result in several ways, each rung one idea faster than the one before. Choose a rung of every stage."


@cache
def function(room: str, name: str, rungs: tuple[str, ...] = ()) -> dict[str, Any]:
    """The columns of a function, or of a rung of each stage's ladder. Raises ValueError for an unknown function.

    rungs: of a ladder the rung of each stage; an unknown one is the slowest
    "stages": of each its "parts", functions with their text, "work" and "calls", which of them do the work and call it
    "rows": {"work", "calls"}: for each row and stage the lines of its part, and how they differ from the stage before
    """
    check(room, name)
    stages: list[dict[str, Any]] = []
    for stage, wanted in zip(STAGES, (*rungs, "", "", "", ""), strict=False):
        file, called = LADDERS.get(name, (room, name))
        known = source.ladder(stage, file) if name in LADDERS else {}
        rung = wanted if wanted in known else next(iter(known), "")
        parts, work = source.functions(stage, file if rung else room, known.get(rung, called))
        shown = {"parts": [_part(each) for each in parts], "work": work, "calls": 0 if work else None}
        stages.append({"name": stage, "rungs": list(known), "rung": rung, **shown})
    first = stages[0]["parts"][0]
    return {
        "sentence": LADDER
        if name in LADDERS
        else "".join(text for _, text in first["lines"][first["said"][0]]).strip('" '),
        "stages": stages,
        "rows": {role: _rows(stages, role) for role in ("work", "calls")},
        "speeds": json.loads(SPEEDS.read_text(encoding="utf-8")).get(name, []),
    }


def _part(found: source.Found) -> dict[str, Any]:
    """A function's text for the page. said: the lines that are its docstring, or in C the comment above it"""
    about = {"name": found.name, "place": f"{found.file}:{found.line}", "language": found.language}
    ranges = {"said": list(source.said(found)), "head": list(source.head(found))}
    return {**about, "lines": coloured(found.text, found.language), **ranges}


def _rows(stages: list[dict[str, Any]], role: str) -> list[list[tuple[list[int], str]]]:
    texts: list[list[str]] = []
    numbers: list[list[list[int]]] = []
    for each in stages:
        part = {"lines": [], "said": [], "head": []} if each[role] is None else each["parts"][each[role]]
        alone = [[i] for i, line in enumerate(part["lines"]) if line and i not in (*part["said"], *part["head"])]
        units = sorted([*alone, part["head"]]) if part["head"] else []
        texts.append(["".join(text for i in unit for _, text in part["lines"][i]) for unit in units])
        numbers.append(units)
    return [
        [([] if at is None else own[at], word) for own, at, word in zip(numbers, row, changes(texts, row), strict=True)]
        for row in aligned(texts)
    ]
