"""One file after another, read by the program's own commands:

python -m tests.strangers.fuzz KINDS COUNT SEED FOLDER [FIRST]

KINDS has commas between; FIRST is the number of the first file, 0 if it is left out. Prints a JSON document for each
kind: how many commands ended in which way, the faults, the slowest call and the peak of the memory. A fault is an end
that is neither success nor one sentence with the file's name, a file that was changed by a command that failed, and a
call that hangs.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from groundup.cli import main
from tests.strangers.kinds import KINDS, Case

LONGEST, HANGING = 10.0, 60.0
"""Seconds of computing of a call; seconds on the clock after which it is ended. A disk can be slow."""

MOST_ADDRESSES = 8 * 2**30
"""Bytes that the process may map: a fault is then an error of its own, and not the end of the machine."""

ENDS = {0: "carried out", 1: "told that something is not right", 2: "refused"}


class TooLong(BaseException):
    """A call took more than HANGING seconds."""


def fuzz(kind: str, count: int, seed: int, folder: Path, first: int = 0) -> dict[str, Any]:
    """The report on `count` files of a kind. first: the number of the first"""
    made = KINDS[kind](folder)
    ends: Counter[str] = Counter()
    faults: list[str] = []
    slowest, grown = (0.0, ""), (0, "")
    signal.signal(signal.SIGALRM, _too_long)
    for number in range(first, first + count):
        case = made.case(random.Random(f"{kind} {seed} {number}"), number)
        for argv in case.commands:
            began, before = time.process_time(), _peak()
            end, told = called(argv, case)
            slowest = max(slowest, (time.process_time() - began, f"{number}: {argv[:2]}"))
            grown = max(grown, (_peak() - before, f"{number}: {argv[:2]}"))
            ends[f"{argv[0]} {end}"] += 1
            if end not in ENDS.values():
                faults.append(f"{number} {case.what}: {' '.join(argv[:3])}: {end}: {told[-1500:]}")
            case.restore()
    return {"files": count, "ends": ends, "faults": faults, "slowest": slowest, "grown": grown, "peak": _peak()}


def _peak() -> int:
    """The most bytes of main memory that this process has held."""
    status = Path("/proc/self/status")
    if status.is_file():  # Linux's ru_maxrss begins with what the process held that started this one
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def called(argv: Sequence[str], case: Case) -> tuple[str, str]:
    """(how the command ended, what it said) with the file as it lies there."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    signal.setitimer(signal.ITIMER_REAL, HANGING)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch("groundup.cli.crashed", _raised),
        ):
            main(list(argv))
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        return "broken", traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    told = err.getvalue()
    if code and (changed := case.changed()):
        return "overwritten", changed
    if code == 2:
        first, *notes = told.splitlines() or [""]
        if not first.startswith("error: ") or "Traceback" in told or len(notes) > 6:
            return "without a sentence", told
        if not any(name in told for name in case.names):
            return "without a name", told
    return ENDS.get(code, f"exit code {code}"), told


def _raised(error: BaseException) -> None:
    raise error


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    kinds, count, seed, folder, *first = sys.argv[1:]
    for kind in kinds.split(","):
        (Path(folder) / kind).mkdir()
        print(json.dumps(fuzz(kind, int(count), int(seed), Path(folder) / kind, *map(int, first))))
