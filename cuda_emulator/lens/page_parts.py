"""The sections of one kernel's page: each function makes Html from a profile."""

from __future__ import annotations

from collections.abc import Sequence

from ..words.markup import Html, join, scrolling, table, tag
from ..words.numbers import count, counted_share
from .advice import Advice
from .annotations import LineNotes, access_name, annotate
from .findings import findings, headline, on_lines, size_remark
from .page_maps import access_maps, bank_maps
from .pictures import timeline
from .profile import Access, Branch, Profile
from .roofline_chart import drawable, roofline_chart
from .summary import figures, roofline_text, static_text
from .wording import caveats, file_name, lanes, launch, traced_text

_MARK = {"error": "x", "costly": "!", "fine": ""}


def header(profile: Profile, heading: str) -> Html:
    """The kernel's name, its launch, and the traced blocks. heading: "h1" or "h2"."""
    arguments = ", ".join(f"{name} = {what}" for name, what in profile.arguments) or "none"
    rows = [
        ("launch", launch(profile)),
        ("arguments", arguments),
        ("traced", f"{traced_text(profile)}; {count(profile.events)} events"),
    ]
    terms = [join(tag("dt", name), tag("dd", value)) for name, value in rows]
    return tag("header", tag(heading, tag("code", profile.kernel)), tag("dl", *terms, class_="launch"))


def finding_section(profile: Profile) -> Html:
    """What to change, the costliest first; or a sentence that nothing was found, with its limits."""
    found, clean, remark = findings(profile), headline(profile), size_remark(profile)
    said = [tag("p", clean, class_="good")] if clean else []
    if not found:
        return join(*said)
    boxes = []
    for each in found:
        if each.level != "error" and remark:
            boxes.append(tag("p", remark, class_="quiet"))
            remark = ""
        boxes.append(_finding(each))
    title = tag("h3", "What to change, the costliest first")
    return tag("section", *said, title, tag("div", *boxes, class_="findings"))


def _finding(found: Advice) -> Html:
    details = [tag("li", *_with_code(detail)) for detail in found.details]
    parts = [tag("h4", f"{_MARK[found.level]} {found.title}{on_lines(found)}")]
    parts += [tag("p", *_with_code(found.remedy), class_="remedy")] if found.remedy else []
    parts += [tag("ul", *details)] if details else []
    return tag("div", *parts, class_=f"problem {found.level}")


def _with_code(text: str) -> list[str]:
    """The parts of a text; those between backquotes are code."""
    return [tag("code", part) if number % 2 else part for number, part in enumerate(text.split("`"))]


def main_figures(profile: Profile) -> Html:
    """The main figures of the whole launch, as cards."""
    cards = [
        tag("div", tag("dt", each.name), tag("dd", each.text)) for each in figures(profile) if each.value is not None
    ]
    return tag("section", tag("h3", "Main figures of the whole launch"), tag("dl", *cards, class_="figures"))


def source(profile: Profile) -> Html:
    """The lines of the kernel and of its device functions, each with its cost and its remarks."""
    notes = annotate(profile)
    listings = []
    for number, (file, first, lines) in enumerate(profile.source):
        if number:
            listings.append(tag("h4", f"Device function, {file_name(file)}, from line {first}"))
        rows = [_line(line, notes.get((file, at)), at) for at, line in enumerate(lines, first)]
        columns = tag("colgroup", tag("col", class_="line"), tag("col", class_="cost"), tag("col"))
        listings.append(tag("table", columns, tag("tbody", *rows), class_="source"))
    key = "Bars: the line's share of the global traffic (solid) and of the shared memory's passes (striped)."
    marks = " In the margin, x marks an error, and ! a line where a GPU would do more work than the data need."
    name = file_name(profile.source[0][0]) if profile.source else ""
    return tag("section", tag("h3", "Source"), tag("p", f"{name}. {key}{marks}", class_="quiet"), *listings)


def _line(line: str, here: LineNotes | None, number: int) -> Html:
    margin = tag("th", f"{number}", scope="row", class_="line")
    code = tag("div", line.rstrip() or " ", class_="code")
    if here is None:
        return tag("tr", margin, tag("td"), tag("td", code))
    bars = []
    for share, name in ((here.traffic, "global"), (here.passes, "shared")):
        if share:
            filled = tag("i", style=f"width:{100 * min(share, 1):.4g}%")
            bars.append(
                tag("span", f"{counted_share(share)} {name}", tag("span", filled, class_=f"bar {name}"), class_="share")
            )
    remarks = [tag("li", tag("b", _MARK[note.level]), note.text, class_=note.level) for note in here.notes]
    indent = len(line) - len(line.lstrip())
    cell = tag("td", code, tag("ul", *remarks, style=f"margin-left:{min(indent, 16)}ch"))
    return tag("tr", margin, tag("td", *bars), cell, class_=here.level)


