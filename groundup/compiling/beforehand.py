"""The kernels of `groundup bench` and of the GPU report, compiled before anything is measured, several at a time.

    python -m groundup.compiling.beforehand           the process that compiles: one JSON object a line, in and out
    python -m groundup.compiling.beforehand PART      compile what this part of the GPU report launches (REPORT)

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
from dataclasses import dataclass
from typing import Any

from groundup.compiling.check import CompilerMissing, Worker
from groundup.kernels.entries import PACKAGE, argument_types
from groundup.kernels.images import CONVOLUTION, IMAGES
from groundup.kernels.networks import NETWORKS
from groundup.kernels.quick_bench import KNOWN, QUICK
from shared.bench.running.plan import Plan, jobs
from shared.contract import STAGES, stage_facts
from shared.machine.hardware import usable_cores
from shared.numbers import duration, plural

STAGE = STAGES[3]
BACKEND = "gpu"

REPORT: dict[str, tuple[str, ...]] = {
    **NETWORKS,
    "correctness": tuple(f"{each.kernel} {dtype}" for each in (*CONVOLUTION, *IMAGES) for dtype in each.dtypes),
}
"""Part of the GPU report -> names of KNOWN that are compiled before it begins."""

OF_A_MODEL = {
    "machine": QUICK["machine"],
    **dict.fromkeys(("convolutions", "steps", "inference"), NETWORKS["networks"]),
    "training": NETWORKS["network_training"],
}
"""Part of `groundup bench --model` -> names of KNOWN."""

MOST_PROCESSES = 8
"""Each of them holds some hundred MB of the device's memory."""


@dataclass(frozen=True)
class Kernel:
    """A kernel to compile: a line of the catalogue, and the dtype that T stands for."""

    package: str
    kernel: str
    arguments: str
    dtype: str


@dataclass(frozen=True)
class Prepared:
    """What became of it. compiled: kernels; failed: why others were not; seconds: for all of them."""

    compiled: int
    failed: tuple[str, ...]
    seconds: float

    def line(self) -> str:
        """The sentence for the terminal."""
        said = f"{plural(self.compiled, 'kernel')} compiled or found on disk beforehand, in {duration(self.seconds)}"
        if not self.failed:
            return said
        return f"{said}; not {plural(len(self.failed), 'kernel')}, which will be when first launched: {self.failed[0]}"


class DeviceWorker(Worker):
    """A process that compiles for this machine's GPU, and keeps what it has compiled."""

    module = "groundup.compiling.beforehand"
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


def of_report(part: str) -> list[Kernel]:
    """What this part of the GPU report launches. Raises ValueError for a part that is not in REPORT."""
    if part not in REPORT:
        raise ValueError(f"part: expected one of {', '.join(REPORT)}, got {part!r}")
    return _kernels(REPORT[part])


def _kernels(names: Iterable[str]) -> list[Kernel]:
    """Each of them once, the largest first."""
    lines = [KNOWN[name] for name in sorted(dict.fromkeys(names), key=_registers, reverse=True)]
    return [Kernel(line.package, line.kernel, line.arguments, dtype) for line, dtype in lines]


def _registers(name: str) -> int:
    """The budget of a kernel: those with many registers are large, and take longest to compile."""
    line, dtype = KNOWN[name]
    return line.budget(dtype) if line.package == PACKAGE else 0


def prepare(
    kernels: Sequence[Kernel], make: Callable[[], Any] = DeviceWorker, processes: int | None = None
) -> Prepared:
    """Compile them in their order, in as many processes as there are cores, at most MOST_PROCESSES.

    make: a process with `wait_until_ready`, `ask` and `close`, as groundup.compiling.check.Worker has them
    """
    begin = time.perf_counter()
    waiting: queue.SimpleQueue[Kernel] = queue.SimpleQueue()
    for kernel in kernels:
        waiting.put(kernel)
    failed: list[str] = []
    done: list[Kernel] = []

    def run() -> None:
        worker = make()
        try:
            worker.wait_until_ready()
            while True:
                kernel = waiting.get_nowait()
                answer = worker.ask(vars(kernel))
                if "error" in answer:
                    failed.append(f"{kernel.kernel}, {answer['error']}")
                else:
                    done.append(kernel)
        except queue.Empty:
            return
        except (CompilerMissing, OSError) as error:  # it ends; its kernels are left to the others, and to their launch
            failed.append(str(error))
        finally:
            worker.close()

    crew = [
        threading.Thread(target=run, daemon=True)
        for _ in range(min(processes or usable_cores(), MOST_PROCESSES, len(kernels)))
    ]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return Prepared(len(done), tuple(failed), time.perf_counter() - begin)


def compiled(question: dict[str, Any]) -> dict[str, Any]:
    """Compile a kernel for the device of this process, or find it on disk; {"error": …} where that fails."""
    from groundup.compiling.worker import find

    try:
        kernel = find(question["package"], question["kernel"], question["dtype"])
        kernel.compile(argument_types(question["arguments"], question["dtype"]))
    except Exception as error:  # whatever the compiler refuses with; the launch will say it again
        return {"error": f"{type(error).__name__}: {error}".strip().splitlines()[0]}
    return {}


def main() -> None:
    """Compile for a part of the report; without one answer until the questions end."""
    if len(sys.argv) > 1:
        print(prepare(of_report(sys.argv[1])).line())
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
