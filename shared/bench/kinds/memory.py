"""The most memory that a training step holds. Each contender is measured in a process of its own.

The process imports what it needs and makes a batch, a NumPy array. What it holds then is the start. It makes a network,
takes some steps, and the most that it held meanwhile, less the start, is the row: weights, gradients, activations, the
stage's own copy of the batch, every temporary array, and what a library sets up when it is first called.

Where Linux lets a process reset its high-water mark, that is exact to a page. Elsewhere the mark is that of the whole
process, and the imports' may lie above the steps': then there is no row, but a reason.
"""

from __future__ import annotations

import contextlib
import gc
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shared.bench.kinds.steps import Case, batch_of, start_parameters
from shared.bench.measuring import children, gpu
from shared.bench.measuring.gpu import NO_REFERENCE
from shared.bench.measuring.rows import BenchRow
from shared.bench.peers import pytorch, pytorch_device
from shared.contract import Stage, is_emulated, load_stage
from shared.machine.hardware import usable_cores

CASES = (Case((784, 128, 10), 64, "float32"), Case((784, 128, 10), 4096, "float32"))
MODEL_BATCH = 32
STEPS = 3
FEWEST_STEPS = 2
LEARNING_RATE = 0.01
LARGEST_FIRST_FLOOR_BATCH = 64
"""Stage 1 takes half a second for a step on so many images, and 4,096 of them as Python numbers fill the memory."""

MORE_STEPS = 1000
"""Further steps of a known network on stage 3, which must not need more memory than the first ones."""
GROWTH = f"growth over {MORE_STEPS:,} steps"
ON_GPU = gpu.ON_GPU
PYTORCH = "pytorch"
CODE = "from shared.bench.kinds.memory import main; main()"
PROCESS = Path("/proc/self")
SLACK = 1 << 20
"""Bytes: Linux counts a process's pages on each core by itself, and adds them up only now and then."""

NO_READING = "this system does not tell a process how much memory it held"
BELOW = "the steps stayed below what the process had held before, which this system does not let it forget"


