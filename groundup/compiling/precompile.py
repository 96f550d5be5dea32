"""The kernels of `groundup bench`, `groundup check` and the GPU report, compiled side by side before any is launched.

    python -m groundup.compiling.precompile           the process that compiles: one JSON object a line, in and out
    python -m groundup.compiling.precompile PART,… SECONDS
                                                      compile what these parts of the GPU report launch; what became of
                                                      it is one JSON object

Compiling one kernel after another, when a measurement first launches it, took the GPU's quick run longer than all it
measured. Compiled kernels are kept on disk (stage4_numba_cuda/kernel_cache.py), where each pass finds them. So this is
an acceleration only: a kernel that is missing in the list, or that fails to compile here, is compiled when it is
launched, as it always was.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from groundup.compiling.check import CompilerMissing, Worker
from groundup.kernels.entries import DTYPES, PACKAGE, Capability, argument_types
from groundup.kernels.launched import CHECK, KNOWN, QUICK, REPORT
from shared.bench.running.plan import Plan, jobs
from shared.contract import STAGES, stage_facts
from shared.machine import gpu
from shared.machine.hardware import usable_cores
from shared.numbers import duration, plural

STAGE = STAGES[3]
BACKEND = "gpu"

OF_THE_REPORT = {
    **REPORT,
    "sanitizer": REPORT["correctness"],
    "fastest_pytorch": [*REPORT["steps"], *REPORT["networks"]],
}
"""Part of the GPU report -> names of KNOWN: what it launches. The launches' own kernels do nothing, and the suite has
processes of its own that compile."""

OF_A_MODEL = {
    "machine": QUICK["machine"],
    **dict.fromkeys(("convolutions", "steps", "inference"), REPORT["networks"]),
    "training": REPORT["network_training"],
}
"""Part of `groundup bench --model` -> names of KNOWN."""

MOST_PROCESSES, OF_ANY_DEVICE, MIB_OF_ONE = 16, 8, 1024
"""The most, and as many where the free memory of the device is not known. Each of them holds some hundred MB of it."""


@dataclass(frozen=True)
class Kernel:
    """A kernel to compile: a line of the catalogue, and the dtype that T stands for. An older device than `needs` says
    has no use for it."""

    package: str
    kernel: str
    arguments: str
    dtype: str
    needs: Capability = (0, 0)


@dataclass(frozen=True)
class Prepared:
    """What became of it. compiled: kernels; failed: why others were not; seconds: for all of them; left: kernels for
    which there was no time."""

    compiled: int
    failed: tuple[str, ...]
    seconds: float
    left: int = 0

    def line(self) -> str:
        """The sentence for the terminal."""
        said = f"{plural(self.compiled, 'kernel')} compiled or found on disk beforehand, in {duration(self.seconds)}"
        if self.left:
            said += f", all the time there was; {plural(self.left, 'kernel')} will be when first launched"
        if not self.failed:
            return said
        return f"{said}; not {plural(len(self.failed), 'kernel')}, which will be when first launched: {self.failed[0]}"


class DeviceWorker(Worker):
    """A process that compiles for this machine's GPU, and keeps what it has compiled."""

    module = "groundup.compiling.precompile"
    backend = BACKEND


def kernels_of(plan: Plan) -> list[Kernel]:
    """What stage 4 launches in this plan on a GPU; none where it runs on none, and none of a full run of dense
    networks, in which compiling is a small part."""
    wanted = plan.quick or plan.model
    if not wanted or STAGE not in plan.stages or stage_facts(STAGE).get("backend") != BACKEND:
        return []
    parts = {job.part for job in jobs(plan)}
    table = OF_A_MODEL if plan.model else QUICK
    return _kernels(name for part, names in table.items() if part in parts for name in names)


def of_report(parts: Iterable[str]) -> list[Kernel]:
    """What these parts of the GPU report launch; nothing for one that is not in OF_THE_REPORT.

    Part by part, in the order of the report: if the time is short, the kernels of the last ones are left.
    """
    return list(dict.fromkeys(kernel for part in parts for kernel in _kernels(OF_THE_REPORT.get(part, ()))))


def of_check(stages: Iterable[str], dtype: str | None) -> list[Kernel]:
    """What `groundup check` launches of stage 4 in this dtype, None for both; none where it runs on no GPU."""
    if STAGE not in stages or stage_facts(STAGE).get("backend") != BACKEND:
        return []
    return [each for each in _kernels(CHECK) if dtype is None or each.dtype not in DTYPES or each.dtype == dtype]


