"""The report in the terminal: errors, the source with remarks under its lines, and the totals.

report(profile)              a rich renderable
text(profile)                the same as plain text of 100 columns
comparison(first, second)    the main figures of two kernels side by side

Marks in the margin: "x" for an error, "!" for a line where a GPU would do more work than the data need.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..words.console import TextConsole, Whole
from ..words.numbers import count, counted_share, plural
from .annotations import LineNotes, access_name, annotate
from .findings import findings, headline, on_lines, size_remark
from .profile import Access, Profile
from .summary import figures, ratio, roofline_text, static_text, unlike, verdict
from .wording import caveats, file_name, launch, traced_text

WIDTH = 100
"""Columns of the plain text."""

_MARK = {"error": "x", "costly": "!", "fine": " "}
_STYLE = {"error": "bold red", "costly": "yellow", "fine": "cyan"}


def text(profile: Profile) -> str:
    """The report as plain text, no line longer than 100 columns."""
    return plain(report(profile))


def plain(renderable: RenderableType, width: int = WIDTH) -> str:
    """The text that rich prints, without colours and without spaces at the ends of lines."""
    written = io.StringIO()
    console = TextConsole(file=written, width=width, no_color=True, force_terminal=False, highlight=False)
    console.print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in written.getvalue().rstrip().splitlines()) + "\n"


def report(profile: Profile) -> RenderableType:
    """The whole report, for a rich console of any width."""
    parts: list[RenderableType] = [_header(profile)]
    parts += _findings(profile)
    notes = annotate(profile)
    for number, (file, first, lines) in enumerate(profile.source):
        parts.append(
            _title(f"Device function, {file_name(file)}, from line {first}" if number else f"Source: {file_name(file)}")
        )
        parts.append(_source(file, first, lines, notes))
    parts += [_title("Main figures of the whole launch"), _totals(profile)]
    if profile.accesses:
        parts += [_title("Accesses of the traced blocks"), _accesses(profile)]
    if profile.reuse:
        parts += [_title("Reuse of each array, in the traced blocks"), _reuse(profile)]
    parts += _sentences("Static occupancy", static_text(profile))
    parts += _sentences("Roofline estimate", roofline_text(profile))
    parts += _sentences("Not traced", [f"line {gap.line}: {gap.text}: {gap.reason}" for gap in profile.not_traced])
    parts += _sentences("Not judged", profile.unjudged)
    parts += _sentences("What these numbers do not say", caveats(profile))
    return Group(*parts)


def comparison(first: Profile, second: Profile) -> RenderableType:
    """The main figures of two kernels, and the ratio of the second's to the first's."""
    table = _table(
        ("", "left"), (first.kernel, "right"), (second.kernel, "right"), ("second / first", "right"), ("", "left")
    )
    for one, other in zip(figures(first), figures(second), strict=True):
        if one.value is None and other.value is None:
            continue
        outcome = verdict(one, other)
        style = {"better": "green", "worse": "yellow"}.get(outcome, "")
        table.add_row(one.name, one.text, other.text, ratio(one, other), Text(outcome, style=style))
    names = [Text(f"{each.kernel}: {launch(each)}") for each in (first, second)]
    remarks = list(dict.fromkeys(unlike(first, second) + caveats(first) + caveats(second)))
    return Group(
        *names,
        _title("Main figures of the whole launch"),
        Whole(table, indent=2),
        *_sentences("What these numbers do not say", remarks),
    )


def _header(profile: Profile) -> Text:
    head = Text(f"{profile.kernel}", style="bold")
    shown = Text.assemble(head, "\n", f"  launch     {launch(profile)}")
    for label, value in (
        ("arguments", ", ".join(f"{name} = {what}" for name, what in profile.arguments) or "none"),
        ("traced", f"{traced_text(profile)}; {count(profile.events)} events"),
    ):
        lines = textwrap.wrap(value, WIDTH - 13) or [""]
        shown.append(f"\n  {label:<11}" + ("\n" + " " * 13).join(lines))
    return shown


def _findings(profile: Profile) -> list[RenderableType]:
    found, clean, remark = findings(profile), headline(profile), size_remark(profile)
    parts: list[RenderableType] = [Text(f"\n{clean}", style="green")] if clean else []
    if not found:
        return parts
    parts.append(_title("What to change, the costliest first"))
    for number, each in enumerate(found, 1):
        if each.level != "error" and remark:
            parts.append(_indented(Text(remark)))
            remark = ""
        head = Text(f"{_MARK[each.level]} {each.title}{on_lines(each)}", style=_STYLE[each.level])
        rest = [Text(each.remedy, style="bold")] if each.remedy else []
        entry = _beside(Text(f"{number}."), Group(head, *rest, *map(Text, each.details)), 3)
        parts.append(_indented(entry))
    return parts


def _source(file: str, first: int, lines: list[str], notes: dict[tuple[str, int], LineNotes]) -> Table:
    """Three columns: the line's number, a rule, and the line with its remarks below."""
    grid = Table.grid(padding=0)
    grid.add_column(justify="right", no_wrap=True, min_width=6)
    grid.add_column(no_wrap=True, width=3)
    grid.add_column(overflow="fold")
    for number, line in enumerate(lines, first):
        here = notes.get((file, number), LineNotes())
        colour = _STYLE[here.level] if here.notes else "dim"
        grid.add_row(Text(f"{number}", style=colour), Text(" | ", style="dim"), Text(line.rstrip(), no_wrap=False))
        indent = len(line) - len(line.lstrip())
        for note in here.notes:
            remark = Text(note.text, style=_STYLE[note.level])
            margin = Text(f"{_MARK[note.level]} ", style=_STYLE[note.level])
            grid.add_row("", Text(" | ", style="dim"), Padding(_beside(margin, remark), (0, 0, 0, indent)))
        for share, of in ((here.traffic, "global traffic"), (here.passes, "shared memory's passes")):
            if share:
                remark = Text(f"{counted_share(share)} of the {of}", style=_STYLE["fine"])
                grid.add_row("", Text(" | ", style="dim"), Padding(_beside(Text("  "), remark), (0, 0, 0, indent)))
    return grid


