"""The maps of the page: for each access what one warp asks for, in memory and in the array, with a choice of the warp.

The choice is made of radio buttons and a style sheet, so that it also works in a notebook, on paper (the chosen one is
printed) and by keyboard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..words.markup import Html, join, scrolling, tag
from ..words.numbers import count
from .elements import element_map
from .pictures import access_map, bank_map
from .profile import Access, Profile, Request
from .verdicts import global_verdict, shared_verdict

MOST = 3
"""Warps, and rounds, that a figure offers (profile.Access.examples)."""

STYLE = """
.lens .variant{display:none}.lens .costliest{display:block}
.lens form:has(:checked) .variant{display:none}
""" + "".join(
    f".lens form:has(.w{warp}:checked):has(.r{turn}:checked) .variant.w{warp}.r{turn}{{display:block}}"
    for warp in range(MOST)
    for turn in range(MOST)
)
"""The rules that show the chosen variant; a browser without :has shows the costliest."""


def access_maps(profile: Profile) -> Html:
    """A picture for each load and store of global memory."""
    reached = [each for each in profile.accesses if each.space == "global" and each.example]
    if not reached:
        return Html("")
    explained = (
        "One warp at each access: every row is a lane, every column 4 bytes. Memory gives whole "
        "sectors of 32 bytes, whether or not lanes ask for all of them. Dots stand for sectors that are not fetched. "
        "Fewer sectors are better, and so are fewer bytes that are fetched and not used. The second picture shows "
        "the same request in the array: the number in an element is the lane that takes it."
    )
    drawn = _once(_figure(each, profile, access_map, global_verdict(each)[0]) for each in reached)
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
    drawn = _once(_figure(each, profile, bank_map, shared_verdict(each)[0]) for each in banked)
    return tag("section", tag("h3", "Bank maps: shared memory"), tag("p", explained), *drawn)


def _once(figures: Iterable[Html]) -> list[Html]:
    """Equal figures once: a device function that is called twice has each of its accesses twice."""
    return list(dict.fromkeys(figures))


def _figure(access: Access, profile: Profile, draw: Callable[..., str], verdict: str) -> Html:
    """The pictures of an access, with a choice if there are several warps or rounds."""
    name = f"{access.kind} {access.array}, line {access.site.line}"
    assert access.example is not None
    chosen = access.example
    others = access.examples or (chosen,)
    warps, rounds = (sorted({getattr(example, field) for example in others}) for field in ("warp", "round"))
    variants = []
    for example in others:
        kind = f"variant w{warps.index(example.warp)} r{rounds.index(example.round)}"
        kind += " costliest" if example is chosen or example == chosen else ""
        variants.append(tag("div", *_pictures(example, access, profile, draw, name), class_=kind))
    if len(others) == 1:
        variants = [tag("div", *_pictures(chosen, access, profile, draw, name))]
        missing = Html("")
    else:
        missing = _missing(others, warps, rounds)
    where = f"block {chosen.block}; at first the costliest of {count(access.requests)} requests"
    caption = tag("figcaption", f"{name}: ", tag("code", access.site.text), tag("span", f"{verdict}. Drawn: {where}."))
    choices = [
        *_choice("warp", "w", warps, chosen.warp),
        *_choice("round of the loop", "r", rounds, chosen.round),
    ]
    return tag("figure", caption, tag("form", *(choices if len(others) > 1 else []), *variants, missing))


def _pictures(request: Request, access: Access, profile: Profile, draw: Callable[..., str], name: str) -> list[Html]:
    where = f"{name}, warp {request.warp}, round {request.round}"
    made = [tag("div", scrolling(Html(draw(request, where, access.array)), where))]
    if request.indices and all(request.indices):
        does = {"load": "reads", "store": "writes"}.get(access.kind, "updates")
        shown = element_map(request, f"{where}: elements", access.array, access.shape, profile.block, does)
        made.append(tag("div", scrolling(Html(shown), f"{where}: elements")))
    return [tag("div", *made, class_="maps")]


def _choice(words: str, letter: str, values: list[int], chosen: int) -> list[Html]:
    """Radio buttons for the values; one value is chosen without being shown."""
    buttons = []
    for number, value in enumerate(values):
        checked = {"checked": "checked"} if value == chosen else {}
        button = tag("input", type="radio", name=letter, class_=f"{letter}{number}", **checked)
        buttons.append(tag("label", button, f" {count(value)}"))
    hidden = {"hidden": "hidden"} if len(values) == 1 else {}
    return [tag("fieldset", tag("legend", words), *buttons, class_="choice", **hidden)]


def _missing(others: tuple[Request, ...], warps: list[int], rounds: list[int]) -> Html:
    """A sentence for each warp that has no such round."""
    known = {(each.warp, each.round) for each in others}
    return join(
        *(
            tag(
                "p",
                f"Warp {count(warp)} makes no request in round {count(turn)}.",
                class_=f"variant w{warps.index(warp)} r{rounds.index(turn)}",
            )
            for warp in warps
            for turn in rounds
            if (warp, turn) not in known
        )
    )
