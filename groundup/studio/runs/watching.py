"""Which runs have changed since the page last looked: the files of all run folders, asked twice a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

from groundup.studio.runs.folders import FACTS, Folders, RunFolder
from shared.training.run_facts import RUNNING, read_facts, state_of

EVERY = 0.5
"""Seconds between two looks at the files of the runs."""

LIST_EVERY = 2.0
"""Seconds between two looks for new run folders."""

Signature = dict[str, tuple[Any, ...]]


async def changes(folders: Folders, every: float = EVERY) -> AsyncIterator[dict[str, Any]]:
    """Yields {"changed": [code, …], "all": whether runs came or went} whenever there is something to tell."""
    runs: list[RunFolder] = await asyncio.to_thread(folders.all)
    before = await asyncio.to_thread(look, runs)
    yield {"changed": [], "all": False}
    for number in count(1):
        await asyncio.sleep(every)
        if number % max(1, round(LIST_EVERY / every)) == 0:
            runs = await asyncio.to_thread(folders.all)
        now = await asyncio.to_thread(look, runs)
        changed = [code for code, signature in now.items() if before.get(code) != signature]
        if changed or before.keys() != now.keys():
            yield {"changed": changed, "all": before.keys() != now.keys()}
        before = now


def look(runs: Sequence[RunFolder]) -> Signature:
    """What changes when a run does: its files, and whether its process still runs, which no file says."""
    return {each.code: (*_files(each), _state(each)) for each in runs}


def _files(run: RunFolder) -> list[tuple[str, int, int]]:
    return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in run.stats()]


def _state(run: RunFolder) -> str:
    path = run.file(FACTS)
    if path is None:
        return ""
    try:
        facts = read_facts(path)
    except (OSError, ValueError):
        return "damaged"
    return facts.state if facts.state != RUNNING else state_of(facts, run.changed())[0]
