"""One thread or all of them, and on which cores: settled before NumPy is imported.

OpenBLAS, OpenMP (PyTorch) and stage 3's pool read how many threads to start from environment variables when they are
loaded, and by then it is too late to change one's mind. So whoever measures runs in a process that was started with the
variables set. All libraries are told the same number: left alone, some take the cores, some the hyper-threads, and the
comparison is off before it starts.

The same process is held to as many cores as it may have threads. Otherwise the system moves a thread from core to core
while it is being timed, and each time it leaves its caches behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from shared.machine.hardware import usable_cores
from shared.machine.software import THREAD_VARIABLES

CPUS = Path("/sys/devices/system/cpu")


def thread_count(choice: str) -> int:
    """'all' is every core that this process may use; else a number of at least 1. ValueError for anything else."""
    if choice == "all":
        return usable_cores()
    if not choice.isdecimal() or int(choice) < 1:
        raise ValueError(f"threads: expected a number of at least 1, or all; got {choice!r}")
    return int(choice)


def variables(threads: int) -> dict[str, str]:
    """This process's environment for one that is to use so many threads."""
    return dict(os.environ) | {name: str(threads) for name in THREAD_VARIABLES}


def cores_to_hold(threads: int, folder: Path = CPUS) -> list[int] | None:
    """The cores that a process of so many threads is held to, by number: whole cores first, their second threads last.

    None where there are fewer than that, or where the system does not let a process choose (macOS, Windows).
    folder: where Linux tells which of its processors are two threads of one core.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    usable = sorted(os.sched_getaffinity(0))
    if threads > len(usable):
        return None
    ranks = {core: _rank(core, folder) for core in usable}
    return sorted(sorted(usable, key=lambda core: (ranks[core], core))[:threads])


def _rank(core: int, folder: Path) -> int:
    """0 for the first thread of a physical core, 1 for the second; 0 where the system does not say."""
    try:
        siblings = (folder / f"cpu{core}" / "topology" / "thread_siblings_list").read_text()
    except OSError:
        return 0
    numbers = sorted(int(number) for number in siblings.replace("-", ",").strip().split(",") if number.isdecimal())
    return numbers.index(core) if core in numbers else 0


def holding(cores: Sequence[int] | None) -> str:
    """The line of Python that a process has to begin with, before it imports anything that starts threads."""
    return "" if cores is None else f"import os; os.sched_setaffinity(0, {set(cores)!r})\n"


@contextlib.contextmanager
def one_interrupt() -> Iterator[None]:
    """Within this block the first SIGINT or SIGTERM raises KeyboardInterrupt and any further one is ignored.

    What is done about the first, writing down what there is until then, must not be cut short by a second.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        for signum in previous:
            signal.signal(signum, signal.SIG_IGN)
        raise KeyboardInterrupt

    watched = [signum for signum in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(signum) != signal.SIG_IGN]
    previous = {signum: signal.getsignal(signum) for signum in watched}
    try:
        for signum in watched:
            signal.signal(signum, first)
        yield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
