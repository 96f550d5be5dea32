"""Child processes with limits: the one way in which this project starts another program.

    run          starts a program, waits for its end and returns what it printed
    output_of    the same for a quick question to the system: its answer, or None
    start        starts a program and returns at once, for a caller that talks with it; `end` ends it
    end_with_input, end_own_group    for such a program: how it ends with the process that started it
    python, finding_our_packages    the command and the variables of a Python that imports our packages, and no file of
                    the folder that one stands in
    kill_started    for a signal handler: kills whatever was started and still runs
    ending_with_us  a block in which SIGTERM and SIGHUP end that, too

A child leads a process group of its own. So a Ctrl-C in the terminal reaches this process alone, and this process can
kill the child together with everything that the child started, even where the child itself has already ended. (Windows
knows the processes that a child started only as long as the child runs.)

Only the standard library is imported: `python -m groundup.doctor` runs where nothing else is installed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds our packages: a checkout, or an environment's site-packages."""

MOST_OUTPUT = 1 << 24
"""Bytes of output that `run` keeps unless it is told otherwise: the last ones."""

SLICE = 0.5
"""Seconds of one wait. On Windows a wait cannot be interrupted, so a Ctrl-C is noticed after at most this long."""

QUICK = 10.0
"""Seconds that a program has to answer a quick question."""

DRAIN = 2.0
"""Seconds for which `run` waits for the end of the output after the child has ended. A pipe stays open longer only
where a process that left the child's group holds it."""

UNTIL_KILLED = 10.0
"""Seconds for which `end` waits for a killed process, which stays alive only while a driver's call does not return."""

NEW_PROCESS_GROUP = 0x200
"""subprocess.CREATE_NEW_PROCESS_GROUP, which exists in Python on Windows only."""

_started: weakref.WeakSet[subprocess.Popen[Any]] = weakref.WeakSet()


@dataclass(frozen=True)
class Finished:
    """The end of a child process, as `run` saw it.

    code: its exit code, negative for a signal; None where it was killed at its time limit or could not be started
    output, errors: the text of its standard output and standard error
    failure: for code None, a sentence that says why; otherwise ""
    """

    code: int | None
    output: str = ""
    errors: str = ""
    failure: str = ""

    @property
    def last_error(self) -> str:
        """The last line of the errors, where Python writes what was raised; "" where nothing was written there."""
        return self.errors.strip().rpartition("\n")[2]


def run(
    command: Sequence[str],
    seconds: float | None,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    text: str = "",
    together: bool = False,
    shown: bool = False,
    most: int = MOST_OUTPUT,
    patience: float = 0.0,
    stop: threading.Event | None = None,
) -> Finished:
    """Run a program to its end, at most for so many seconds (None: no limit). A missing program raises nothing.

    folder: where the program runs; None for this process's folder
    variables: all environment variables of the program; None for this process's own
    text: what the program reads from its standard input
    together: put standard error into `output`, in the order of writing
    shown: let the program write to this process's own output and keep nothing
    most: how many bytes of output, and of errors, are kept: the last ones
    patience: at the time limit or an interruption, so many seconds to end by itself, as `end` has it
    stop: set by another thread that no longer wants the answer

    When this function returns or is interrupted, no process of the child's group is left.
    """
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT if together else subprocess.PIPE}
    with _readable(text) as stdin:
        try:
            # Without a buffer, a reader that is left behind holds no lock when Python ends.
            child = start(
                command, folder=folder, variables=variables, stdin=stdin, bufsize=0, **({} if shown else pipes)
            )
        except OSError as error:
            return Finished(None, failure=str(error))
    try:
        readers = [_Reader(pipe, most) for pipe in (child.stdout, child.stderr)]
        code = _wait(child, seconds, stop)
    finally:
        end(child, patience)
    last = time.monotonic() + DRAIN
    output, errors = (reader.text(last) for reader in readers)
    why = "stopped" if seconds is None else f"no answer within {seconds:g} seconds"
    return Finished(code, output, errors, why if code is None else "")


def output_of(command: Sequence[str]) -> str | None:
    """What a program prints on its standard output, without the blanks around it; None where it is missing, fails or
    takes longer than QUICK seconds."""
    done = run(command, QUICK)
    return done.output.strip() if done.code == 0 else None


def start(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    **pipes: Any,
) -> subprocess.Popen[Any]:
    """Start a program as the leader of a process group of its own. The caller ends it with `end`.

    pipes: further arguments of subprocess.Popen: stdin, stdout, stderr, encoding
    Raises OSError where the program cannot be started.
    """
    child = subprocess.Popen(list(command), cwd=folder, env=variables, **own_group(sys.platform), **pipes)
    _started.add(child)
    return child


