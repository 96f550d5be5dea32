"""Starts the process that runs a learner's code, and ends every process that comes of it: a program for Linux alone.

A process that calls setsid leaves its group, so killing the group does not reach it; and limits of memory count for
each process alone. The warden asks Linux to become the parent of every orphan below it (PR_SET_CHILD_SUBREAPER), so
none can get away while it lives. It looks how many there are and what they hold together: every LOOK_EVERY seconds, and
whenever one of its children ends.

What it cannot stop: code that kills the warden itself, writes files, or uses the network. docs/course.md says so.

Only the standard library is imported: the program starts in some hundredths of a second.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
MEGABYTE = 1 << 20

LOOK_EVERY = 0.05
"""Seconds between two looks while no child ends."""

PROCESSES = 64
"""Most processes at a time. Stage 3's compiler and its parts are some twenty."""

FILE_BYTES = 1 << 30
"""Most bytes of one file."""


def main(argv: list[str]) -> None:
    """argv: seconds, megabytes, the report's path, who starts this program, then the command that is started.

    Who starts it is not asked for here: it may have ended already, and then another process is the parent.
    """
    seconds, megabytes, report, parent = float(argv[0]), int(argv[1]), argv[2], int(argv[3])
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    last = time.monotonic() + seconds
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    _limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    ignored = [signal.SIGPIPE, signal.SIGXFSZ]  # by Python, and then by what it starts
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # so that it ends the wait for it
    child = os.posix_spawn(argv[4], argv[4:], os.environ, setsigdef=ignored, setsigmask=[])
    status, why = None, ""
    while status is None and not why:
        signal.sigtimedwait([signal.SIGCHLD], LOOK_EVERY)
        status = _reaped(child)
        if stopped or os.getppid() != parent:
            why = "stopped"
        elif status is None and time.monotonic() > last:
            why = "time"
        elif status is None:
            why = _too_much(megabytes)
    event = {"event": why, "computed": processor_seconds()} if why == "time" else {"event": why}
    end_all()
    if why in ("processes", "memory together", "time"):
        with open(report, "a", encoding="utf-8") as file:
            # A new line first: the learner's process may have been killed while it wrote one.
            file.write("\n" + json.dumps(event) + "\n")
    if status is not None and os.WIFSIGNALED(status):  # end as the child did
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.WEXITSTATUS(status) if status is not None else 1)


def end_all() -> None:
    """Kill every process below this one, those too that are started or orphaned meanwhile; give up after a second."""
    last = time.monotonic() + 1
    while (below := descendants(os.getpid())) and time.monotonic() < last:
        # Found anew each round: a process may have started another between the look and the signal.
        for each in below:
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:  # it has ended meanwhile
                continue
        # 0 is nobody's number: what has ended is collected, else it would be found below this process for ever.
        _reaped(0)
        time.sleep(0.002)


def descendants(process: int) -> list[int]:
    """Every process that this one started, directly or through others, and the orphans that it adopted."""
    found, ask = [], [process]
    while ask:
        each = ask.pop()
        try:
            texts = [path.read_text() for path in Path(f"/proc/{each}/task").glob("*/children")]
        except OSError:  # it has ended meanwhile
            continue
        children = [int(word) for text in texts for word in text.split()]
        found += children
        ask += children
    return found


def processor_seconds() -> float:
    """The processor time of every process below this one, of those that have ended, too."""
    ticks = 0
    for each in descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile, and counts among the children that have
            continue
        ticks += sum(map(int, fields[11:15]))  # of the process, and of its children that have ended
    ended = os.times()
    return ticks / os.sysconf("SC_CLK_TCK") + ended.children_user + ended.children_system


def _too_much(megabytes: int) -> str:
    """Which limit the processes break together, or ""."""
    below = descendants(os.getpid())
    if len(below) > PROCESSES:
        return "processes"
    if len(below) > 1 and sum(map(_share_of_memory, below)) > megabytes * MEGABYTE:
        return "memory together"  # of one process alone, memory_limit.py says so
    return ""


def _share_of_memory(process: int) -> int:
    """The bytes that a process holds; of those that several share, such as a fork that has written little, its part."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended meanwhile
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _reaped(child: int) -> int | None:
    """Collect every process that has ended; the status of this child, if it is one of them."""
    status = None
    while True:
        try:
            ended, told = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if ended == 0:
            return status
        if ended == child:
            status = told


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(which, (most, hard))


if __name__ == "__main__":
    main(sys.argv[1:])
