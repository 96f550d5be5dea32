"""A race as the page gets it: the walk that goes wrong, where it does, and what happened in sentences."""

from __future__ import annotations

from typing import Any

from cuda_emulator.inspection import NoRace, Race, Touch, Walk
from groundup.studio.kernel.document import WARP, Place, as_it_is, document, value
from shared.numbers import plural


def race_document(race: Race | NoRace, warp: int, shown: Place = as_it_is) -> dict[str, Any]:
    """The race for the page, with the walk of the warp that read the wrong value."""
    if isinstance(race, NoRace):
        return {"found": False, "text": no_race(race)}
    reader = race.read.thread // WARP
    return {
        "found": True,
        "text": " ".join(sentences(race, shown)),
        "order": order(race),
        "walk": document(race.walk, reader, shown),
        "thread": race.read.thread,
        "step": race.read.step,
        "element": [race.read.array, race.read.place],
        "got": value(race.read.value),
        "expected": value(race.expected),
        "writer": None if race.missed is None else [race.missed.thread, race.missed.step],
        "seen": None if race.seen is None else [race.seen.thread, race.seen.step],
        "early": race.early,
        "cell": [race.array, race.place],
        "right": value(race.right),
        "wrong": value(race.wrong),
    }


def no_race(race: NoRace) -> str:
    """The sentence for a barrier without which no wrong number was found."""
    if race.conflicts == 0:
        return (
            "Without this barrier no two threads touch the same element between two barriers, one of them writing: for "
            "this block and these numbers it is not needed."
        )
    return (
        f"Without this barrier two threads touch the same element, one of them writing, at "
        f"{plural(race.conflicts, 'place')}: that is a race. None of {plural(race.tried, 'order')} of the warps that "
        "were tried changed the result for these numbers; another size or other numbers may."
    )


def order(race: Race) -> str:
    """Who ran ahead, and when."""
    if len(race.ahead) == 1:
        who = f"thread {_thread(race.walk, race.ahead[0])}"
    else:
        who = f"warp {race.ahead[0] // WARP}"
    when = "from the start" if race.phase == 0 else f"from barrier {race.phase} on"
    return f"{who} runs ahead of the others, {when}, until it has to wait"


def sentences(race: Race, shown: Place = as_it_is) -> list[str]:
    """What happened, step by step."""
    walk = race.walk
    read = race.read
    element = _element(walk, read.array, read.place)
    lines = [f"{order(race).capitalize()}."]
    who = f"Thread {_thread(walk, read.thread)}"
    lines.append(f"{who} reads {element} in line {_line(walk, read, shown)} and gets {value(read.value)}.")
    if race.early and race.missed is not None:
        lines.append(
            f"It should have got {value(race.expected)}, which thread {_thread(walk, race.missed.thread)} writes there "
            f"in line {_line(walk, race.missed, shown)}, but only later, in step {race.missed.step + 1}."
        )
    elif race.seen is not None:
        lines.append(
            f"It should have got {value(race.expected)}, but thread {_thread(walk, race.seen.thread)} has overwritten "
            f"it in line {_line(walk, race.seen, shown)}, in step {race.seen.step + 1}."
        )
    else:
        lines.append(f"It should have got {value(race.expected)}.")
    cell = _element(walk, race.array, race.place)
    lines.append(f"In the end {cell} is {value(race.wrong)}; with the barrier it is {value(race.right)}.")
    return lines


def _thread(walk: Walk, number: int) -> str:
    x, y, z = walk.block
    place = number % x, number // x % y, number // (x * y)
    return str(place[0]) if y * z == 1 else str(place[: 2 if z == 1 else 3])


def _element(walk: Walk, array: int, place: int) -> str:
    info = walk.arrays[array]
    index = []
    for extent in reversed(info.shape):
        index.append(str(place % extent))
        place //= extent
    return f"{info.name}[{', '.join(reversed(index))}]"


def _line(walk: Walk, touch: Touch, shown: Place) -> int:
    mark = walk.marks[walk.steps[touch.step].mark]
    return shown(mark.file, mark.line)[1]
