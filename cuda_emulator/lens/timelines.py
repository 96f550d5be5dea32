"""The timeline: the lines that access memory in each phase between barriers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..words.markup import escape
from ..words.numbers import count, plural
from .profile import Access, Phase, Profile
from .svg import box, label, svg

MOST_COLUMNS = 14
"""The largest number of phases in a timeline; phases that repeat count once."""


def timeline(profile: Profile) -> str:
    """A column for each phase between barriers, a row for each site; repeated phases are drawn once, with a count."""
    names = _site_names(profile.accesses)
    rows = sorted(names, key=lambda number: names[number][:2])
    groups = repeats(profile.phases)
    raised = 24 if any(times > 1 for _, times in groups) else 0  # space for the counts of repeated phases
    longest = max((len(f"line {line}: {words}") for line, _, words, _ in names.values()), default=0)
    cell, high, left, top = 58, 22, 24 + 6.2 * longest, 26 + raised
    most = max((n for phase in profile.phases for n in phase.requests.values()), default=1)
    parts: list[str] = []
    x, drawn, left_out = left, 0, 0
    bottom = top + high * len(rows)
    for block, times in groups:
        if drawn + len(block) > MOST_COLUMNS:
            left_out += len(block) * times
            continue
        begin = x
        for phase in block:
            name = f"{phase.number}"
            parts.append(label(x + cell / 2, top - 8, name, "lens-ink lens-middle"))
            for place, number in enumerate(rows):
                requests = phase.requests.get(number, 0)
                if requests:
                    parts.append(_cell(x, top + high * place, cell, requests, most, names[number]))
            drawn += 1
            x += cell
            parts.append(f'<path d="M{x:g} {top - 4}V{bottom}" class="lens-barrier"/>')
        if times > 1:
            parts.append(f'<path d="M{begin + 3:g} 30V25H{x - 3:g}V30" class="lens-rule"/>')
            last = block[0].number + times * len(block) - 1
            parts.append(label((begin + x) / 2, 20, f"{times} times, until {last}", "lens-ink lens-small lens-middle"))
    if parts and parts[-1].endswith('class="lens-barrier"/>'):
        parts.pop()  # no barrier after the last phase
    for place, number in enumerate(rows):
        line, _, words, _ = names[number]
        parts.append(label(left - 8, top + high * place + 15, f"line {line}: {words}", "lens-ink lens-end"))
    for place in range(len(rows) + 1):
        parts.append(f'<path d="M4 {top + high * place}H{x:g}" class="lens-rule"/>')
    parts.append(label(left - 8, top - 8, "phase", "lens-quiet lens-end"))
    if left_out:
        parts.append(label(left, bottom + 16, f"{plural(left_out, 'later phase')} not drawn", "lens-ink"))
    text = f"{plural(len(profile.phases), 'phase')} between barriers; requests of all traced blocks. " + " ".join(
        f"Phase {phase.number}: "
        + (", ".join(f"{names[n][2]} {r}" for n, r in sorted(phase.requests.items()) if n in names) or "nothing")
        + "."
        for block, _ in groups[:4]
        for phase in block
    )
    return svg(max(x + 10, left + 120), bottom + (26 if left_out else 10), f"Timeline of {profile.kernel}", text, parts)


def repeats(phases: Sequence[Phase]) -> list[tuple[list[Phase], int]]:
    """Groups of up to four phases, with the number of repetitions: a loop with two barriers is a group of two."""
    found: list[tuple[list[Phase], int]] = []
    at = 0
    shape = [(phase.requests, phase.active_warps) for phase in phases]
    while at < len(phases):
        size, times = 1, 1
        for length in range(1, 5):
            again = 1
            while shape[at + again * length : at + (again + 1) * length] == shape[at : at + length]:
                again += 1
            if again >= 3:
                size, times = length, again
                break
        found.append((list(phases[at : at + size]), times))
        at += size * times
    return found


def _cell(x: float, y: float, width: int, requests: int, most: int, name: tuple[int, int, str, str]) -> str:
    """The number of requests, and a bar with that length."""
    bar = max(2.0, (width - 6) * requests / most)
    kind = "lens-store" if name[3] != "load" else "lens-used"
    number = label(x + width / 2, y + 12, count(requests), "lens-ink lens-small lens-middle")
    drawn = number + box(x + 3, y + 15, bar, 4, kind)
    return f"<g><title>{escape(name[2])}: {plural(requests, 'request')}</title>{drawn}</g>"


def _site_names(accesses: Sequence[Access]) -> dict[int, tuple[int, int, str, str]]:
    """{site number: (line, column, "load a", kind)}; a device function's one site may reach several arrays."""
    arrays: defaultdict[int, list[Access]] = defaultdict(list)
    for each in accesses:
        arrays[each.site.number].append(each)
    return {
        number: (
            found[0].site.line,
            found[0].site.column,
            f"{found[0].kind} {', '.join(dict.fromkeys(each.array for each in found))}",
            found[0].kind,
        )
        for number, found in arrays.items()
    }