def end(child: subprocess.Popen[Any], patience: float = 0.0) -> None:
    """End a process that `start` started, and every process of its group. It may have ended already.

    patience: so many seconds the child may take to end by itself, after it was asked to (SIGTERM)
    """
    if patience and child.poll() is None:
        _signal(child, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)
    # The group outlives its leader for as long as one of its processes runs.
    _signal(child, getattr(signal, "SIGKILL", signal.SIGTERM))
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(UNTIL_KILLED)


def kill_started() -> None:
    """Kill every process that this one has started and that still runs, with its group; wait for none of them.

    For a handler of a signal that is to end this process: threads that wait for such a program then go on.
    """
    for child in list(_started):
        if child.poll() is None:
            _signal(child, getattr(signal, "SIGKILL", signal.SIGTERM))


@contextlib.contextmanager
def ending_with_us() -> Iterator[None]:
    """Within this block SIGTERM and SIGHUP, whose default ends this process at once, first kill what it has started.

    Where the program has a handler of its own, or is to ignore the signal, nothing changes; nor in another thread than
    the first, because Python allows handlers only there.
    """
    ours = []
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
        ours = [number for number in numbers if number and signal.getsignal(number) is signal.SIG_DFL]
        for number in ours:
            signal.signal(number, _kill_started_and_end)
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) is _kill_started_and_end:
                signal.signal(number, signal.SIG_DFL)


def _kill_started_and_end(number: int, frame: object) -> None:
    kill_started()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def end_with_input() -> None:
    """In a child that `start` started with a pipe as its input: end with its group when the input ends, because the
    process that holds the other end of the pipe has ended, even where it was killed. Returns at once."""

    def wait() -> None:
        while os.read(0, 1 << 12):  # without sys.stdin, whose lock Python wants when it ends
            pass
        end_own_group()

    threading.Thread(target=wait, daemon=True).start()


def end_own_group() -> None:
    """In a child that `start` started: end this process at once, with every process of its group."""
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def own_group(platform: str) -> dict[str, Any]:
    """The arguments of subprocess.Popen that give a process a group of its own. platform: as sys.platform"""
    return {"creationflags": NEW_PROCESS_GROUP} if platform == "win32" else {"start_new_session": True}


def python(*words: str) -> list[str]:
    """The command that runs this Python again. -P: nothing is imported from the folder that one stands in, which
    may be a stranger's."""
    return [sys.executable, "-P", *words]


def finding_our_packages(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment variables with our packages first on PYTHONPATH: a child imports those that run now, wherever it
    is started."""
    folders = [str(ROOT), variables.get("PYTHONPATH", "")]
    return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def _readable(text: str) -> IO[bytes]:
    """A file to read the text from. Without text it is no file on a disk: the doctor runs where the disk is full."""
    if not text:
        return open(os.devnull, "rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
    file.write(text.encode())
    file.seek(0)
    return file


def _wait(child: subprocess.Popen[Any], seconds: float | None, stop: threading.Event | None) -> int | None:
    """The child's exit code; None where it still runs after so many seconds, or when `stop` is set."""
    last = None if seconds is None else time.monotonic() + seconds
    while True:
        left = SLICE if last is None else min(SLICE, last - time.monotonic())
        try:
            return child.wait(max(left, 0.0))
        except subprocess.TimeoutExpired:
            if (last is not None and time.monotonic() >= last) or (stop is not None and stop.is_set()):
                return None


def _signal(child: subprocess.Popen[Any], number: int) -> None:
    """Send a signal to the child's group. On Windows the child and the processes that it started are killed instead."""
    if sys.platform == "win32":
        if child.poll() is None:
            with contextlib.suppress(OSError):
                subprocess.run(["taskkill", "/F", "/T", "/PID", str(child.pid)], capture_output=True, check=False)
        child.kill()  # does nothing where it has ended
        return
    # Where the whole group has ended, Linux says that there is no such process, and macOS that it may not be signalled.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


class _Reader:
    """Reads a pipe to its end in a thread, so that the child never waits for a full pipe, and keeps the last bytes."""

    def __init__(self, pipe: IO[bytes] | None, most: int) -> None:
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, args=(pipe, most), daemon=True)
        self._thread.start()

    def _read(self, pipe: IO[bytes] | None, most: int) -> None:
        if pipe is None:
            return
        with pipe:
            while chunk := pipe.read(1 << 16):
                self._kept.extend(chunk)
                del self._kept[:-most]

    def text(self, last: float) -> str:
        """What was read, as text; time.monotonic() after `last` no longer waits for the pipe's end."""
        self._thread.join(max(last - time.monotonic(), 0.0))
        return bytes(self._kept).decode(errors="replace").replace("\r\n", "\n")
