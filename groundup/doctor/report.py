"""A diagnosis as lines of text: what `groundup doctor` colours and `python -m groundup.doctor` prints plainly."""

from __future__ import annotations

from collections.abc import Iterator

from groundup.doctor import DEPENDENCIES, Diagnosis, Finding

FIX = "fix: "


def rows(findings: list[Finding]) -> list[Finding]:
    """The findings as they are shown: packages that are well share one line, and so do those that are missing."""
    groups: dict[tuple[str | None, ...], list[Finding]] = {}
    for each in findings:
        key: tuple[str | None, ...] = (each.about, each.text)
        if each.about in DEPENDENCIES:
            key = (each.status, each.fix, "" if each.status == "ok" else each.text)
        groups.setdefault(key, []).append(each)
    return [group[0] if len(group) == 1 else _joined(group) for group in groups.values()]


def _joined(group: list[Finding]) -> Finding:
    """Packages of one status and one fix in one line."""
    first = group[0]
    if first.status == "ok":
        text = ", ".join(f"{each.about} {each.text}" for each in group)
    else:
        text = f"{first.text}: {', '.join(each.about for each in group)}"
    return Finding("packages", first.status, text, first.fix)


def lines(diagnosis: Diagnosis) -> Iterator[tuple[str, str, str]]:
    """(status, about, text) of every line; the commands of a fix are lines of status "fix" below their finding, and
    only the first time."""
    told = set()
    for each in rows(diagnosis.findings):
        yield each.status, each.about, each.text
        if each.fix and each.fix in told:
            yield "fix", "", "the same as above"
        elif each.fix:
            told.add(each.fix)
            for command in each.fix.splitlines():
                yield "fix", "", command


def outcome(diagnosis: Diagnosis) -> list[str]:
    """What will run here, or that the main job will not."""
    if diagnosis.ok:
        noted = any(each.status == "note" for each in diagnosis.findings)
        head = "What will run here (the notes above stop none of it):" if noted else "What will run here:"
        return [head, *(f"  {command}" for command in diagnosis.runs)]
    return ["The main job, groundup race, will not run here before the problems above are mended."]


def plain(diagnosis: Diagnosis) -> str:
    """The whole report without colours."""
    width = max(len(about) for _, about, _ in lines(diagnosis))
    shown = [
        f"{'':<8}{'':<{width}}  {FIX}{text}" if status == "fix" else f"{status:<8}{about:<{width}}  {text}"
        for status, about, text in lines(diagnosis)
    ]
    return "\n".join([*shown, "", *outcome(diagnosis)])
