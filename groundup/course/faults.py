"""The kinds of fault that a detective exercise may have, and what is known of the fault in each of its programs.

A detective exercise is a given program with one fault. The learner finds the line, says the kind with
`groundup learn answer`, and mends the function. cases.toml lists the exercises; the programs lie in programs/.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

KINDS = {
    "out-of-bounds": "an index lies before the beginning of an array or behind its end",
    "race": "two threads use one element, at least one writes it, and no barrier can order them (often two blocks)",
    "missing-barrier": "threads of a block use one element of shared memory, and the barrier between them is missing",
    "divergent-barrier": "only a part of a block's threads reaches a barrier",
    "uninitialised": "shared memory is read where no thread has written it",
    "float64": "arithmetic is done in float64, although all arrays are float32",
    "bank-conflicts": "the threads of a warp reach different words of one bank of shared memory",
    "uncoalesced": "the threads of a warp reach global memory far apart, and use little of each sector",
    "wrong-reduction": "partial results are put together wrongly: one is lost, overwritten or counted twice",
}
"""The kinds by name, each with its meaning."""

OTHER_NAMES = {
    "bounds": "out-of-bounds",
    "out-of-bound": "out-of-bounds",
    "data-race": "race",
    "lost-update": "race",
    "barrier-missing": "missing-barrier",
    "barrier-divergence": "divergent-barrier",
    "uninitialized": "uninitialised",
    "uninitialised-shared-memory": "uninitialised",
    "uninitialized-shared-memory": "uninitialised",
    "float64-leak": "float64",
    "bank-conflict": "bank-conflicts",
    "uncoalesced-access": "uncoalesced",
    "reduction": "wrong-reduction",
}
"""Other names that learners give a kind."""


@dataclass(frozen=True)
class Fault:
    """The fault of a detective exercise's program.

    kind: one of KINDS
    shows: the command, in the learner's folder, that shows what goes wrong
    because: why it goes wrong; told after a right answer
    mend: (old, new) texts; the program with all of them replaced is the project's solution
    also: further lines that count as the place of the fault, as they stand in the program, without indentation or, if
        that tells two of them apart, with it. The
        lines that `mend` changes or takes out count already; if it only adds lines, those on both sides count
    seen_at: lines where the fault shows although another line has to change; an answer that names one is told so
    near: by kind, a sentence for an answer that is nearly right
    """

    kind: str
    shows: str
    because: str
    mend: tuple[tuple[str, str], ...]
    also: tuple[str, ...] = ()
    seen_at: tuple[str, ...] = ()
    near: dict[str, str] = field(default_factory=dict, hash=False)


def kind_of(words: str) -> str:
    """The kind that is meant: "Out of bounds" is "out-of-bounds". Raises ValueError, with all kinds, for others."""
    name = "-".join(words.lower().replace("_", " ").replace("-", " ").split())
    name = OTHER_NAMES.get(name, name)
    if name in KINDS:
        return name
    near = difflib.get_close_matches(name, KINDS, 1, 0.6)
    meant = f"did you mean {near[0]}? All kinds: " if near else "the kinds are "
    raise ValueError(f"KIND: {words!r} is no kind of fault; {meant}{', '.join(KINDS)}")


def mended(program: str, fault: Fault) -> str:
    """The program without its fault. Raises ValueError if a text to be replaced is not there exactly once."""
    for old, new in fault.mend:
        if program.count(old) != 1:
            raise ValueError(f"the program has {old!r} {program.count(old)} times, expected once")
        program = program.replace(old, new)
    return program


def places(program: str, fault: Fault) -> set[int]:
    """The lines of the program, from 1, that count as the place of its fault."""
    lines = program.split("\n")
    differences = _differences(lines, mended(program, fault).split("\n"))
    changed = {number for _, first, last, _, _ in differences for number in range(first + 1, last + 1)}
    beside = {number for _, first, _, _, _ in differences for number in (first, first + 1)}
    also = {number for number, line in enumerate(lines, start=1) if {line, line.strip()} & {*fault.also}}
    return (changed or beside) | also


def original_lines(program: str, now: str, line: int) -> set[int]:
    """The lines of the program, from 1, in whose place a line of the learner's changed text stands.

    Several for a line in a part that the learner has changed; the two neighbours of a line that the learner has added.
    """
    given, theirs = program.split("\n"), now.split("\n")
    for tag, first, last, start, end in _differences(given, theirs, equal=True):
        if start < line <= end:
            if tag == "equal":
                return {first + line - start}
            return {first, first + 1} if tag == "insert" else set(range(first + 1, last + 1))
    return set()


def _differences(before: list[str], after: list[str], equal: bool = False) -> list[tuple[str, int, int, int, int]]:
    found = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [each for each in found if equal or each[0] != "equal"]