def _kernels(names: Iterable[str]) -> list[Kernel]:
    """Each of them once, first those that take longest."""
    lines = [KNOWN[name] for name in sorted(dict.fromkeys(names), key=_size, reverse=True)]
    return [Kernel(line.package, line.kernel, line.arguments, dtype, line.needs) for line, dtype in lines]


def _size(name: str) -> tuple[bool, int]:
    """Kernels with many registers are large; a persistent kernel, which is a whole step, takes ten times as long."""
    line, dtype = KNOWN[name]
    return line.kernel.startswith("persistent."), line.budget(dtype) if line.package == PACKAGE else 0


def most_processes() -> int:
    """The number of compiling processes for which this machine's GPUs have free memory."""
    free = gpu.free_memory()
    return OF_ANY_DEVICE if free is None else max(1, min(MOST_PROCESSES, free // MIB_OF_ONE))


def prepare(
    kernels: Sequence[Kernel],
    make: Callable[[], Any] = DeviceWorker,
    processes: int | None = None,
    seconds: float | None = None,
) -> Prepared:
    """Compile kernels in their order, in as many processes as there are cores, at most most_processes().

    make: a process with `wait_until_ready`, `ask`, `kill` and `close`, as groundup.compiling.check.Worker has them
    seconds: how long that may take; None: as long as it does. Kernels that were compiled until then are kept
    """
    begin = time.perf_counter()
    waiting: queue.SimpleQueue[Kernel] = queue.SimpleQueue()
    for kernel in kernels:
        waiting.put(kernel)
    failed: list[str] = []
    done: list[Kernel] = []
    too_new: list[Kernel] = []
    workers: list[Any] = []
    over = threading.Event()

    def run() -> None:
        worker = make()
        workers.append(worker)
        try:
            worker.wait_until_ready()
            while not over.is_set():
                kernel = waiting.get_nowait()
                answer = worker.ask(vars(kernel))
                if answer.get("too new"):
                    too_new.append(kernel)
                elif "error" not in answer:
                    done.append(kernel)
                elif not over.is_set():  # else the process was killed over it
                    failed.append(f"{kernel.kernel}, {answer['error']}")
        except queue.Empty:
            return
        except (CompilerMissing, OSError) as error:  # it ends; its kernels are left to the others, and to their launch
            if not over.is_set():
                failed.append(str(error))
        finally:
            worker.close()

    crew = [
        threading.Thread(target=run, daemon=True)
        for _ in range(min(processes or usable_cores(), most_processes(), len(kernels)))
    ]
    for thread in crew:
        thread.start()
    try:
        for thread in crew:
            thread.join(None if seconds is None else max(begin + seconds - time.perf_counter(), 0.0))
    finally:
        if any(thread.is_alive() for thread in crew):  # there is no more time, or Ctrl-C
            over.set()
            for worker in list(workers):
                worker.kill()
            for thread in crew:
                thread.join()
    left = len(kernels) - len(done) - len(failed) - len(too_new) if over.is_set() else 0
    return Prepared(len(done), tuple(failed), time.perf_counter() - begin, left)


def compiled(question: dict[str, Any]) -> dict[str, Any]:
    """Compile a kernel for the device of this process, or find it on disk; {"error": …} where that fails, {"too new":
    true} for a kernel that an older device than it needs is not asked to run."""
    from groundup.compiling.worker import find

    try:
        device = importlib.import_module(f"{STAGE}.backend").cuda.get_current_device()
        if tuple(device.compute_capability) < tuple(question["needs"]):
            return {"too new": True}
        kernel = find(question["package"], question["kernel"], question["dtype"])
        kernel.compile(argument_types(question["arguments"], question["dtype"]))
    except Exception as error:  # whatever the compiler refuses with; the launch will say it again
        return {"error": f"{type(error).__name__}: {error}".strip().splitlines()[0]}
    return {}


def main() -> None:
    """Compile for parts of the report; without one answer until the questions end."""
    if len(sys.argv) > 1:
        kernels = of_report(sys.argv[1].split(","))
        prepared = prepare(kernels, seconds=float(sys.argv[2]))
        print(json.dumps({"line": prepared.line(), "kernels": len(kernels), **asdict(prepared)}))
        return
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not stand between the answers
    warnings.simplefilter("ignore")

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    try:
        importlib.import_module(f"{STAGE}.backend")
    except Exception as error:  # the GPU is gone, or another program keeps it to itself
        say({"missing": f"{type(error).__name__}: {error}".splitlines()[0]})
        return
    say({"missing": None})
    for line in sys.stdin:
        say(compiled(json.loads(line)))


if __name__ == "__main__":
    main()
