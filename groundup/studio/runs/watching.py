"""Which runs have changed since the page last looked: the files of all run folders, asked twice a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from groundup.studio.runs.folders import FACTS, Folders, RunFolder
from shared.training.run_facts import RUNNING, RunFacts, read_facts, state_of

EVERY = 0.5
"""Seconds between two looks at the files of the runs."""

Signature = dict[str, tuple[Any, ...]]
Known = dict[str, tuple[Any, RunFacts | None]]


async def changes(folders: Folders, every: float = EVERY) -> AsyncIterator[dict[str, Any]]:
    """Yields {"changed": [code, …], "all": whether runs came or went} whenever there is something to tell."""
    known: Known = {}
    before = await asyncio.to_thread(lambda: look(folders.all(), known))
    yield {"changed": [], "all": False}
    while True:
        await asyncio.sleep(every)
        now = await asyncio.to_thread(lambda: look(folders.all(), known))
        changed = [code for code, signature in now.items() if before.get(code) != signature]
        if changed or before.keys() != now.keys():
            yield {"changed": changed, "all": before.keys() != now.keys()}
        before = now


def look(runs: Sequence[RunFolder], known: Known) -> Signature:
    """What changes when a run does: its files, and whether its process still runs, which no file says.

    known: what run.json says of each run, so that it is read only when it has changed
    """
    found: Signature = {}
    for run in runs:
        files = [(name, stat.st_mtime_ns, stat.st_size) for name, stat in run.stats()]
        own = [each for each in files if each[0] == FACTS]
        if run.code not in known or known[run.code][0] != own:
            known[run.code] = (own, _facts(run))
        facts = known[run.code][1]
        found[run.code] = (*files, state_of(facts, run.changed())[0] if facts and facts.state == RUNNING else "")
    return found


def _facts(run: RunFolder) -> RunFacts | None:
    path = run.file(FACTS)
    try:
        return read_facts(path) if path is not None else None
    except (OSError, ValueError):  # the list says so; here it has no process to watch
        return None
