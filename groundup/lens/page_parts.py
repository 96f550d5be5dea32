"""The sections of one kernel's page: each function makes Html from a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from groundup.lens.annotations import LineNotes, annotate, global_verdict, problems, shared_verdict
from groundup.lens.pictures import access_map, bank_map, timeline
from groundup.lens.profile import Access, Branch, Profile
from groundup.lens.summary import figures, roofline_text, static_text
from groundup.lens.wording import caveats, file_name, lanes, launch, traced_text
from shared.markup import Html, join, scrolling, table, tag
from shared.numbers import count, counted_share

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


def problem_section(profile: Profile) -> Html:
    """The errors of the kernel, or a sentence that none was found, with its limits."""
    found = problems(profile)
    if not found:
        judged = ", except what is listed as not traced or not judged" if profile.unjudged or profile.not_traced else ""
        words = f"No race, no uninitialised read and no fault in the traced blocks{judged}."
        return tag("p", words, class_="good")
    boxes = [
        tag(
            "div",
            tag("h4", f"x {each.title}"),
            tag("ul", *(tag("li", detail) for detail in each.details)),
            class_="problem",
        )
        for each in found
    ]
    return tag("section", tag("h3", "What is wrong"), *boxes)


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


def access_maps(profile: Profile) -> Html:
    """A picture for each load and store of global memory."""
    reached = [each for each in profile.accesses if each.space == "global" and each.example]
    if not reached:
        return Html("")
    explained = (
        "One warp at each access: every row is a lane, every column 4 bytes. Memory gives whole "
        "sectors of 32 bytes, whether or not lanes ask for all of them. Dots stand for sectors that are not fetched. "
        "Fewer sectors are better, and so are fewer bytes that are fetched and not used."
    )
    drawn = _once(_figure(each, access_map, global_verdict(each)[0]) for each in reached)
    return tag("section", tag("h3", "Access maps: global memory"), tag("p", explained), *drawn)


def bank_maps(profile: Profile) -> Html:
    """A picture for each load and store of shared memory."""
    banked = [each for each in profile.accesses if each.space == "shared" and each.example]
    if not banked:
        return Html("")
    explained = (
        "One warp at each access: every column is one of 32 banks, every row 32 neighbouring words of 4 bytes. A cell "
        "says which lane asks for the word (16x: that many lanes ask for the same one, which costs nothing more). A "
        "bank gives one word at a time: the tallest bar is how many passes it takes."
    )
    drawn = _once(_figure(each, bank_map, shared_verdict(each)[0]) for each in banked)
    return tag("section", tag("h3", "Bank maps: shared memory"), tag("p", explained), *drawn)


def _once(figures: Iterable[Html]) -> list[Html]:
    """Equal figures once: a device function that is called twice has each of its accesses twice."""
    return list(dict.fromkeys(figures))


def _figure(access: Access, draw: Callable[..., str], verdict: str) -> Html:
    name = f"{access.kind} {access.array}, line {access.site.line}"
    assert access.example is not None
    one = access.example
    where = f"warp {one.warp} of block {one.block}, the costliest of {count(access.requests)}"
    picture = Html(draw(one, name, access.array))
    caption = tag("figcaption", f"{name}: ", tag("code", access.site.text), tag("span", f"{verdict}. Drawn: {where}."))
    return tag("figure", caption, scrolling(picture, name))


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
        rows = [_access_row(each) for each in profile.accesses]
        parts += [tag("h3", "Accesses"), table(heads, rows, frozenset((0, *range(3, 10))), "Accesses")]
    if profile.reuse:
        heads = ["array", "memory", "elements", "touched", "loads", "stores", "atomics", "most loads of one element"]
        heads += ["in one block", "requests in one block"]
        rows = [
            [each.array, each.space, count(each.elements)]
            + [count(n) for n in (each.touched, each.loads, each.stores, each.atomics)]
            + [count(n) for n in (each.most_loads, each.most_loads_in_block, each.most_requests_in_block)]
            for each in profile.reuse
        ]
        parts += [tag("h3", "Reuse of each array"), table(heads, rows, frozenset(range(2, 10)), "Reuse")]
    if profile.branches:
        heads = ["line", "condition", "evaluated by warps", "divergent", "lanes", "taken", "a warp that diverges"]
        rows = [_branch_row(each) for each in profile.branches]
        parts += [tag("h3", "Branches"), table(heads, rows, frozenset((0, 2, 3, 4, 5)), "Branches")]
    note = tag("p", "These tables are of the traced blocks.", class_="quiet")
    return tag("section", *parts, note) if parts else Html("")


def _access_row(each: Access) -> list[str]:
    row = [f"{each.site.line}", f"{each.kind} {each.array}", each.space, count(each.requests), count(each.lanes)]
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
    """Occupancy and the roofline estimate, if they are known."""
    parts = []
    for title, sentences in (("Static occupancy", static_text(profile)), ("Roofline estimate", roofline_text(profile))):
        if sentences:
            parts += [tag("h3", title), *(tag("p", each) for each in sentences)]
    return tag("section", *parts) if parts else Html("")


def reservations(profile: Profile) -> Html:
    """The accesses that were not traced or judged, and the limits of the numbers."""
    missing = [f"line {each.line}: {each.text}: {each.reason}" for each in profile.not_traced]
    parts = []
    for title, sentences in (("Not traced", missing), ("Not judged", profile.unjudged)):
        if sentences:
            parts += [tag("h3", title), tag("ul", *(tag("li", each) for each in sentences))]
    parts += [tag("h3", "What these numbers do not say"), tag("ul", *(tag("li", each) for each in caveats(profile)))]
    return tag("section", *parts)
