"""`groundup train` on several ranks: how they are started, how they find each other, and how they end together.

    launch       starts mpiexec with this command once more, and says in a sentence if a rank was killed
    connected    in a rank: the communicator of all ranks
    prepare      in a rank, before anything is loaded: its share of the machine's cores
    end_all      in a rank that ends with an error: the others end, too

`groundup train 3 --ranks 4` and `mpiexec -n 4 groundup train 3` come to the same. mpiexec tells each process by its
environment how many there are. Where a rank is killed, mpiexec kills the others. This file is imported before NumPy.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from shared.communicator import Communicator

RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
SIZE = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
HERE = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")
"""What mpiexec calls a process's number, how many there are, and how many of them on this machine: MPICH and Intel MPI,
then Open MPI."""

THREADS = ("GROUNDUP_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
TERMINAL, LAUNCHED = "GROUNDUP_TERMINAL", "GROUNDUP_LAUNCHED"

FIRST_SPEAKS = 1.0
"""Seconds that an error of another rank waits: where all have the same one, rank 0 tells it, and ends them all."""

FORWARDS = 0.2
"""Seconds for mpiexec to pass on what was written before: an abort may end it in the middle of a sentence."""

LOOK = 0.5
"""Seconds between two looks of a rank whether the process that has started it is still there."""

OF_MPIEXEC_ITSELF = 255
"""The exit code of an mpiexec that has failed."""

OF_MPIEXEC = re.compile(
    r"=+$|=   |\[mpiexec@|YOUR APPLICATION TERMINATED|This typically refers to|Please see the FAQ|Abort\(\d+\) on node"
)
"""Lines that mpiexec writes where a rank ends with an error, or at Ctrl-C."""


def number(names: Sequence[str], otherwise: int, variables: Mapping[str, str] = os.environ) -> int:
    """The whole number in the first of these environment variables that has one."""
    texts = [variables.get(name, "") for name in names]
    return int(next((text for text in texts if text.isdecimal()), otherwise))


def started() -> int:
    """How many ranks mpiexec has started this process among; 0 if it did not start it."""
    return number(SIZE, 0)


def mpiexec() -> str | None:
    """mpiexec of the wheel that pip has installed beside this Python, else that of the PATH."""
    folders = [sysconfig.get_path("scripts"), os.path.join(sys.prefix, "Library", "bin")]
    return shutil.which("mpiexec", path=os.pathsep.join(folders)) or shutil.which("mpiexec")


def prepare() -> None:
    """In a rank: give each one as many threads as there are cores for it, unless the user has chosen; let rank 0 write
    to the terminal of the command that has started it; end where that command, or mpiexec, was killed."""
    from shared.machine.hardware import usable_cores

    for name in THREADS:
        os.environ.setdefault(name, str(max(1, usable_cores() // max(1, number(HERE, started())))))
    os.environ.setdefault("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1")  # MPICH's own lines about `end_all`
    is_launched = number(RANK, 0) == 0 and LAUNCHED in os.environ
    for place in filter(None, os.environ.get(TERMINAL, "").split(":") if is_launched else ()):
        stream, _, path = place.partition("=")
        with contextlib.suppress(OSError), open(path, "wb", buffering=0) as terminal:
            os.dup2(terminal.fileno(), int(stream))
    parent = os.getppid()  # a part of mpiexec, without which nobody would end this rank

    def wait_for_end() -> None:
        while os.read(0, 1 << 12) if is_launched else os.getppid() == parent:
            if not is_launched:
                time.sleep(LOOK)
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    threading.Thread(target=wait_for_end, daemon=True).start()


def connected(asked: int | None) -> Communicator:
    """The communicator of all ranks; of this process alone, if mpiexec did not start it.

    asked: the ranks that the command names, or None. Raises ValueError where mpiexec started another number of them,
    mpi4py is not installed, or it is made for another MPI than mpiexec is of.
    """
    from shared.communicator import ALONE, MpiRanks
    from shared.machine.hardware import usable_cores

    size = started()
    if size and asked not in (None, size):
        refuse(f"--ranks {asked}: mpiexec has started {size}; leave out --ranks, or give mpiexec -n {asked}")
    if size <= 1:
        return ALONE
    mpi = _mpi()
    world = mpi.COMM_WORLD
    if world.Get_size() != size:
        refuse(
            f"mpiexec has started {size} ranks, but mpi4py sees {world.Get_size()}: it uses {library()}, and this "
            f"mpiexec is of another MPI. Start it with groundup train --ranks {size}"
        )
    world.Barrier()
    with contextlib.suppress(OSError):  # Linux's: only MPICH's own end would remove its file, 3 MB of main memory
        for path in set(re.findall(r"/dev/shm/mpich_shm_\w+$", Path("/proc/self/maps").read_text(), re.MULTILINE)):
            Path(path).unlink(missing_ok=True)
    return MpiRanks(world, shares_core=number(HERE, size) > usable_cores())


def _mpi() -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):  # about a wrong mpiexec, of which `connected` tells
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI library
        from shared.machine.software import extra

        why = "is not installed" if isinstance(error, ImportError) else f"finds no MPI ({error})"
        refuse(f"several ranks need mpi4py, which {why}; install the extra mpi: {extra('mpi')}")
    return MPI


def refuse(sentence: str) -> NoReturn:
    """Raise ValueError for what is wrong on all ranks, before they know each other: rank 0 says it, the others end."""
    if number(RANK, 0) > 0:
        raise SystemExit(2)
    raise ValueError(sentence) from None


def library() -> str:
    """The MPI that mpi4py uses, such as "MPICH 5.0.2"."""
    name, version = _mpi().get_vendor()
    return f"{name} {'.'.join(map(str, version))}"


@contextlib.contextmanager
def quiet_but_first(ranks: Communicator) -> Iterator[None]:
    """Within this block all ranks but the first print nothing on stdout, and no warnings. Their errors come later."""
    if ranks.rank == 0:
        yield
        return
    nowhere = open(os.devnull, "w", errors="replace")  # noqa: SIM115  (closed by the next line, as Python 3.8 reads it)
    with nowhere, contextlib.redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except BaseException:
            time.sleep(FIRST_SPEAKS)
            raise


def end_all(code: object) -> None:
    """In a rank whose command ends with this exit code: where that is an error, end all other ranks, too."""
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if code in (0, None) or mpi is None or mpi.COMM_WORLD.Get_size() == 1:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    time.sleep(FORWARDS)
    mpi.COMM_WORLD.Abort(code if isinstance(code, int) else 1)


def launch(count: int, arguments: Sequence[str], folder: Path, resume: str) -> int:
    """Run `groundup` with these arguments as so many ranks of this machine. Returns its exit code.

    folder: of the run; resume: the command that goes on with it
    Raises ValueError where there is no mpiexec or no mpi4py.
    """
    from shared.machine import processes
    from shared.machine.hardware import usable_cores
    from shared.training.runs import LAST

    program = check_installed()
    if count > usable_cores():
        print(
            f"note: {count} ranks share {usable_cores()} cores: they wait for each other, and a step takes longer than "
            "that of fewer ranks",
            file=sys.stderr,
        )
    command = [program, "-n", str(count), *processes.python("-m", "groundup", *arguments)]
    streams = {1: sys.stdout, 2: sys.stderr}
    variables = processes.finding_our_packages(os.environ) | {LAUNCHED: "1", TERMINAL: _terminals()}
    child = processes.start(
        command, variables=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    seen: list[str] = []
    failed: list[OSError] = []

    def copy(pipe: IO[bytes], stream: IO[str] | None) -> None:
        try:
            _copy(pipe, stream, seen)
        except OSError as error:  # nobody reads our output any more, or its disk is full
            failed.append(error)
            child.kill()

    readers = [
        threading.Thread(target=copy, args=(pipe, streams[i]), daemon=True)
        for i, pipe in ((1, child.stdout), (2, child.stderr))
    ]
    try:
        with _forwarded(child) as asked:
            for reader in readers:
                reader.start()
            code = child.wait()
            for reader in readers:
                reader.join(processes.DRAIN)
    finally:
        processes.end(child)
    if failed:
        raise failed[0]
    killed = re.search(r"PID (\d+) RUNNING AT (\S+)\s+=   EXIT CODE: (\d+)", "\n".join(seen))
    if code == 0 or not (killed or code < 0 or code == OF_MPIEXEC_ITSELF):
        return code  # a rank has said why
    if len(asked) > 1:
        what = "interrupted: all ranks were killed"
    elif killed:
        pid, host, signal_number = killed.groups()
        what = f"a rank, process {pid} on {host}, was ended by signal {signal_number}, and the other ranks with it"
    else:
        how = f"was ended by signal {-code}" if code < 0 else f"failed ({seen[0] if seen else f'exit code {code}'})"
        what = f"mpiexec {how}, and all ranks with it"
    further = f"go on with: {resume}" if (folder / LAST).exists() else "nothing was saved yet"
    print(f"error: {what}; {further}", file=sys.stderr)
    return 2


def check_installed() -> str:
    """The path of mpiexec. Raises ValueError unless it is there, and mpi4py, too, whose import would start MPI here."""
    from importlib.util import find_spec

    from shared.machine.software import extra

    program, has_mpi4py = mpiexec(), find_spec("mpi4py") is not None
    if program is None or not has_mpi4py:
        what = "mpiexec" if has_mpi4py else "mpi4py"
        raise ValueError(f"several ranks need {what}, which is not installed; install the extra mpi: {extra('mpi')}")
    return program


def _terminals() -> str:
    """Which of stdout and stderr are terminals, and which: rank 0 opens them, for mpiexec gives it only pipes."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        places = {i: os.ttyname(i) for i in (1, 2) if os.isatty(i)}
        return ":".join(f"{i}={path}" for i, path in places.items())
    return ""


def _copy(pipe: IO[bytes], stream: IO[str] | None, seen: list[str]) -> None:
    """Copy what the ranks write to this stream, but for the lines of mpiexec itself, which go to `seen`."""
    empty = ""  # lines, of which mpiexec writes one before its own
    for line in iter(pipe.readline, b""):
        text = line.decode(getattr(stream, "encoding", None) or "utf-8", errors="replace")
        if OF_MPIEXEC.match(text):
            seen.append(text.rstrip())
            empty = ""
        elif not text.strip():
            empty += text
        elif stream is not None:
            stream.write(empty + text)
            stream.flush()
            empty = ""


@contextlib.contextmanager
def _forwarded(child: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Within this block Ctrl-C and SIGTERM reach all ranks, which save the run and stop; a second one kills them.

    Yields the signals that came.
    """
    asked: list[int] = []

    def forward(number: int, frame: object) -> None:
        asked.append(number)
        child.send_signal(signal.SIGINT if len(asked) == 1 else getattr(signal, "SIGKILL", signal.SIGTERM))

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before: Mapping[Any, Any] = {each: signal.signal(each, forward) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
