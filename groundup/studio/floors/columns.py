"""One function on the four stages, as four columns: the text that does the work, and the Python that leads to it.

rooms()                       the rooms with their functions
function(room, name, rungs)   the columns of one function, or of one rung of each stage's ladder
"""

from __future__ import annotations

from functools import cache
from typing import Any

from groundup.studio.floors import recorded_speeds, source, underlying_code
from groundup.studio.floors.aligned import aligned, changes
from groundup.studio.floors.colouring import coloured
from groundup.studio.floors.rooms import FUNCTIONS, LADDERS, check
from groundup.studio.floors.source import Found
from shared.contract import STAGE_TITLES, STAGES

LANGUAGES = {"python": "Python", "c": "C", "kernel": "kernel"}


def rooms() -> dict[str, Any]:
    """The functions to choose from, and the stages."""
    return {"rooms": FUNCTIONS, "stages": [{"name": name, "title": title} for name, title in STAGE_TITLES.items()]}


def rungs_of(name: str) -> list[list[str]]:
    """The rungs of each stage's ladder, slowest first; [] for a stage that has one way only."""
    return [list(source.ladder(stage, LADDERS[name])) if name in LADDERS else [] for stage in STAGES]


@cache
def function(room: str, name: str, rungs: tuple[str, ...] = ()) -> dict[str, Any]:
    """The columns of a function.

    rungs: of a ladder the rung of each stage; an unknown one is the slowest
    "stages": of each its "parts", functions with their text, "work" and "calls", which of them do the work and call it
    "rows": {"work", "calls"}: for each row the line of each stage's part, and how it differs from the stage before
    Raises ValueError for an unknown function.
    """
    check(room, name)
    stages = []
    for stage, known, wanted in zip(STAGES, rungs_of(name), (*rungs, "", "", "", ""), strict=False):
        rung = wanted if wanted in known else next(iter(known), "")
        stages.append({"name": stage, "rungs": known, "rung": rung, **_column(stage, room, name, rung)})
    first = source.python(STAGES[0], room, name)
    return {
        "room": room,
        "name": name,
        "sentence": source.sentence(first) if first else LADDER,
        "stages": stages,
        "rows": {role: _rows(stages, role) for role in ("work", "calls")},
        "speeds": recorded_speeds.alike(room, name),
    }


LADDER = "The same result in several ways, each rung one idea faster than the one before. Choose a rung of every stage."


def _column(stage: str, room: str, name: str, rung: str) -> dict[str, Any]:
    """The parts of a function on one stage; "work" and "calls" are their indices, None for none."""
    file = LADDERS.get(name, room)
    called = source.ladder(stage, file)[rung] if rung else name
    found = source.python(stage, file, called)
    if found is None:
        return {"parts": [], "work": None, "calls": None}
    python = source.chain(found)
    lower = underlying_code.below(stage, file, found, python)
    parts = [*python, *lower]
    if own := source.python(stage, file, underlying_code.WORK.get(name, "")):
        parts, work = (parts, 0) if own == found else ([found, own, *parts[1:]], 1)
    elif lower:
        work = parts.index(next((each for each in lower if "for (" in each.text), lower[0]))
    else:
        work = source.worker(python)
    return {"parts": [_part(each) for each in parts], "work": work, "calls": 0 if work else None}


def _part(found: Found) -> dict[str, Any]:
    """A function's text for the page. said: the lines that are its docstring, or in C the comment above it"""
    return {
        "name": found.name,
        "place": f"{found.file}:{found.line}",
        "language": LANGUAGES[found.language],
        "lines": coloured(found.text, found.language),
        "said": list(source.said(found)),
        "head": list(source.head(found)),
    }


def _rows(stages: list[dict[str, Any]], role: str) -> list[list[tuple[list[int], str]]]:
    """For each row and stage the lines of its part, one, or all of a declaration, and what `changes` says of them."""
    texts: list[list[str]] = []
    numbers: list[list[list[int]]] = []
    for each in stages:
        part = {"lines": [], "said": [], "head": []} if each[role] is None else each["parts"][each[role]]
        alone = [[i] for i, line in enumerate(part["lines"]) if line and i not in (*part["said"], *part["head"])]
        units = sorted([*alone, part["head"]]) if part["head"] else []
        texts.append([" ".join(text for i in unit for _, text in part["lines"][i]) for unit in units])
        numbers.append(units)
    return [
        [([] if at is None else own[at], word) for own, at, word in zip(numbers, row, changes(texts, row), strict=True)]
        for row in aligned(texts)
    ]
