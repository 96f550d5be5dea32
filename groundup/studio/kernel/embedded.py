"""What an exported page carries: one of the book's walks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundup.studio.kernel.walks import DEFAULT, WALKS, book_walk


def data(options: Mapping[str, Any]) -> dict[str, Any]:
    """The data of the walk options["walk"], DEFAULT if it is not named, for static/page.js.

    Raises ValueError for an unknown walk, and where stage 4 runs on something else than the emulator in this process.
    """
    name = options.get("walk") or DEFAULT
    if name not in WALKS:
        raise ValueError(f"walk: expected one of {', '.join(WALKS)}, got {name!r}")
    from groundup.compiling.emulator_hooks import emulator_for_stage_4  # here, because it takes a second

    with emulator_for_stage_4():
        return book_walk(name)
