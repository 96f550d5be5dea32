"""This process as the operating system sees it: its memory, its processor time, and a mark by which it is known later.

    memory        bytes of main memory that this process holds
    cpu_seconds   processor time that it has used, of all its threads
    mark_of       a text that belongs to one process alone, for as long as the machine runs
    is_running    whether the process with this number and this mark still runs

The number of a process is given to another one after its end. So a file that says "process 4711 is at work" needs the
time at which that process began as well: the mark holds it.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

from shared.machine.hardware import ROOT, content
from shared.machine.processes import output_of

UNKNOWN = ""
"""The mark where the system does not tell enough for one."""

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def memory(root: Path = ROOT) -> int | None:
    """Bytes of main memory that this process holds now; None where the system has no file that says so."""
    try:
        with open(root / "proc/self/statm", "rb") as file:  # "size resident shared …", in pages
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


def cpu_seconds() -> float:
    """Seconds of processor time that this process has used, on all cores together."""
    return time.process_time()


def mark_of(pid: int, root: Path = ROOT) -> str:
    """The mark of a process of this machine; UNKNOWN if there is no such process, or the system tells too little.

    It begins with `machine_mark` and ends with the time at which the process began.
    """
    told = content(root / f"proc/{pid}/stat")
    if told:
        fields = told.rpartition(")")[2].split()  # the name, in parentheses, may hold spaces and parentheses itself
        ended = fields[0] in "ZX"  # a process that has ended stays in the list until its parent has asked how
        return UNKNOWN if ended else f"{machine_mark(root)} {fields[19]}"
    if sys.platform == "darwin":
        start = output_of(["ps", "-o", "lstart=", "-p", str(pid)])
        return f"{machine_mark(root)} {' '.join(start.split())}" if start else UNKNOWN
    return UNKNOWN


def machine_mark(root: Path = ROOT) -> str:
    """The part of a mark that all processes share whose numbers come from one list.

    On Linux: this boot of the machine, and the list of process numbers, of which every container has its own. On other
    systems the name of the machine.
    """
    boot = content(root / "proc/sys/kernel/random/boot_id").strip()
    if not boot:
        return platform.node() or "machine"
    try:
        return f"{boot} {os.readlink(root / 'proc/self/ns/pid')}"
    except OSError:
        return boot


def is_running(pid: int, mark: str, root: Path = ROOT) -> bool | None:
    """Whether the process that had this number and this mark still runs; None if nobody here can know.

    That is the case for a mark of another machine, of another container, or of a system that gives none.
    """
    if not mark.startswith(f"{machine_mark(root)} "):
        return None
    return mark_of(pid, root) == mark
