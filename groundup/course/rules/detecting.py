"""The answer to a detective exercise: in which line the fault is, and of which kind it is.

Line and kind are judged apart, so that a learner who has one of them right keeps it. The line is one of the learner's
file as it is now: a program that has comments in it, or is mended already, can still be answered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from groundup.course.faults import kind_of, original_lines, places
from groundup.course.learner.functions import find, lines_of
from groundup.course.learner.project_files import program
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task
from groundup.course.rules.order import today
from groundup.course.rules.states import is_mended


@dataclass(frozen=True)
class Answered:
    """What was answered, and how it was judged.

    lines: the first and last line that was named; source: the text of the first; kind: one of KINDS
    line_right, kind_right: whether the fault is there, and is of that kind
    help: sentences for the part that is wrong
    passed: whether the exercise has passed with this answer, because the program was mended before
    """

    lines: tuple[int, int]
    source: str
    kind: str
    line_right: bool
    kind_right: bool
    help: tuple[str, ...] = ()
    passed: bool = False

    @property
    def right(self) -> bool:
        """Whether line and kind are right."""
        return self.line_right and self.kind_right


def answer(workspace: Workspace, case: Task, line: str, kind: str) -> Answered:
    """Judge an answer, and write a right one to progress.toml.

    line: a line's number, such as "31"; or two neighbours, such as "31-32", for what is missing between them
    kind: the name of a kind, as kind_of takes it
    Raises ValueError for a line that is not there, or a kind that does not exist.
    """
    assert case.fault is not None
    text = workspace.text(case.file)
    lines = _lines(line, len(lines_of(text)))
    meant = kind_of(kind)
    original = program(case)
    named = {spot for number in range(lines[0], lines[1] + 1) for spot in original_lines(original, text, number)}
    line_right = bool(named & places(original, case.fault))
    source = text.split("\n")[lines[0] - 1].strip()
    judged = Answered(lines, source, meant, line_right, meant == case.fault.kind)
    if not judged.right:
        sentences = [] if line_right else [_about_line(case, text, lines, named)]
        near = case.fault.near.get(meant, "")
        return replace(judged, help=tuple(filter(None, [*sentences, near])))
    entry = workspace.record.of(case.id)
    entry.found = True
    if is_mended(workspace, case) and not workspace.is_stub(case):
        entry.state, entry.on = "passed", today()
    elif entry.state == "skipped":
        entry.state, entry.on = "", ""
    workspace.save()
    return replace(judged, passed=entry.state == "passed")


def _lines(line: str, count: int) -> tuple[int, int]:
    """The first and last line that is meant. Raises ValueError for all but a line or two neighbours."""
    found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", line)
    if found is None:
        raise ValueError(f"LINE: expected a line's number, such as 31, or two neighbours, such as 31-32; got {line!r}")
    first, last = int(found[1]), int(found[2] or found[1])
    if not first <= last <= first + 1:
        raise ValueError(f"LINE: expected one line, or two neighbours with the fault between them; got {line!r}")
    if first < 1 or last > count:
        raise ValueError(f"LINE: the file has the lines 1 to {count}; got {line!r}")
    return first, last


def _about_line(case: Task, text: str, lines: tuple[int, int], named: set[int]) -> str:
    """A sentence about a line that is not the place of the fault."""
    assert case.fault is not None
    given = program(case).split("\n")
    if any(given[each - 1].strip() in case.fault.seen_at for each in named):
        return "That line is where the fault shows. Another line is why it comes to that."
    try:
        place = find(text, case.function, case.file)
    except ValueError:  # the learner's text cannot be parsed just now
        return ""
    if not place.first <= lines[0] <= lines[1] <= place.last:
        return f"The fault is in {case.function}, which has the lines {place.first} to {place.last}."
    if not text.split("\n")[lines[0] - 1].strip() and lines[0] == lines[1]:
        return "That line is empty. What is missing between two lines is named by either of them, or by both: 31-32."
    return f"What goes wrong can be seen with: {case.fault.shows}"
