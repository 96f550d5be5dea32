"""The measurements of the GPU report, part by part: at the sizes of a GPU, at fewer of them, or at tiny ones.

    ladder      matmul beside cuBLAS at 1,024, 2,048 and 4,096; the tensor cores beside cuBLAS in their precision
    launches    what a launch costs, and a CUDA graph's replay
    steps       the training step beside PyTorch, eager and captured, with a batch that is there and with resident data
    training    MNIST and Fashion-MNIST: accuracy after every epoch, seconds until 97 %

Each part yields a Found for every thing that it measured, with the row as gpu_report.json has it, and a LeftOut for
everything that cannot be measured here. The measuring itself is done by the same modules as `groundup bench`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from shared.bench.kinds.ladders import ladder_rows
from shared.bench.kinds.steps import Case, step_rows
from shared.bench.kinds.training import Recipe, training_rows
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.measuring.rows import NOT_TIMED, BenchRow, Curve
from shared.bench.on_gpu.resident_steps import RESIDENT, resident_rows
from shared.contract import STAGES, Stage, load_stage
from shared.data.datasets import DataError, Dataset, limited, load_dataset
from shared.numbers import duration, three_digits

SIZES, QUICK_SIZES, TINY_SIZES = (1024, 2048, 4096), (1024,), (40,)
CALL_LIMIT = 0.5
"""Seconds; a rung that is expected to take longer at a size is left out there: it has been seen how slow it is."""

NETWORKS, BATCHES = ((784, 128, 10), (784, 512, 512, 10)), (64, 256, 1024)
TINY_CASE = Case((12, 8, 4), 8, "float32")
TINY_STEPS = 4

RECIPE = Recipe(128, 64, 0.1, 0.9, "cosine", 5, 0.97, "float32")
"""Momentum 0.9, so that few epochs reach the goal: what is measured is the time until then."""

DATASETS, SUBSET, TINY_IMAGES = ("mnist", "fashion-mnist"), "mnist-subset", 320
NO_GPU = "no GPU"
REFERENCE = "cuBLAS"


@dataclass(frozen=True)
class GpuPlan:
    """What a part of the report is to measure: its time, its sizes and its data.

    seconds: for the part; quick: fewer sizes and rounds; tiny: sizes that the emulator, or a GPU under
    compute-sanitizer, is done with in seconds; data_dir: where the full data sets are, None for the usual places
    """

    seconds: float
    quick: bool = False
    tiny: bool = False
    data_dir: Path | None = None
    begin: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds that the part still has."""
        return self.seconds - (time.monotonic() - self.begin)

    def effort(self, groups_left: int, repeats: int = 15) -> Effort:
        """An effort of which so many fit into the time that is left, with as much again for what is not timed."""
        least = {"minimum_sample": 0.0} if self.tiny else {}
        repeats = 3 if self.tiny else 5 if self.quick else repeats
        return Effort(repeats, max(self.left / groups_left / 2, 0.1), threads=1, **least)


class Found(NamedTuple):
    """One thing that was measured. line: for the screen; row: for the file; wrong: what is wrong with its result."""

    line: str = ""
    row: dict[str, Any] | None = None
    wrong: str = ""


class LeftOut(NamedTuple):
    """Something that cannot be measured here."""

    what: str
    reason: str


def attempted(group: str, measure: Callable[[], Iterable[Found | LeftOut]]) -> Iterator[Found | LeftOut]:
    """What a group of measurements finds. If it raises, that is what was wrong with it, and the next group goes on."""
    try:
        yield from measure()
    except ModuleNotFoundError:  # the part is left out, and its document says what it needs
        raise
    except Exception as error:
        traceback.print_exc()
        yield Found(wrong=f"{group}: raised {type(error).__name__}: {error}")


def ladder(plan: GpuPlan) -> Iterator[Found | LeftOut]:
    """A row for each size, precision and rung."""
    stage = load_stage(STAGES[3])
    sizes = TINY_SIZES if plan.tiny else QUICK_SIZES if plan.quick else SIZES
    precisions = ("float32",)
    if gpu.on_gpu(stage):
        room: Any = stage.matmul
        precisions = ("float32", *room.tensor_precisions())
    else:
        yield LeftOut("cuBLAS and the tensor-core rungs' speed", NO_GPU)
    groups = [(precision, size) for precision in precisions for size in sizes]
    for precision in precisions:
        mine = [size for each, size in groups if each == precision]
        left = len(groups) - groups.index((precision, mine[0]))
        yield from attempted(precision, partial(_ladder_in, stage, precision, mine, plan.effort(left)))


