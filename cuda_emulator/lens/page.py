"""The page: one HTML file about one kernel, or about two side by side. It needs no network.

html(profiles)          the whole page
write(profiles, path)   the same into a file
embedded(profile)       one kernel's part of the page, with its styles, for a notebook's cell
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ..words.markup import Html, table, tag
from . import page_parts as parts
from .page_parts import roofline_section
from .page_script import HASH, SCRIPT
from .page_style import FRAME, STYLE
from .profile import Profile
from .summary import figures, ratio, unlike, verdict

_POLICY = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{HASH}'"
"""The browser may apply the styles in the page and run its one script; it loads nothing."""


def html(profiles: Sequence[Profile]) -> str:
    """A page about one profile, or about two side by side with the ratios of their main figures.

    Raises ValueError for any other number of profiles.
    """
    if not 1 <= len(profiles) <= 2:
        raise ValueError(f"profiles: one or two fit on a page, got {len(profiles)}")
    names = " and ".join(profile.kernel for profile in profiles)
    if len(profiles) == 1:
        body = tag("main", _kernel(profiles[0], "h1"), class_="lens")
    else:
        both = tag("div", *(_kernel(profile, "h2", BESIDE) for profile in profiles), class_="pair")
        below = [_kernel(profile, "", BELOW, f"Pictures of {profile.kernel}") for profile in profiles]
        chart = roofline_section([*profiles]) if _one_device(profiles) else Html("")
        body = tag("main", tag("h1", names), comparison(*profiles), chart, both, *below, class_="lens two")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{names}: what it does to memory" if len(profiles) == 1 else f"{names}: what they do to memory"),
        tag("style", Html(FRAME + STYLE)),
    )
    script = tag("script", Html(SCRIPT))
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", body, script), lang="en") + "\n"


def write(profiles: Sequence[Profile], path: str | Path) -> Path:
    """Write the page to `path` in one step, and return the path. Raises OSError if it cannot be written."""
    path, text = Path(path), html(profiles)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
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


def _one_device(profiles: Sequence[Profile]) -> bool:
    return len({each.roofline.device for each in profiles if each.roofline is not None}) == 1


BESIDE = (parts.finding_section, parts.source)
"""The sections of two kernels that stand side by side."""

BELOW = (parts.access_maps, parts.bank_maps, parts.phases, parts.tables, parts.device, parts.reservations)
"""The sections that need the whole width; those of the second kernel follow those of the first."""

ALL = (parts.finding_section, parts.main_figures, parts.source, *BELOW)


def _kernel(
    profile: Profile, heading: str, sections: Sequence[Callable[[Profile], Html]] = ALL, title: str = ""
) -> Html:
    """An article about a kernel: its header, or only a title, and the sections."""
    head = tag("h2", title) if title else parts.header(profile, heading)
    return tag("article", head, *(section(profile) for section in sections))
