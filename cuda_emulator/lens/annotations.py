"""Remarks on each line of the source: its accesses, branches and barriers, and its errors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..words.numbers import count, counted_share, plural
from .advice import Level
from .doubles import double_lines
from .error_advice import problems
from .profile import SECTOR, Access, Branch, Collective, Profile
from .verdicts import global_verdict, shared_verdict
from .wording import WARP


@dataclass(frozen=True)
class Note:
    """One remark on a line."""

    level: Level
    text: str


@dataclass
class LineNotes:
    """All remarks on a line, and its share (0 to 1) of the global traffic and of the shared memory's passes."""

    notes: list[Note] = field(default_factory=list)
    traffic: float = 0.0
    passes: float = 0.0

    @property
    def level(self) -> Level:
        """The most serious level of its notes."""
        levels = {note.level for note in self.notes}
        return "error" if "error" in levels else "costly" if "costly" in levels else "fine"


def annotate(profile: Profile) -> dict[tuple[str, int], LineNotes]:
    """{(file, line): notes} of all lines with notes; errors come first."""
    lines: defaultdict[tuple[str, int], LineNotes] = defaultdict(LineNotes)
    for problem in problems(profile):
        for place in problem.lines:
            lines[place].notes.append(Note("error", problem.title))
    doubles = double_lines(profile)
    traffic = profile.traffic()
    passes = sum(access.wavefronts for access in profile.accesses)
    for access in profile.accesses:
        here = lines[access.site.file, access.site.line]
        here.notes.append(access_note(access, profile.accesses))
        here.traffic += access.sectors * SECTOR / traffic if traffic else 0.0
        here.passes += access.wavefronts / passes if passes else 0.0
    for branch in profile.branches:
        lines[branch.site.file, branch.site.line].notes.append(branch_note(branch))
    for collective in profile.collectives:
        lines[collective.site.file, collective.site.line].notes.append(_collective_note(collective, profile))
    for work in profile.operations:
        total = work.simple + work.division + work.special
        if total:
            parts = [
                plural(work.simple, "addition or multiplication", "additions and multiplications"),
                plural(work.division, "division"),
                plural(work.special, "math function"),
            ]
            kinds = [
                text for text, number in zip(parts, (work.simple, work.division, work.special), strict=True) if number
            ]
            text = f"{plural(total, 'operation')}: {', '.join(kinds)}" if len(kinds) > 1 else kinds[0]
            here = lines[work.file, work.line]
            here.notes.append(Note("fine", text))
            if work.double:
                leaked = (work.file, work.line) in doubles
                text = f"{count(work.double)} of {count(total)} in float64" + (", no array is" if leaked else "")
                here.notes.append(Note("costly" if leaked else "fine", text))
    for missing in profile.not_traced:
        lines[missing.file, missing.line].notes.append(Note("costly", f"not traced: {missing.reason}"))
    for here in lines.values():
        here.notes = _together(here.notes)
    return dict(lines)


def _together(notes: list[Note]) -> list[Note]:
    """Merge equal notes: a device function that is called twice has each of its accesses twice."""
    times = Counter(notes)
    return [
        replace(note, text=f"{note.text}, in each of {number} calls") if number > 1 else note
        for note, number in times.items()
    ]


def access_name(access: Access, accesses: Sequence[Access]) -> str:
    """An access in a few words, "load image"; with its index, where the line has another of this kind and array."""
    like = (access.kind, access.array, access.site.file, access.site.line)
    texts = {each.site.text for each in accesses if (each.kind, each.array, each.site.file, each.site.line) == like}
    return f"{access.kind} {access.site.text if len(texts) > 1 else access.array}"


def access_note(access: Access, accesses: Sequence[Access]) -> Note:
    """The note on an access; `accesses` are all of its kernel."""
    name = access_name(access, accesses)
    requests = plural(access.requests, "request")
    few = f", {count(access.lanes_per_request)} of {WARP} lanes" if access.lanes_per_request < WARP else ""
    if access.space == "global":
        verdict, level = global_verdict(access)
    elif access.space == "shared":
        verdict, level = shared_verdict(access)
    else:
        verdict, level = f"{access.space} memory" if access.space else "memory of unknown kind", "fine"
    return Note(level, f"{name}: {verdict}; {requests}{few}")


def branch_note(branch: Branch) -> Note:
    """The note on a branch, like "branch: 50 % of warps diverge"."""
    if not branch.divergent:
        outcome = "all lanes take it" if branch.taken == branch.lanes else "no lane takes it"
        mixed = 0 < branch.taken < branch.lanes
        return Note("fine", "branch: " + ("each warp agrees with itself" if mixed else outcome))
    share = branch.divergent / branch.evaluated
    times = f"{count(branch.divergent)} of {plural(branch.evaluated, 'evaluation')}"
    text = f"branch: {counted_share(share)} of warps diverge ({times})"
    return Note("costly" if share >= 0.5 else "fine", text)


def _collective_note(collective: Collective, profile: Profile) -> Note:
    warps = -(-profile.block[0] * profile.block[1] * profile.block[2] // WARP) * len(profile.blocks)
    name = "barrier" if collective.site.kind == "barrier" else collective.site.text.split("(")[0].removeprefix("cuda.")
    if warps and collective.times % warps == 0:
        return Note("fine", f"{name}: {plural(collective.times // warps, 'time')} by every warp")
    return Note("fine", f"{name}: {plural(collective.times, 'time')} by warps")