def _ladder_in(stage: Stage, precision: str, sizes: Sequence[int], effort: Effort) -> Iterator[Found | LeftOut]:
    """The rows of a precision, and cuBLAS's own beside them."""
    beside, seen = False, set[int]()
    for row in ladder_rows([stage], sizes=sizes, dtypes=[precision], effort=effort, call_limit=CALL_LIMIT):
        if row.shape[0] not in seen and (cublas := _cublas_row(row)):
            seen.add(row.shape[0])
            yield Found(row=cublas)
        beside = beside or row.reference.startswith(REFERENCE)
        yield _ladder_row(row)
    if gpu.on_gpu(stage) and not beside:
        yield LeftOut(f"cuBLAS in {precision}", "neither PyTorch nor CuPy is here to call it")


def _ladder_row(row: BenchRow) -> Found | LeftOut:
    size, name = row.shape[0], f"{row.shape[0]}, {row.dtype}, {row.name}"
    if row.measurement is None:
        return not_timed(f"{row.name} at {size} in {row.dtype}", row)
    # Where cuBLAS is missing, the ratio is NumPy's, and says nothing here.
    share = 1 / row.ratio if row.ratio and row.reference.startswith(REFERENCE) else None
    tflops = row.flops / row.measurement.median / 1e12
    said = f", {share:.3f} of cuBLAS" if share else ""
    values = {"size": size, "precision": row.dtype, "rung": row.name, "tflops": tflops, "share_of_cublas": share}
    library = row.reference.removeprefix("cuBLAS through ").rpartition(",")[0] if share else None
    return Found(
        f"{name}: {three_digits(tflops)} TFLOP/s{said}", values | {"reference": library} | asdict(row.measurement)
    )


def _cublas_row(row: BenchRow) -> dict[str, Any] | None:
    """cuBLAS's own row, from a rung that was measured beside it; None where there is no cuBLAS."""
    beside = _ladder_row(row)
    if row.ratio is None or isinstance(beside, LeftOut) or not beside.row or beside.row["share_of_cublas"] is None:
        return None
    seconds = (row.seconds or 0.0) / row.ratio
    values = {"rung": REFERENCE, "tflops": row.flops / seconds / 1e12, "share_of_cublas": 1.0, "median": seconds}
    return {name: beside.row[name] for name in ("size", "precision", "reference")} | values


def launches(plan: GpuPlan) -> Iterator[Found | LeftOut]:
    """A row for each kind of launch."""
    from shared.bench.on_gpu import launches as measuring  # here, because it makes kernels for the stage's device

    found = measuring.launches(5, 20) if plan.tiny else measuring.launches()
    if not measuring.graphs.available():
        yield LeftOut("replay", NO_GPU)
    for each in found:
        line = f"{each.kind}: {duration(each.host.median)} on the host, {duration(each.done.median)} until done"
        yield Found(line, {"kind": each.kind, "host": asdict(each.host), "done": asdict(each.done)})


def steps(plan: GpuPlan) -> Iterator[Found | LeftOut]:
    """A row for each network, batch and contender."""
    stage = load_stage(STAGES[3])
    cases = [Case(sizes, batch, "float32") for sizes in NETWORKS for batch in BATCHES]
    cases = [TINY_CASE] if plan.tiny else cases[:1] if plan.quick else cases
    if not gpu.on_gpu(stage):
        yield LeftOut("PyTorch", NO_GPU)
    elif gpu.cuda_torch() is None:
        yield LeftOut("PyTorch", "it is not installed, or sees no GPU")
    for i, case in enumerate(cases):
        left = 2 * (len(cases) - i)

        def steps_of_case(case: Case = case, left: int = left) -> Iterator[Found | LeftOut]:
            yield from beside_pytorch(list(step_rows([stage], cases=[case], effort=plan.effort(left, 11))))

        def resident(case: Case = case, left: int = left) -> Iterator[Found | LeftOut]:
            effort = replace(plan.effort(left - 1, 11), minimum_sample=0.0 if plan.tiny else 0.02)
            count = TINY_STEPS if plan.tiny else None
            yield from beside_pytorch(list(resident_rows([stage], cases=[case], effort=effort, steps=count)))

        yield from attempted(case.name, steps_of_case)
        yield from attempted(f"{case.name}, {RESIDENT}", resident)