def phases(profile: Profile) -> Html:
    """The timeline, unless it is empty."""
    if not profile.phases or not profile.accesses:
        return Html("")
    words = (
        "What happens between barriers (dashed): how many requests each line makes in each phase, all traced blocks "
        "together. Phases that repeat are drawn once."
    )
    picture = scrolling(Html(timeline(profile)), "Timeline")
    return tag("section", tag("h3", "Timeline"), tag("p", words), tag("figure", picture))


def tables(profile: Profile) -> Html:
    """Tables of the accesses, reuse and branches of the traced blocks."""
    parts = []
    if profile.accesses:
        heads = [
            "line",
            "access",
            "memory",
            "requests",
            "lanes",
            "sectors",
            "fewest",
            "bytes used",
            "passes",
            "most ways",
        ]
        rows = [_access_row(access, profile.accesses) for access in profile.accesses]
        parts += [tag("h3", "Accesses"), table(heads, rows, frozenset((0, *range(3, 10))), "Accesses")]
    if profile.reuse:
        heads = ["array", "memory", "elements", "touched", "loads", "stores", "atomics", "most loads of one element"]
        heads += ["in one block", "requests in one block"]
        rows = [
            [reuse.array, reuse.space, count(reuse.elements)]
            + [count(n) for n in (reuse.touched, reuse.loads, reuse.stores, reuse.atomics)]
            + [count(n) for n in (reuse.most_loads, reuse.most_loads_in_block, reuse.most_requests_in_block)]
            for reuse in profile.reuse
        ]
        parts += [tag("h3", "Reuse of each array"), table(heads, rows, frozenset(range(2, 10)), "Reuse")]
    if profile.branches:
        heads = ["line", "condition", "evaluated by warps", "divergent", "lanes", "taken", "a warp that diverges"]
        rows = [_branch_row(branch) for branch in profile.branches]
        parts += [tag("h3", "Branches"), table(heads, rows, frozenset((0, 2, 3, 4, 5)), "Branches")]
    note = tag("p", "These tables are of the traced blocks.", class_="quiet")
    return tag("section", *parts, note) if parts else Html("")


def _access_row(each: Access, accesses: Sequence[Access]) -> list[str]:
    row = [f"{each.site.line}", access_name(each, accesses), each.space, count(each.requests), count(each.lanes)]
    far, near = each.space == "global", each.space == "shared"
    row += [count(each.sectors) if far else "", count(each.ideal_sectors) if far else "", count(each.bytes_used)]
    return [*row, count(each.wavefronts) if near else "", count(each.most_ways) if near else ""]


def _branch_row(each: Branch) -> list[str]:
    example = ""
    if each.example:
        took, left = each.example
        example = f"lanes {lanes(took)} take it, {lanes(left)} do not"
    numbers = [count(n) for n in (each.evaluated, each.divergent, each.lanes, each.taken)]
    return [f"{each.site.line}", each.site.text, *numbers, example]


def device(profile: Profile) -> Html:
    """Occupancy and the roofline estimate with its chart, if they are known."""
    parts = []
    drawn = [Html(""), roofline_figure([profile])]
    sections = ("Static occupancy", static_text(profile)), ("Roofline estimate", roofline_text(profile))
    for (title, sentences), figure in zip(sections, drawn, strict=True):
        if sentences:
            parts += [tag("h3", title), figure, *(tag("p", each) for each in sentences)]
    return tag("section", *parts) if parts else Html("")


def roofline_section(profiles: Sequence[Profile]) -> Html:
    """The chart of two kernels with a title; nothing if neither has operations and traffic."""
    figure = roofline_figure(profiles)
    return tag("section", tag("h3", "Roofline estimate"), figure) if figure else Html("")


def roofline_figure(profiles: Sequence[Profile]) -> Html:
    """The chart of the kernels that have operations and traffic."""
    shown = drawable(profiles)
    if not shown:
        return Html("")
    words = (
        "A mark is a kernel by its requests, as if no cache helped; the ring is the same kernel if every element moved "
        "once. The distance to the roof above it is what the launch, idle multiprocessors or bank conflicts cost."
    )
    return tag("figure", tag("figcaption", tag("span", words)), scrolling(Html(roofline_chart(shown)), "Roofline"))


def reservations(profile: Profile) -> Html:
    """The accesses that were not traced or judged, and the limits of the numbers."""
    missing = [f"line {each.line}: {each.text}: {each.reason}" for each in profile.not_traced]
    parts = []
    for title, sentences in (("Not traced", missing), ("Not judged", profile.unjudged)):
        if sentences:
            parts += [tag("h3", title), tag("ul", *(tag("li", each) for each in sentences))]
    parts += [tag("h3", "What these numbers do not say"), tag("ul", *(tag("li", each) for each in caveats(profile)))]
    return tag("section", *parts)


__all__ = [
    "access_maps",
    "bank_maps",
    "device",
    "finding_section",
    "header",
    "main_figures",
    "phases",
    "reservations",
    "roofline_section",
    "source",
    "tables",
]
