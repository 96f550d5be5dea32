r"""Every kernel through the compiler that devices use, for every architecture, on a machine that needs no GPU.

    measurements = compile_all(jobs(CATALOGUE, CAPABILITIES))
    print("\n".join(all_faults(measurements)))

It shows what no emulator can: how many registers a thread takes and so how many threads fit, whether any are spilled
to memory, whether a float64 slipped into a kernel of float32, and how dense a product's inner loop is. Compiling is
spread over processes of its own (worker.py), as many as there are cores.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from cuda_emulator.occupancy import LIMITS, Occupancy, occupancy
from groundup.compiling.log import Usage
from groundup.compiling.sass import HotLoop
from groundup.kernels.entries import DTYPES, NO_DTYPE, Capability, Entry
from shared.machine import processes
from shared.machine.hardware import usable_cores
from shared.machine.software import extra

CAPABILITIES: tuple[Capability, ...] = tuple(LIMITS)

LEVELS_AT: tuple[Capability, ...] = ((8, 0), (9, 0))
"""Where the inner loops of the products are looked at: reading machine code takes longer than making it."""

WORKER = "groundup.compiling.worker"
FIX = extra("cu13")


class CompilerMissing(ValueError):
    """numba-cuda or its compile libraries are not here; the message says what to install."""


@dataclass(frozen=True)
class Measurement:
    """The compiler's result for one kernel, dtype and architecture.

    usage: None where it does not compile; shared memory that the launch gives is in it
    hot_loop: where it was looked at and nvdisasm is here
    faults: what is wrong with it
    """

    kernel: str
    dtype: str
    capability: Capability
    usage: Usage | None
    occupancy: Occupancy | None
    hot_loop: HotLoop | None
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One kernel to compile, for one dtype and architecture."""

    entry: Entry
    dtype: str
    capability: Capability

    @property
    def title(self) -> str:
        """'matmul_1_basic.naive, float32, sm_90'."""
        return f"{_title(self.entry.kernel, self.dtype)}, {architecture(self.capability)}"

    def question(self, ptx: bool) -> dict[str, Any]:
        """What the worker is asked. ptx: whether to look for float64 in it."""
        looked_at = self.entry.share is not None and self.dtype != "float64" and self.capability in LEVELS_AT
        return {
            "package": self.entry.package,
            "kernel": self.entry.kernel,
            "arguments": self.entry.arguments,
            "dtype": self.dtype,
            "capability": self.capability,
            "ptx": ptx,
            "hot_loop": looked_at,
        }


def jobs(entries: Iterable[Entry], capabilities: Iterable[Capability], dtypes: Sequence[str] = DTYPES) -> list[Job]:
    """Everything to compile. A kernel that needs a newer architecture is left out on the older ones."""
    return [
        Job(entry, dtype, capability)
        for entry in entries
        for dtype in entry.dtypes
        if dtype in dtypes or dtype == NO_DTYPE
        for capability in capabilities
        if capability >= entry.needs
    ]


def compile_all(
    work: Sequence[Job], on_done: Callable[[Job, int], None] | None = None, workers: int | None = None
) -> list[Measurement]:
    """Compile the jobs, several at a time. Returns their measurements in the order of the jobs.

    on_done: called after each with the job and how many are done
    Raises CompilerMissing where there is nothing to compile with.
    """
    if importlib.util.find_spec("numba_cuda") is None:
        raise CompilerMissing(_missing("numba-cuda is not installed"))
    # One process compiles a kernel for all architectures: the functions that it calls are then ready from the first.
    waiting: queue.SimpleQueue[list[tuple[int, Job]]] = queue.SimpleQueue()
    for _, group in groupby(enumerate(work), key=lambda pair: (pair[1].entry, pair[1].dtype)):
        waiting.put(list(group))
    results: dict[int, Measurement] = {}
    failures: list[Exception] = []
    over = threading.Event()  # for the others, when one has failed, and for all at an interruption
    lock = threading.Lock()
    crew = [Worker() for _ in range(min(workers or usable_cores(), len(work)))]

    def run(worker: Worker) -> None:
        try:
            worker.wait_until_ready()
            while not over.is_set():
                try:
                    group = waiting.get_nowait()
                except queue.Empty:
                    return
                for number, job in group:
                    if over.is_set():
                        return
                    # A float64 comes from the source: what one architecture's PTX lacks, the others' lack, too.
                    question = job.question(ptx=number == group[0][0])
                    measurement = judge(job, worker.ask(question))
                    with lock:
                        results[number] = measurement
                        if on_done is not None:
                            on_done(job, len(results))
        except Exception as error:  # told by the thread that waits for all of them
            failures.append(error)
            over.set()

    threads = [threading.Thread(target=run, args=(worker,), daemon=True) for worker in crew]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        over.set()
        for worker in crew:
            worker.close()
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(work))]