def beside_pytorch(rows: list[BenchRow]) -> Iterator[Found | LeftOut]:
    """The rows of contenders that were measured together, each with its ratio to PyTorch's ways."""
    theirs = {row.variant.split()[0]: row for row in rows if row.stage == "pytorch" and row.seconds}
    for row in rows:
        who = row.variant
        if row.stage == "pytorch":
            who = f"PyTorch {who.replace(' on the GPU', '')}"
        if row.measurement is None:
            yield not_timed(f"{row.name}, {who}", row)
            continue
        against = {
            way: (other.seconds or 0.0) / row.measurement.median
            for way, other in theirs.items()
            if other is not row and not row.emulated
        }
        versus = "".join(f", {three_digits(ratio)} x PyTorch {way}" for way, ratio in against.items())
        values = {
            "network": list(row.shape),
            "batch": row.samples,
            "who": who,
            "resident": RESIDENT in who,
            "against": against,
        }
        line = f"{row.name}, {who}: {duration(row.measurement.median)}{versus}"
        yield Found(line, values | asdict(row.measurement))


def training(plan: GpuPlan) -> Iterator[Found | LeftOut]:
    """A row for each epoch of each data set, and one that sums it up."""
    sets: list[Dataset] = []
    for name in DATASETS:
        try:
            sets.append(load_dataset(name, plan.data_dir))
        except DataError as reason:
            yield LeftOut(name, str(reason).partition(". ")[0])
    if not sets or plan.tiny:
        sets = [limited(load_dataset(SUBSET), TINY_IMAGES if plan.tiny else None)]
    epochs = 1 if plan.tiny else 2 if plan.quick else RECIPE.epochs
    stage = load_stage(STAGES[3])
    for data in sets:
        yield from attempted(data.name, partial(_trained, stage, data, replace(RECIPE, epochs=epochs)))


def _trained(stage: Stage, data: Dataset, recipe: Recipe) -> Iterator[Found]:
    for thing in training_rows([stage], data, recipe=recipe, threads=1):
        if not isinstance(thing, Curve):
            continue
        values = list(zip(thing.epochs, thing.loss, thing.accuracy, thing.seconds, strict=True))
        before = 0.0
        for epoch, loss, accuracy, seconds in values:
            row = {"kind": "epoch", "dataset": data.name, "epoch": epoch, "train_loss": loss}
            row |= {"test_accuracy": accuracy, "training_seconds": seconds, "seconds": seconds - before}
            before = seconds
            yield Found(f"{data.name}, epoch {epoch}: {accuracy:.2%} after {duration(seconds)} of training", row)
        reached = (seconds for _, _, accuracy, seconds in values if accuracy >= recipe.target)
        goal = next(reached, None)
        said = f"; {recipe.target:.0%} after {duration(goal)}" if goal is not None else ""
        network = list(recipe.case(data).layer_sizes)
        summary = {"kind": "summary", "dataset": data.name, "network": network, "batch": recipe.batch}
        summary |= {"learning_rate": recipe.learning_rate, "momentum": recipe.momentum, "epochs": recipe.epochs}
        summary |= {"samples": len(data.train), "seconds": before, "test_accuracy": values[-1][2]}
        summary |= {"seconds_to_goal": goal, "goal": recipe.target}
        yield Found(f"{data.name}: {values[-1][2]:.2%} in {duration(before)} of training{said}", summary)


def not_timed(subject: str, row: BenchRow) -> Found | LeftOut:
    """A row without a measurement: wrong, or left out."""
    reason = row.skipped or "no reason was given"
    return Found(wrong=f"{subject}: {reason}") if reason.endswith(NOT_TIMED) else LeftOut(subject, reason)


PARTS = {"ladder": ladder, "launches": launches, "steps": steps, "training": training}