def _beside(margin: Text, remark: RenderableType, width: int = 2) -> Table:
    pair = Table.grid(padding=0)
    pair.add_column(no_wrap=True, width=width)
    pair.add_column()
    pair.add_row(margin, remark)
    return pair


def _totals(profile: Profile) -> RenderableType:
    table = _table(("", "left"), ("", "right"))
    table.show_header = False
    for each in figures(profile):
        if each.value is not None:
            table.add_row(each.name, each.text)
    return Whole(table, indent=2)


def _accesses(profile: Profile) -> RenderableType:
    heads = ("line", "right"), ("access", "left"), ("memory", "left"), ("requests", "right"), ("lanes", "right")
    table = _table(*heads, ("sectors", "right"), ("bytes used", "right"), ("passes", "right"))
    for each in profile.accesses:
        table.add_row(
            f"{each.site.line}", *map(Text, access_row(each, profile.accesses))
        )  # a Text: an index is no markup
    return Whole(table, indent=2)


def access_row(access: Access, accesses: Sequence[Access]) -> tuple[str, ...]:
    """A row of the table of accesses: access, memory, requests, lanes, sectors, bytes used, passes."""
    sectors = count(access.sectors) if access.space == "global" else ""
    passes = count(access.wavefronts) if access.space == "shared" else ""
    name = access_name(access, accesses)
    return (name, access.space, count(access.requests), count(access.lanes), sectors, count(access.bytes_used), passes)


def _reuse(profile: Profile) -> RenderableType:
    heads = ("array", "left"), ("memory", "left"), ("touched", "right"), ("loads", "right"), ("stores", "right")
    table = _table(*heads, ("atomics", "right"), ("most loads of one element", "left"))
    for each in profile.reuse:
        asked = plural(each.most_requests_in_block, "request")  # of a warp: lanes that read one element ask once
        most = f"{count(each.most_loads)}; {count(each.most_loads_in_block)} in one block, by {asked}"
        blocks = f"{count(len(profile.blocks))} x " if each.space == "shared" and len(profile.blocks) > 1 else ""
        touched = f"{count(each.touched)} of {blocks}{count(each.elements)}"  # each block has its own shared memory
        numbers = (count(each.loads), count(each.stores), count(each.atomics))
        table.add_row(each.array, each.space, touched, *numbers, most if each.most_loads else "")
    return Whole(table, indent=2)


def _table(*columns: tuple[str, str]) -> Table:
    """A table with columns (heading, alignment), without lines, so that it looks right in every terminal and font."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for head, side in columns:
        table.add_column(Text(head), justify="right" if side == "right" else "left")
    return table


def _title(words: str) -> Text:
    return Text(f"\n{words}", style="bold")


def _indented(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 2))


def _sentences(title: str, sentences: list[str]) -> list[RenderableType]:
    return [_title(title), *(_indented(Text(each)) for each in sentences)] if sentences else []
