"""A kernel that is open on the page: its launch, walked through block by block, with the lens's verdicts.

opened = Opened(project_launch("tiled_16", (64, 64, 64)))
opened.walk(block=0, warp=3)          the document for the page
opened.race(0, 0, [1])                the same after the second barrier was taken away
opened.verdicts()                     what the lens says of each line
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuda_emulator.inspection import Launch, Launched, Walk, find_race
from groundup.studio.kernel.document import WARP, Place, as_it_is, document, value
from groundup.studio.kernel.racing import race_document

KEPT = 4
"""Walks that are kept; another one takes the place of the oldest."""


class Opened:
    """One launch. shown: changes the places of its lines, for a kernel that runs from a copy of its file"""

    def __init__(self, launch: Launch, shown: Place = as_it_is) -> None:
        self.launch, self.shown = launch, shown
        self.launched = Launched(launch.kernel, launch.grid, launch.block, launch.arguments, launch.sharedmem)
        self._walks: dict[tuple[int, int | None], Walk] = {}

    def about(self) -> dict[str, Any]:
        """What the launch is."""
        return {
            "name": self.launch.name,
            "grid": self.launched.grid,
            "block": self.launched.block,
            "arguments": [[name, _described(given)] for name, given in self.launched.values().items()],
        }

    def walk(self, block: int = 0, warp: int = 0) -> dict[str, Any]:
        """The walk of a block as a document. Raises ValueError for a block or warp that is not there."""
        return document(self._walk(block, warp), warp, self.shown)

    def race(self, block: int, warp: int, barriers: Sequence[int]) -> dict[str, Any]:
        """What happens without some barriers. barriers: their numbers in the walk's `barriers`"""
        walk = self._walk(block)
        if not barriers or not all(isinstance(each, int) and 0 <= each < len(walk.barriers) for each in barriers):
            raise ValueError(f"barriers: expected numbers from 0 to {len(walk.barriers) - 1}, got {list(barriers)}")
        removed = frozenset(walk.barriers[each] for each in barriers)
        return race_document(find_race(self.launched, block, removed, walk), warp, self.shown)

    def verdicts(self) -> dict[str, Any]:
        """The lens's notes on each line: {"lines": [[file, line, level, text]], "summary": sentences}."""
        from cuda_emulator.inspection import annotate, findings, profile

        launch = self.launch
        found = profile(launch.kernel, launch.grid, launch.block, *launch.arguments, sharedmem=launch.sharedmem)
        lines = [
            [*self.shown(*place), note.level, note.text]
            for place, here in sorted(annotate(found).items())
            for note in here.notes
        ]
        return {"lines": lines, "summary": [[each.level, each.title] for each in findings(found)]}

    def _walk(self, block: int, warp: int | None = None) -> Walk:
        """A walk with everything about one warp, or about all of them.

        The first of a block is of the one warp that is asked for, which takes less time. Then all may be asked for.
        """
        known = next((self._walks[key] for key in ((block, None), (block, warp)) if key in self._walks), None)
        if known is not None:
            return known
        if warp is not None and any(number == block for number, _ in self._walks):
            warp = None
        watched = None if warp is None else range(warp * WARP, (warp + 1) * WARP)
        walk = self.launched.walk(block, watched=watched)
        while len(self._walks) >= KEPT:
            del self._walks[next(iter(self._walks))]
        self._walks[block, warp] = walk
        return walk


def _described(given: object) -> str:
    return f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else str(value(given))