def memory_rows(
    stages: Sequence[Stage],
    *,
    cases: Sequence[Case] = CASES,
    threads: int | None = None,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """The most memory of a training step of each case: softmax cross-entropy, ReLU, plain SGD.

    For a known network stage 3 has a second row, part GROWTH: what further steps hold beyond the first ones.
    A stage on a GPU has a second row, of variant "on the GPU", and so has PyTorch beside it.
    threads: as in `ladder_rows`. torch: the module, where PyTorch is to be measured too.
    The reference is stage 2, where that is among the stages; what is emulated is compared with nothing.
    """
    threads = threads or usable_cores()
    for case in cases:
        device = any(gpu.on_gpu(stage) for stage in stages)
        asked = [(stage.name, False) for stage in stages]
        if torch is not None:
            asked += [(PYTORCH, False), *([(PYTORCH, True)] if device and gpu.cuda_torch() is not None else [])]
        # stage 2 first, so that the others can be compared with it
        reference: int | None = None
        for name, on_device in sorted(asked, key=lambda entry: entry[0] != "stage2_numpy"):
            for row in _rows_of(name, on_device, case, threads, reference):
                yield row
                if name == "stage2_numpy":
                    reference = row.memory


def _rows_of(name: str, on_device: bool, case: Case, threads: int, reference: int | None) -> Iterator[BenchRow]:
    """One contender's rows. on_device: PyTorch on the GPU. reference: bytes that stage 2 held, None for unknown."""
    first_floor = name == "stage1_pure_python"
    case = case._replace(dtype="float64") if first_floor else case
    emulated = name != PYTORCH and is_emulated(name)

    def row(variant: str, held: int | None, skipped: str | None, part: str = "") -> BenchRow:
        compared = None if emulated or not held or not reference or variant or part else held / reference
        return BenchRow(
            "memory",
            name,
            case.name,
            case.dtype,
            tuple(case.layer_sizes),
            reference=NO_REFERENCE if emulated else "the memory of stage2_numpy" if compared else "",
            ratio=compared,
            skipped=skipped,
            variant=variant,
            part=part,
            samples=case.batch,
            threads=1 if first_floor else threads,
            memory=held,
            emulated=emulated,
        )

    if first_floor and case.batch > LARGEST_FIRST_FLOOR_BATCH:
        yield row("", None, f"batches of more than {LARGEST_FIRST_FLOOR_BATCH} take the first stage many seconds")
        return
    steps = FEWEST_STEPS if first_floor else STEPS
    request = {"who": name, "on_device": on_device, "case": case._asdict(), "threads": threads, "steps": steps}
    request["more"] = MORE_STEPS if case.model and name == "stage3_c" else 0
    try:
        answer = children.ask(CODE, request, threads=threads)
    except ChildProcessError as error:
        yield row(ON_GPU if on_device else "", None, str(error))
        return
    if not on_device:
        yield row("", answer["held"], answer["reason"])
        if answer.get("growth") is not None:
            yield row("", answer["growth"], None, part=GROWTH)
    if answer["device"] is not None:
        yield row(ON_GPU, answer["device"], None)


def main() -> None:
    """In the process of its own: read the request, measure, and write the answer."""
    lines, sys.stdout = sys.stdout, sys.stderr
    request = json.load(sys.stdin)
    case = Case(**request["case"])
    take, device = _contender(request["who"], case, request["threads"], request["on_device"])
    gc.collect()
    before = Held()
    taken = take(request["steps"])
    assert np.isfinite(taken).all(), taken
    held, reason = before.more_by_now()
    growth = None
    if request.get("more"):
        gc.collect()
        after = Held()
        assert np.isfinite(take(request["more"])).all()
        growth, _ = after.more_by_now()
    answer = {"held": held, "reason": reason, "growth": growth, "device": device() if device else None}
    print(json.dumps(answer), file=lines, flush=True)


class Held:
    """The memory of this process at this moment; its high-water mark is set down to it where the system allows that.

    folder: what Linux says of the process.
    """

    def __init__(self, folder: Path = PROCESS) -> None:
        self._folder = folder
        # another system has no such file, a container may forbid it, and an imitation of Linux may take no notice
        with contextlib.suppress(OSError):
            (folder / "clear_refs").write_text("5")  # proc(5): the high-water mark is what is held now
        self._start, self._mark = self._read("VmRSS"), self._read("VmHWM")
        self._forgot = self._start is not None and self._mark is not None and self._mark - self._start <= SLACK

    def more_by_now(self) -> tuple[int | None, str | None]:
        """The most bytes held beyond those at the start: (bytes, None), or (None, why they are not known)."""
        if self._mark is None:
            return None, NO_READING
        mark = self._read("VmHWM")
        assert mark is not None
        if mark <= self._mark and not self._forgot:
            return None, BELOW
        start = self._mark if self._start is None else self._start
        return max(mark - start, 0), None

    def _read(self, name: str) -> int | None:
        """Bytes of VmRSS (held now) or VmHWM (held at most); None where the system does not tell."""
        status = self._folder / "status"
        if status.is_file():
            for line in status.read_text().splitlines():
                key, _, value = line.partition(":")
                if key == name:
                    return int(value.split()[0]) << 10
        return _most_held() if name == "VmHWM" else None


def _most_held() -> int | None:
    """The most bytes that this process has held, from POSIX; None on Windows."""
    try:
        import resource  # here, because Windows has none
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


def _contender(who: str, case: Case, threads: int, on_device: bool) -> tuple[Any, Any]:
    """(what makes a network and takes so many steps on one batch, giving their losses; what tells the bytes on the GPU
    that this took, or None). The batch is made here, and so before anything is counted."""
    x, y = batch_of(case)
    if who == PYTORCH:
        return _torch(case, threads, on_device, x, y)
    stage = load_stage(who)
    kept: list[Any] = []  # the network, so that memory is asked for while it is there, and its optimizer

    def take(steps: int) -> list[float]:
        if not kept:
            kept.append(gpu.in_precision(stage.network.Network(case.network, dtype=case.dtype), ""))
            kept.append(stage.optimizers.SGD(LEARNING_RATE))
        network, optimizer = kept
        own_x = stage.arrays.asarray(x, case.dtype)
        return [float(network.train_step(own_x, y, optimizer)) for _ in range(steps)]

    if not gpu.on_gpu(stage):
        return take, None
    driver: Any = stage.arrays
    free = driver.cuda.current_context().get_memory_info()[0]
    return take, lambda: int(free - driver.cuda.current_context().get_memory_info()[0])


def _torch(case: Case, threads: int, on_device: bool, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    torch, reason = pytorch.load_torch(threads)
    if torch is None:
        raise ImportError(reason)
    parameters = start_parameters(case.network, case.dtype)
    kept: list[Any] = []

    def take(steps: int) -> list[float]:
        if not kept and on_device:
            way = pytorch_device.Way(tuned=False)
            arguments = torch, parameters, x, y, LEARNING_RATE, way, case.model, gpu.DEVICE
            kept.append(pytorch_device.device_step(*arguments))
        elif not kept:
            step = pytorch.stepper(torch, pytorch.network(torch, parameters, case.model), LEARNING_RATE)
            kept.append(partial(step, torch.from_numpy(x), torch.from_numpy(y)))
        return [kept[0]() for _ in range(steps)]

    return take, (lambda: int(torch.cuda.max_memory_allocated())) if on_device else None
