"""What to change in the kernel: each finding with its remedy, errors first, then costs, the costliest first."""

from __future__ import annotations

from ..words.numbers import duration, listed
from .advice import Advice
from .cost_advice import costs
from .error_advice import problems
from .profile import Profile


def findings(profile: Profile) -> list[Advice]:
    """All findings. After a fault the counts are incomplete, so that costs are left out."""
    wrong = problems(profile)
    return wrong if profile.fault else wrong + costs(profile)


def headline(profile: Profile) -> str:
    """One sentence about the findings: their number, and the limits of what was looked at."""
    found = findings(profile)
    errors = sum(each.level == "error" for each in found)
    judged = ", except what is listed as not traced or not judged" if profile.unjudged or profile.not_traced else ""
    if errors:
        return ""
    clean = f"No race, no uninitialised read and no fault in the traced blocks{judged}."
    return clean if found else f"{clean} Nothing here costs a GPU more than the data need."


def size_remark(profile: Profile) -> str:
    """A sentence for a launch that is too small for its costs to matter; "" for others."""
    line = profile.roofline
    if line is None or line.bound != "launch":
        return ""
    return (
        f"At this size the launch itself (about {duration(line.seconds)}) takes longer than its work, so no cost below "
        "can be felt. They count with more data."
    )


def on_lines(advice: Advice) -> str:
    """The lines of a finding in brackets, unless its title names one."""
    numbers = [str(line) for _, line in advice.lines]
    if not numbers or " line" in advice.title:
        return ""
    return f" ({'line' if len(numbers) == 1 else 'lines'} {listed(numbers)})"
