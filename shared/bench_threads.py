"""One thread or all of them: a number that must be settled before NumPy is imported.

OpenBLAS, OpenMP (PyTorch) and stage 3's pool read how many threads to start from environment variables when they are
loaded, and by then it is too late to change one's mind. `groundup` has loaded NumPy before it knows what was asked of
it, so it starts itself again with the variables set. All libraries are told the same number: left alone, some take the
cores, some the hyper-threads, and the comparison is off before it starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from shared.environment import THREAD_VARIABLES, usable_cores


def thread_count(choice: str) -> int:
    """'all' is every core that this process may use; else a number of at least 1. ValueError for anything else."""
    if choice == "all":
        return usable_cores()
    if not choice.isdecimal() or int(choice) < 1:
        raise ValueError(f"threads: expected a number of at least 1, or all; got {choice!r}")
    return int(choice)


def are_set(threads: int) -> bool:
    """Whether this process was started with every variable at this number."""
    return all(os.environ.get(name) == str(threads) for name in THREAD_VARIABLES)


def run_again(arguments: Sequence[str], threads: int) -> int:
    """Run `groundup ARGUMENTS` with the variables set, in a process of its own; returns its exit code.

    It shares this process's terminal, input and output. Ctrl-C and SIGTERM are passed on, and it is waited for.
    Raises ChildProcessError (an OSError) where a signal that did not come through here killed it.
    """
    environment = dict(os.environ) | {name: str(threads) for name in THREAD_VARIABLES}
    # The package that runs now must be the one that runs then, wherever either was started from.
    folders = [str(Path(__file__).resolve().parents[1]), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    command = [sys.executable, "-P", "-c", "from shared.cli import main; main()", *arguments]
    children: list[subprocess.Popen[bytes]] = []
    with _passing_on(children) as received:
        child = subprocess.Popen(command, env=environment)
        children.append(child)
        if received:  # in the moment before there was anyone to pass it on to
            child.send_signal(received[0])
        code = child.wait()
    if code < 0 and not received:
        raise ChildProcessError(f"the measuring process was killed by signal {-code}; nothing more was measured")
    return code if code >= 0 else 2


@contextlib.contextmanager
def _passing_on(children: Sequence[subprocess.Popen[bytes]]) -> Iterator[list[int]]:
    """Within this block SIGINT and SIGTERM go to the children instead of ending this process; yields those that came.

    From a terminal the child gets SIGINT twice, which `one_interrupt` is made for. On Windows the console itself tells
    every process, and there is nothing to pass on.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def pass_on(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for child in children:
            if os.name == "posix" and child.poll() is None:
                child.send_signal(number)

    previous = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def one_interrupt() -> Iterator[None]:
    """Within this block the first SIGINT raises KeyboardInterrupt as usual and any further one is ignored.

    What is done about the first, writing down what there is until then, must not be cut short by a second.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
