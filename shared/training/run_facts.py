"""What a run tells about itself: the file run.json beside its checkpoints.

RunFacts     the network and the size of the training; its sessions; whether it runs, is done, or was stopped
Session      one process that worked at the run, and the command that started it
read_facts   the file, read with distrust: it may be damaged, or come from a stranger
state_of     the state of a run now: a process that was killed could not write that it ended
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from shared.machine import regular, strict_json
from shared.machine.atomic import write_atomically
from shared.machine.own_process import is_running, mark_of

FORMAT = 1
RUNNING, DONE, STOPPED, UNKNOWN = STATES = ("running", "done", "stopped", "unknown")

MOST_BYTES = 4_000_000
"""A longer run.json is not read."""

MOST_SESSIONS = 100
"""The first sessions of a run that was resumed more often are forgotten."""

QUIET_SECONDS = 60.0
"""Without news for so long, a training on another machine is no longer called running."""


@dataclass(frozen=True)
class Session:
    """One process that worked at a run.

    command: its command line, program first; folder: where it was started
    began, ended: seconds since 1970; ended is None while it runs, and for ever if it was killed
    first_step: steps that the run had finished before
    ranks: how many processes trained together; this is rank 0, which wrote the run
    pid, mark: number and mark of the process, see shared/machine/own_process.py
    """

    command: tuple[str, ...]
    folder: str
    began: float
    first_step: int
    pid: int
    mark: str
    ended: float | None = None
    ranks: int = 1

    @classmethod
    def begin(cls, first_step: int, ranks: int = 1) -> Session:
        """The session of this process, from now on."""
        pid = os.getpid()
        return cls(tuple(sys.orig_argv), os.getcwd(), time.time(), first_step, pid, mark_of(pid), ranks=ranks)


@dataclass(frozen=True)
class RunFacts:
    """The content of run.json.

    state: RUNNING, DONE or STOPPED, as the training wrote it; reason: why it stopped, a sentence
    layers: the names of the layers whose weights steps.jsonl tells about, such as "1: 784 × 128"
    gpus: names of the machine's GPUs, as NVML tells them; no_gpus: why there are none, a sentence
    """

    stage: str
    layers: tuple[str, ...]
    epochs: int
    steps_per_epoch: int
    batch_size: int
    samples: int
    state: str = RUNNING
    reason: str = ""
    gpus: tuple[str, ...] = ()
    no_gpus: str = ""
    sessions: tuple[Session, ...] = field(default=())

    def write(self, path: Path) -> None:
        """Write the file as a whole; nothing depends on it after a power cut.

        Raises OSError if it cannot be written.
        """
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1, allow_nan=False)
        write_atomically(path, text.encode(), to_disk=False)

    def ended(self, state: str, reason: str) -> RunFacts:
        """The facts at the end of the last session."""
        last = replace(self.sessions[-1], ended=time.time())
        return replace(self, state=state, reason=reason, sessions=(*self.sessions[:-1], last))


def read_facts(path: Path) -> RunFacts:
    """The content of a run.json.

    Raises OSError if the file cannot be read, ValueError with a sentence if it is damaged or of another version.
    """
    with regular.opened(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path.name} is longer than {MOST_BYTES:,} bytes, which no training writes")
    try:
        saved = strict_json.loads(content.decode(errors="replace"))
    except ValueError as error:
        raise ValueError(f"{path.name} is damaged: it is no JSON document ({error})") from None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ValueError(f"{path.name} is not of format {FORMAT}, the only one that this version of groundup reads")
    try:
        return _facts(saved)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path.name} is damaged: {error!r}") from None


def state_of(facts: RunFacts, changed: float, now: float | None = None) -> tuple[str, str]:
    """(state, a sentence for why) of a run now.

    changed: when the newest file of its folder was written, in seconds since 1970; now: the same for now
    """
    if facts.state != RUNNING:
        return facts.state, facts.reason
    session = facts.sessions[-1]
    runs = is_running(session.pid, session.mark)
    if runs:
        return RUNNING, ""
    if runs is False:
        return STOPPED, "its process has ended without saying why: it was killed, or the machine was switched off"
    if (time.time() if now is None else now) - changed < QUIET_SECONDS:
        return RUNNING, "on another machine, or one that does not tell about its processes: its files still change"
    return UNKNOWN, f"its process cannot be asked from here, and its files have not changed for {QUIET_SECONDS:g} s"


def _facts(saved: Mapping[str, Any]) -> RunFacts:
    if saved["state"] not in STATES:
        raise ValueError(f"state is {saved['state']!r:.100}")
    if not saved["sessions"]:
        raise ValueError("it names no session")
    return _read(RunFacts, saved)


def _read(kind: type[Any], saved: Mapping[str, Any]) -> Any:
    """The dataclass whose fields have these values of JSON, each of the type that is written beside the field."""
    known = [each for each in fields(kind) if each.name != "ranks" or "ranks" in saved]  # earlier files have none
    return kind(**{each.name: READERS[str(each.type)](saved[each.name]) for each in known})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r:.100}")
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"expected a list of texts, got {values!r:.100}")
    return tuple(map(_text, values))


def _count(value: Any) -> int:
    if not strict_json.is_count(value):
        raise TypeError(f"expected a whole number of at least 0, got {value!r:.100}")
    return int(value)


READERS: dict[str, Callable[[Any], Any]] = {
    "str": _text,
    "int": _count,
    "float": float,
    "float | None": lambda value: None if value is None else float(value),
    "tuple[str, ...]": _texts,
    "tuple[Session, ...]": lambda values: tuple(_read(Session, each) for each in values),
}
