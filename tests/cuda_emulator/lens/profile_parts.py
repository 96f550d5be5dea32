"""Small made-up profiles, and the accesses and reuse in them, for the tests of what is made of a profile."""

from __future__ import annotations

from typing import Any

from cuda_emulator.lens.profile import Access, Profile, Request, Reuse
from cuda_emulator.trace import Site
from tests.cuda_emulator.lens import lens_profiles


def site(kind: Any = "load", array: str = "a", line: int = 5) -> Site:
    """A place in a kernel that was never written."""
    return Site(0, "kernels.py", line, 4, kind, array, f"{array}[i]", "scale", "global")


def access(array: str = "a", line: int = 5, space: Any = "global", **numbers: Any) -> Access:
    """Ten requests of whole warps; numbers: what else there is to say of them."""
    request = Request(0, 0, tuple(range(32)), tuple(range(0, 128, 4)), 4)
    return Access(
        site(array=array, line=line), array, space, "load", 10, 320, numbers.pop("bytes_used", 1280), example=request,
        **numbers,
    )  # fmt: skip


def made(**fields: Any) -> Profile:
    """A profile of two of eight blocks, in which nothing happened but what `fields` say."""
    launch = {"kernel": "scale", "source": [], "grid": (8, 1, 1), "block": (128, 1, 1), "blocks": [0, 7]}
    return lens_profiles.profile([], **launch | {"grid_blocks": 8} | fields)


def reuse(**numbers: int) -> Reuse:
    """Of the array a."""
    known = {
        "elements": 1024, "touched": 256, "loads": 0, "stores": 0, "atomics": 0, "most_loads": 0,
        "most_loads_in_block": 0, "most_requests_in_block": 0,
    }  # fmt: skip
    return Reuse("a", "global", **known | numbers)
