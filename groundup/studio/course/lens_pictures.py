"""What the lens says of a kernel, with its pictures, for the page Course.

document(profile, line)    {"said", "findings", "pictures"}: sentences, and pictures as SVG files of their own
"""

from __future__ import annotations

from typing import Any

from cuda_emulator.inspection import (
    Profile,
    access_map,
    bank_map,
    findings,
    global_verdict,
    headline,
    on_lines,
    shared_verdict,
    standalone,
)
from cuda_emulator.inspection import ProfileAccess as Access

MOST = 4
"""Pictures, the costliest accesses first."""


def document(profile: Profile, line: int) -> dict[str, Any]:
    """The findings and the pictures of a profile, ready for JSON. line: the verdict's, whose pictures come first"""
    reached = [each for each in profile.accesses if each.example and each.space in ("global", "shared")]
    concerned = {number for found in findings(profile) for _, number in found.lines}
    order = sorted(reached, key=lambda each: (each.site.line != line, each.site.line not in concerned))
    pictures = list({picture["svg"]: picture for picture in map(_picture, order)}.values())
    return {
        "said": headline(profile),
        "findings": [
            {
                "level": each.level,
                "title": f"{each.title}{on_lines(each)}",
                "remedy": each.remedy,
                "details": list(each.details),
            }
            for each in findings(profile)
        ],
        "pictures": pictures[:MOST],
    }


def _picture(access: Access) -> dict[str, str]:
    """The request of an access that costs most, as a picture. Its words are in the picture's own description."""
    assert access.example is not None
    name = f"{access.kind} {access.array}, line {access.site.line}"
    if access.space == "global":
        drawn, verdict = access_map(access.example, name, access.array), global_verdict(access)[0]
    else:
        drawn, verdict = bank_map(access.example, name, access.array), shared_verdict(access)[0]
    return {"name": name, "code": access.site.text, "verdict": verdict, "svg": standalone(drawn)}
