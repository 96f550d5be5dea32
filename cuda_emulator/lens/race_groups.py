"""Group the races that one change of the source mends, and describe each group once.

A forgotten atomic gives up to six entries in Profile.races: read after write, write after read and write after write,
each within a block and between blocks. A missing barrier gives one for each array behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .profile import Profile, Race
from .syntax import Place, Update, same, update_of


@dataclass(frozen=True)
class RaceGroup:
    """Races with one cause. kind: "lost update" or "race"

    element: for a lost update the expression of the element, like `s[0]`, and its update
    """

    kind: str
    races: tuple[Race, ...]
    element: str = ""
    update: Update | None = None

    @property
    def between_blocks(self) -> bool:
        """Whether some of the races are between blocks."""
        return any(race.between_blocks for race in self.races)

    @property
    def within_block(self) -> bool:
        """Whether some of the races are within a block."""
        return not all(race.between_blocks for race in self.races)

    @property
    def pairs(self) -> int:
        """The number of pairs of threads that race."""
        return sum(race.times for race in self.races)

    @property
    def arrays(self) -> list[str]:
        """The names of the arrays, each once."""
        return list(dict.fromkeys(race.array for race in self.races))

    @property
    def conflicts(self) -> list[str]:
        """The kinds of the races, like "read after write", each once."""
        return list(dict.fromkeys(race.kind for race in self.races))

    @property
    def lines(self) -> tuple[Place, ...]:
        """The lines of the races, each once, in the order of the source."""
        sites = [party.site for race in self.races for party in (race.first, race.second)]
        return tuple(dict.fromkeys(sorted((site.file, site.line) for site in sites)))

    def line_numbers(self, *kinds: str) -> list[int]:
        """The lines of the accesses of these kinds ("load", "store", "atomic"), ascending."""
        sites = [party.site for race in self.races for party in (race.first, race.second)]
        return sorted({site.line for site in sites if site.kind in kinds})


def grouped(profile: Profile) -> list[RaceGroup]:
    """The groups of all races, in the order of the source."""
    groups: list[list[Race]] = []
    for race in profile.races:
        related = [group for group in groups if any(_related(race, other) for other in group)]
        groups = [group for group in groups if group not in related]
        groups.append([each for group in related for each in group] + [race])
    made = [_group(profile, group) for group in groups]
    return sorted(made, key=lambda group: group.lines)


def _related(one: Race, other: Race) -> bool:
    """Whether two races have a line in common, on one array; or on several, if a barrier would order both pairs."""
    shared_line = bool(_lines(one) & _lines(other))
    if one.array == other.array and one.space == other.space:
        return shared_line
    return shared_line and not one.between_blocks and not other.between_blocks


def _lines(race: Race) -> set[Place]:
    return {(party.site.file, party.site.line) for party in (race.first, race.second)}


def _group(profile: Profile, races: Sequence[Race]) -> RaceGroup:
    for race in races:
        if race.kind != "write after write":
            continue
        for party in (race.first, race.second):
            site = party.site
            read = any(
                each.site.kind == "load" and each.site.array == site.array and same(each.site.text, site.text)
                for other in races
                for each in (other.first, other.second)
            )
            update = update_of(profile, (site.file, site.line), site.text) if read and site.kind == "store" else None
            if update is not None:
                return RaceGroup("lost update", tuple(races), site.text, update)
    return RaceGroup("race", tuple(races))
