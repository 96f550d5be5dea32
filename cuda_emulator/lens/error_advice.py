"""The errors of a kernel as advice: faults, races and uninitialised reads, each with its remedy."""

from __future__ import annotations

from ..words.numbers import listed
from .advice import Advice
from .profile import Profile, Uninitialised
from .race_advice import pairs_text, remedy
from .race_groups import RaceGroup, grouped
from .wording import element, party, uninitialised_text


def problems(profile: Profile) -> list[Advice]:
    """Faults, races and uninitialised reads, in this order; races with one cause are one entry."""
    made = []
    if profile.fault:
        file = profile.source[0][0] if profile.source else ""
        where = ((_file_of(profile, profile.fault_line, file), profile.fault_line),) if profile.fault_line else ()
        made.append(Advice("fault", "error", "The run ended early", "", (profile.fault,), where))
    made += [_of_races(group, profile) for group in grouped(profile)]
    made += [_of_uninitialised(read, profile) for read in profile.uninitialised]
    return made


def _of_races(group: RaceGroup, profile: Profile) -> Advice:
    first = group.races[0]
    example = next((race for race in group.races if not race.between_blocks), first)
    if group.kind == "lost update":
        title = f"Lost update of {first.space} {element(first.array, first.index)}"
    else:
        names = [element(name, next(race.index for race in group.races if race.array == name)) for name in group.arrays]
        title = f"Race on {first.space} {listed(names)}: {example.kind}"
    details = (*(party(side, profile) for side in (example.first, example.second)), pairs_text(group))
    return Advice(group.kind, "error", title, remedy(group, profile), details, group.lines)


def _of_uninitialised(read: Uninitialised, profile: Profile) -> Advice:
    title, detail = uninitialised_text(read, profile)
    if read.space == "global":
        cure = (
            f"Nobody has written to this part of {read.array} since cuda.device_array made it: write every element "
            "that is read, in an earlier kernel or with a copy."
        )
        return Advice("uninitialised read", "error", title, cure, (detail,), ((read.site.file, read.site.line),))
    writers = sorted({a.site.line for a in profile.accesses if a.array == read.array and a.kind != "load"})
    if writers:
        lines = f"line {writers[0]}" if len(writers) == 1 else f"lines {listed([str(line) for line in writers])}"
        cure = (
            f"Write every element of {read.array} that is read: {lines} may leave some out, or come too late. Let the "
            "threads that a guard excludes write 0, and put cuda.syncthreads() between the writes and the read."
        )
    else:
        cure = f"No thread of the block writes to {read.array}: fill it first, and put cuda.syncthreads() after that."
    return Advice("uninitialised read", "error", title, cure, (detail,), ((read.site.file, read.site.line),))


def _file_of(profile: Profile, line: int, default: str) -> str:
    """The file whose listed source contains the line; an error may be in a device function of another file."""
    for file, first, text in profile.source:
        if first <= line < first + len(text):
            return file
    return default