class Worker:
    """A compiler in a process of its own. One that dies over a kernel is replaced for the next.

    module: what the process runs; None for WORKER
    backend: what stage 4 runs its kernels on in that process, as GROUNDUP_CUDA names it
    """

    module: str | None = None
    backend = "compiler"

    def __init__(self) -> None:
        self._start()

    def wait_until_ready(self) -> None:
        """Wait for the worker's start. Raises CompilerMissing if it has nothing to compile with."""
        first = self._read()
        missing = first.get("missing", first.get("error"))
        if missing is not None:
            raise CompilerMissing(_missing(missing))

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer of the process; {"error": ...} where it did not survive the question."""
        if self._process.poll() is not None:
            self.close()
            self._start()
            self.wait_until_ready()
        self._questions.write(json.dumps(question) + "\n")
        self._questions.flush()
        return self._read()

    def kill(self) -> None:
        """End the process at once, from another thread: what it was asked is then answered with an error."""
        processes.end(self._process)

    def close(self) -> None:
        """End the process."""
        processes.end(self._process)
        self._process.communicate()
        self._complaints.close()

    def _start(self) -> None:
        environment = processes.finding_our_packages(os.environ) | {"GROUNDUP_CUDA": self.backend}
        environment.pop("NUMBA_ENABLE_CUDASIM", None)
        self._complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - close() does
        self._process = processes.start(
            processes.python("-m", self.module or WORKER),
            variables=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            encoding="utf-8",
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout

    def _read(self) -> dict[str, Any]:
        line = self._answers.readline()
        if line:
            return json.loads(line)
        code = self._process.wait()
        self._complaints.seek(0)
        said = self._complaints.read().strip().splitlines()[-1:]
        return {"error": "; ".join([f"the compiler's process ended with exit code {code}", *said])}


def _missing(what: str) -> str:
    return f"{what}; compiling the kernels needs it, though no GPU: {FIX}"


def judge(job: Job, answer: dict[str, Any]) -> Measurement:
    """The worker's answer with the job's budget laid against it."""
    entry, named = job.entry, (job.entry.kernel, job.dtype, job.capability)
    if "error" in answer:
        return Measurement(*named, None, None, None, (f"does not compile: {answer['error']}",))
    usage = Usage(answer["registers"], answer["stack"], answer["spills"], answer["shared"] + entry.launch_shared)
    loop = HotLoop(**answer["hot_loop"]) if answer["hot_loop"] else None
    fits = occupancy(job.capability, entry.threads, usage.registers, usage.shared)
    budget = entry.budget(job.dtype)
    faults = []
    if usage.spills:
        faults.append(f"{usage.spills} bytes of registers are spilled to memory")
    if usage.stack:
        faults.append(f"{usage.stack} bytes of stack frame, expected none")
    if usage.registers > budget:
        faults.append(f"{usage.registers} registers, its budget is {budget}")
    if not fits.blocks:
        faults.append(f"no block of {entry.threads} threads fits on a multiprocessor: out of {fits.limit}")
    if answer["float64"] and job.dtype != "float64" and not entry.float64:
        faults.append(f"computes with float64: {answer['float64'][0]}")
    if loop is not None and entry.share is not None and loop.share < entry.share:
        faults.append(f"{loop.share:.1%} of its inner loop multiply and add, expected {entry.share:.0%}")
    if loop is not None and loop.wide_loads < entry.wide_loads:
        faults.append(f"{loop.wide_loads} loads of 128 bits in its inner loop, expected {entry.wide_loads}")
    return Measurement(*named, usage, fits, loop, tuple(faults))


def all_faults(measurements: Iterable[Measurement]) -> list[str]:
    """Every fault as a sentence that names kernel, dtype and the architectures that have it."""
    where: dict[tuple[str, str], list[str]] = {}
    for measurement in measurements:
        for fault in measurement.faults:
            title = _title(measurement.kernel, measurement.dtype)
            where.setdefault((title, fault), []).append(architecture(measurement.capability))
    return [f"{title}, {' '.join(found)}: {fault}" for (title, fault), found in where.items()]


def architecture(capability: Capability) -> str:
    """The name of a compute capability for a compiler: sm_90."""
    return f"sm_{capability[0]}{capability[1]}"


def _title(kernel: str, dtype: str) -> str:
    return kernel if dtype == NO_DTYPE else f"{kernel}, {dtype}"
