"""The page: one HTML file about one kernel, or about two side by side. It needs no network and no script.

html(profiles)          the whole page
write(profiles, path)   the same into a file
embedded(profile)       one kernel's part of the page, with its styles, for a notebook's cell
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from groundup.lens import page_parts as parts
from groundup.lens.page_style import FRAME, STYLE
from groundup.lens.profile import Profile
from groundup.lens.summary import figures, ratio, unlike, verdict
from shared.markup import Html, join, table, tag

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The browser may apply the styles in the page; it loads nothing and runs no script."""


def html(profiles: Sequence[Profile]) -> str:
    """A page about one profile, or about two side by side with the ratios of their main figures.

    Raises ValueError for any other number of profiles.
    """
    if not 1 <= len(profiles) <= 2:
        raise ValueError(f"profiles: one or two fit on a page, got {len(profiles)}")
    names = " and ".join(each.kernel for each in profiles)
    if len(profiles) == 1:
        body = tag("main", _kernel(profiles[0], "h1"), class_="lens")
    else:
        both = tag("div", *(_kernel(each, "h2", [parts.main_figures]) for each in profiles), class_="pair")
        body = tag("main", tag("h1", names), comparison(*profiles), both, class_="lens two")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{names}: what it does to memory" if len(profiles) == 1 else f"{names}: what they do to memory"),
        tag("style", Html(FRAME + STYLE)),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", body), lang="en") + "\n"


def write(profiles: Sequence[Profile], path: str | Path) -> Path:
    """Write the page to `path` in one step, and return the path. Raises OSError if it cannot be written."""
    from shared.machine.atomic import write_atomically  # here, as the stage's own modules need no part of shared

    path = Path(path)
    write_atomically(path, html(profiles).encode())
    return path


def embedded(profile: Profile) -> str:
    """One kernel's part, for a notebook: a div with its styles, which do not affect the rest of the notebook."""
    return tag("div", tag("style", Html(STYLE)), _kernel(profile, "h2"), class_="lens")


def comparison(first: Profile, second: Profile) -> Html:
    """The main figures of both kernels, and the ratio of the second's to the first's."""
    rows = [
        [one.name, one.text, other.text, ratio(one, other), verdict(one, other)]
        for one, other in zip(figures(first), figures(second), strict=True)
        if one.value is not None or other.value is not None
    ]
    heads = ["", first.kernel, second.kernel, "second / first", ""]
    shown = table(heads, rows, frozenset((1, 2, 3)), "Comparison")
    remarks = [tag("p", each) for each in unlike(first, second)]
    return tag("section", tag("h3", "Main figures of the whole launch"), *remarks, shown)


def _kernel(profile: Profile, heading: str, left_out: Sequence[Callable[[Profile], Html]] = ()) -> Html:
    sections = (
        parts.problem_section,
        parts.main_figures,
        parts.source,
        parts.access_maps,
        parts.bank_maps,
        parts.phases,
        parts.tables,
        parts.device,
        parts.reservations,
    )
    shown = [section(profile) for section in sections if section not in left_out]
    return tag("article", join(parts.header(profile, heading), *shown))
