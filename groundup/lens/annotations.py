"""Remarks on each line of the source: its accesses, branches and barriers, and its errors."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import Literal

from groundup.lens.profile import SECTOR, Access, Branch, Collective, Profile
from groundup.lens.wording import WARP, party, race_advice, race_title, uninitialised_text
from shared.numbers import count, counted_share, plural

Level = Literal["error", "costly", "fine"]
"""error: the result is wrong; costly: a GPU would do more work than the data need; fine: neither."""

COSTLY = 2
"""An access is costly if it needs at least this many times the sectors or passes of an ideal one."""


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


@dataclass(frozen=True)
class Problem:
    """An error of the kernel: a title, sentences, and the lines that it concerns."""

    title: str
    details: tuple[str, ...]
    lines: tuple[tuple[str, int], ...]


def problems(profile: Profile) -> list[Problem]:
    """Faults, races and uninitialised reads, in this order."""
    found = []
    if profile.fault:
        file = profile.source[0][0] if profile.source else ""
        where = ((_file_of(profile, profile.fault_line, file), profile.fault_line),) if profile.fault_line else ()
        found.append(Problem("The run ended early", (profile.fault,), where))
    for race in profile.races:
        sides = (race.first, race.second)
        details = (*(party(side, profile) for side in sides), race_advice(race, profile.block))
        lines = tuple(dict.fromkeys((side.site.file, side.site.line) for side in sides))
        found.append(Problem(race_title(race), details, lines))
    for read in profile.uninitialised:
        title, detail = uninitialised_text(read, profile)
        found.append(Problem(title, (detail,), ((read.site.file, read.site.line),)))
    return found


def annotate(profile: Profile) -> dict[tuple[str, int], LineNotes]:
    """{(file, line): notes} of all lines with notes; errors come first."""
    lines: defaultdict[tuple[str, int], LineNotes] = defaultdict(LineNotes)
    for problem in problems(profile):
        for place in problem.lines:
            lines[place].notes.append(Note("error", problem.title))
    traffic = profile.traffic()
    passes = sum(each.wavefronts for each in profile.accesses)
    for access in profile.accesses:
        here = lines[access.site.file, access.site.line]
        here.notes.append(access_note(access))
        here.traffic += access.sectors * SECTOR / traffic if traffic else 0.0
        here.passes += access.wavefronts / passes if passes else 0.0
    for branch in profile.branches:
        lines[branch.site.file, branch.site.line].notes.append(branch_note(branch))
    for collective in profile.collectives:
        lines[collective.site.file, collective.site.line].notes.append(_collective_note(collective, profile))
    for each in profile.operations:
        total = each.simple + each.division + each.special
        if total:
            parts = [
                plural(each.simple, "addition or multiplication", "additions and multiplications"),
                plural(each.division, "division"),
                plural(each.special, "math function"),
            ]
            kinds = [
                text for text, number in zip(parts, (each.simple, each.division, each.special), strict=True) if number
            ]
            text = f"{plural(total, 'operation')}: {', '.join(kinds)}" if len(kinds) > 1 else kinds[0]
            lines[each.file, each.line].notes.append(Note("fine", text))
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


def access_note(access: Access) -> Note:
    """The note on an access."""
    name = f"{access.kind} {access.array}"
    requests = plural(access.requests, "request")
    few = f", {count(access.lanes_per_request)} of {WARP} lanes" if access.lanes_per_request < WARP else ""
    if access.space == "global":
        verdict, level = global_verdict(access)
    elif access.space == "shared":
        verdict, level = shared_verdict(access)
    else:
        verdict, level = f"{access.space} memory" if access.space else "memory of unknown kind", "fine"
    return Note(level, f"{name}: {verdict}; {requests}{few}")


def global_verdict(access: Access) -> tuple[str, Level]:
    """("32 sectors/request (12.5 %), 4 would do", level) for an access to global memory."""
    fetched = f"{plural(access.sectors_per_request, 'sector')}/request"
    if access.broadcasts == access.requests and access.sectors == access.requests:
        return f"{fetched}, one address for all lanes (broadcast)", "fine"
    text = f"{fetched} ({counted_share(access.efficiency)})"
    ideal = access.ideal_sectors / access.requests if access.requests else 0.0
    if access.sectors > access.ideal_sectors:
        text += f", {count(ideal)} would do"
    costly = access.sectors >= COSTLY * access.ideal_sectors > 0
    return text, "costly" if costly else "fine"


def shared_verdict(access: Access) -> tuple[str, Level]:
    """("32-way bank conflict" or "no bank conflict", level) for an access to shared memory."""
    if access.wavefronts <= access.ideal_wavefronts:
        broadcast = access.requests and access.broadcasts == access.requests
        return "no bank conflict" + (", one address for all lanes (broadcast)" if broadcast else ""), "fine"
    text = f"{access.most_ways}-way bank conflict"
    if access.ways != access.most_ways:
        text = f"up to {text}, {count(access.ways)} passes for one on average"
    return text, "costly" if access.ways >= COSTLY or access.most_ways >= 2 * COSTLY else "fine"


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


def _file_of(profile: Profile, line: int, default: str) -> str:
    """The file whose listed source contains the line; an error may be in a device function of another file."""
    for file, first, text in profile.source:
        if first <= line < first + len(text):
            return file
    return default
