"""What a run consists of: its jobs, how often each is done, and about how long that takes.

A quick run is there to see that all is well, and stays under two minutes on two cores: fewer sizes, fewer rounds, no
full MNIST, and one thread, since those who use several have to rest before each sample. A full one takes under fifteen.
Both measure in several passes, each in a process of its own, so that every ratio comes with its noise.

A stage on a GPU compiles a kernel for each dtype, which takes longer than to measure it. So a quick run measures such a
stage in float32 alone, but for the training that all stages do in float64, and some of its rungs; and it takes a pass
less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from shared import contract
from shared.bench.kinds import (
    convolutions,
    inference,
    integers,
    ladders,
    machine,
    memory,
    operations,
    phases,
    products,
    step_parts,
    steps,
    training,
)
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import Effort
from shared.bench.measuring.rows import BenchRow, Curve
from shared.bench.measuring.timing import DTYPES
from shared.contract import Stage, is_emulated
from shared.data.datasets import Dataset, Split, load_dataset

PARTS = (
    "ladders",
    "products",
    "integers",
    "convolutions",
    "operations",
    "steps",
    "inference",
    "training",
    "memory",
    "phases",
)
MODEL_PARTS = ("convolutions", "steps", "inference", "training", "memory")
"""What there is to measure of one known network."""
PASSES, QUICK_PASSES_ON_GPU = 4, 3

QUICK_SIZES = (128,)
"""Matrix sizes of a quick run: the one that all stages are compared at."""

QUICK_RUNGS_ON_GPU = ("naive", "tiled_32", "register_2d", "warp_tiled", "fitted_tile")
"""Of the ladder, in a quick run: each of the others would have a large kernel compiled, too."""

QUICK_INTEGERS = 1
"""How many of the products of whole numbers a quick run has."""

QUICK_CONVOLUTION = slice(1, 2)
"""Of the known networks' convolutions the one of a quick run: LeNet-5's second."""
QUICK_OPERATIONS = ("relu", "softmax", "softmax_cross_entropy", "dense", "Adam")
QUICK_IMAGES = 600
"""Of the bundled ones, to train on in a quick run: the first stage needs a second for an epoch."""

QUICK_RECIPE = replace(training.RECIPES["mnist-subset"], epochs=3, target=0.70)

MNIST = "training on MNIST"
ASKED_FOR = 4.0
"""Seconds that one call may be expected to take at a size that was asked for."""


@dataclass(frozen=True)
class Plan:
    """What to measure, checked before anything runs. It has only plain values, because each pass reads it.

    stages: full names. parts: of PARTS. threads: for each contender. quick: a quick run. passes: how many.
    sizes: of the ladders, () for each stage's own. mnist: the folder with the full MNIST, "" for where it is looked for
    by default, None to leave it out. model: a known network whose steps, inference, training and memory are measured in
    place of those of dense layers; "" for none.
    emulated: whether emulated stages are measured throughout; else they take part in nothing but the training curves,
    whose losses and accuracies are a GPU's, too.
    """

    stages: tuple[str, ...]
    parts: tuple[str, ...] = PARTS
    threads: int = 1
    quick: bool = False
    passes: int = PASSES
    sizes: tuple[int, ...] = ()
    mnist: str | None = None
    model: str = ""
    emulated: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The plan as a dictionary, for the process that carries it out."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Plan:
        """The plan from its dictionary; JSON has turned its tuples into lists."""
        own: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**own)


@dataclass(frozen=True)
class Bench:
    """What a pass measures with: the plan, its loaded stages, PyTorch where it is installed, and the pass's number."""

    plan: Plan
    loaded: Sequence[Stage]
    torch: Any | None
    number: int

    @property
    def stages(self) -> list[Stage]:
        """The stages that are measured in every part."""
        return [stage for stage in self.loaded if self.plan.emulated or not is_emulated(stage.name)]

    def stages_in(self, dtype: str) -> list[Stage]:
        """The stages that are measured in this dtype: in a quick run those on a GPU in float32 alone."""
        only = self.plan.quick and dtype != "float32"
        return [stage for stage in self.stages if not (only and gpu.on_gpu(stage))]

    @property
    def first(self) -> bool:
        """Whether this is the first pass."""
        return self.number == 1


@dataclass(frozen=True)
class Job:
    """Rows that are measured together. seconds: about how long one pass takes on two cores.

    once: whether the first pass alone does it, since another would find nothing else.
    """

    part: str
    title: str
    seconds: float
    rows: Callable[[Bench], Iterator[BenchRow | Curve]]
    once: bool = False


def jobs(plan: Plan) -> list[Job]:
    """The jobs of one pass, in their order."""
    quick = plan.quick
    if plan.model:
        return _model_jobs(plan)
    every = [
        Job("machine", "the machine's roofs", 2 if quick else 6, _machine),
        Job("ladders", "matmul ladders", 4 if quick else 40, _ladders),
        Job("products", "the network's products", 3 if quick else 15, _products),
        Job("integers", "products of eight bits", 1 if quick else 15, _integers),
        Job("convolutions", "convolutions", 3 if quick else 30, _convolutions),
        Job("operations", "operations", 3 if quick else 20, _operations),
        Job("steps", "training steps", 3 if quick else 16, _steps),
        Job("steps", "where a step's time goes", 2 if quick else 8, _step_parts),
        Job("inference", "inference", 2 if quick else 8, _inference),
        Job("training", "training on the bundled images", 5 if quick else 20, _training_on_the_subset),
        *([Job("training", MNIST, 16, _training_on_mnist)] if plan.mnist is not None and not quick else []),
        Job("memory", "memory", 5 if quick else 10, _memory, once=True),
        Job("phases", "copies and compilers", 3 if quick else 6, _phases),
    ]
    wanted = {*plan.parts, *(["machine"] if set(plan.parts) & {"ladders", "products", "convolutions", "steps"} else [])}
    return [job for job in every if job.part in wanted]


def _model_jobs(plan: Plan) -> list[Job]:
    """The jobs of one known network. seconds: those of the largest, the residual CNN, are several times LeNet-5's."""
    quick, large = plan.quick, plan.model != "lenet5"
    every = [
        Job("machine", "the machine's roofs", 2 if quick else 6, _machine),
        Job("convolutions", "convolutions", 6 if quick else 20, _convolutions),
        Job("steps", f"training steps of {plan.model}", 4 if quick else 30 if large else 15, _steps),
        Job("inference", f"inference by {plan.model}", 3 if quick else 10, _inference),
        Job(
            "training",
            f"training {plan.model} on the bundled images",
            60 if large else 20,
            _training_of_a_model,
            once=large,
        ),
        Job("memory", f"memory of {plan.model}", 60 if large else 15, _memory, once=True),
    ]
    wanted = {*plan.parts, *(["machine"] if set(plan.parts) & {"convolutions", "steps"} else [])}
    return [job for job in every if job.part in wanted]


def _effort(bench: Bench, usual: Effort, limit: float) -> Effort:
    """The usual effort with a limit in seconds for a group; a quick run has three rounds at most."""
    repeats = 3 if bench.plan.quick else 15
    return replace(usual, repeats=repeats, group_limit=limit, threads=bench.plan.threads)


def _machine(bench: Bench) -> Iterator[BenchRow]:
    quick = bench.plan.quick
    sizes = (machine.CACHE_SIZES[0], machine.beyond_the_caches()) if quick else None
    repeats = 3 if quick else 7
    yield from machine.peak_rows(bench.stages, repeats=5 if quick else 15)
    yield from machine.bandwidth_rows(bench.stages, threads=bench.plan.threads, repeats=repeats, sizes=sizes)


def _ladders(bench: Bench) -> Iterator[BenchRow]:
    sizes: dict[str, Any] = {"sizes": QUICK_SIZES, "of_gpu": QUICK_RUNGS_ON_GPU} if bench.plan.quick else {}
    if bench.plan.sizes:
        sizes |= {"sizes": bench.plan.sizes, "call_limit": ASKED_FOR}
    effort = _effort(bench, ladders.EFFORT, 2.5)
    for dtype in DTYPES:
        yield from ladders.ladder_rows(
            bench.stages_in(dtype), dtypes=[dtype], effort=effort, **sizes, torch=bench.torch
        )


def _products(bench: Bench) -> Iterator[BenchRow]:
    some: dict[str, Any] = {"products": products.PRODUCTS[:4]} if bench.plan.quick else {}
    yield from products.product_rows(
        bench.stages, effort=_effort(bench, products.EFFORT, 2.0), **some, torch=bench.torch
    )


def _integers(bench: Bench) -> Iterator[BenchRow]:
    some: dict[str, Any] = {"products": integers.PRODUCTS[:QUICK_INTEGERS]} if bench.plan.quick else {}
    yield from integers.integer_rows(bench.stages, **some, effort=_effort(bench, integers.EFFORT, 2.0))


def _convolutions(bench: Bench) -> Iterator[BenchRow]:
    plan = bench.plan
    forms = convolutions.forms_of([plan.model]) if plan.model else convolutions.forms_of()
    yield from convolutions.convolution_rows(
        bench.stages,
        forms=forms[QUICK_CONVOLUTION] if plan.quick else forms,
        effort=_effort(bench, convolutions.EFFORT, 2.5),
        torch=bench.torch,
    )


def _operations(bench: Bench) -> Iterator[BenchRow]:
    small, large = operations.SHAPES
    some: dict[str, Any] = {"names": QUICK_OPERATIONS} if bench.plan.quick else {}
    effort = _effort(bench, operations.EFFORT, 0.3)
    for dtype in DTYPES:
        yield from operations.operation_rows(
            bench.stages_in(dtype), shapes=[small], dtypes=[dtype], effort=effort, **some, torch=bench.torch
        )
    if not bench.plan.quick:  # where one dtype is enough to see what the memory does
        rows = operations.operation_rows(
            bench.stages, shapes=[large], dtypes=["float32"], effort=effort, torch=bench.torch
        )
        yield from rows


def _steps(bench: Bench) -> Iterator[BenchRow]:
    effort = _effort(bench, steps.EFFORT, 2.5)
    cases: Sequence[steps.Case] = (steps.CASES[0], steps.CASES[2]) if bench.plan.quick else steps.CASES
    if bench.plan.model:
        batches = steps.MODEL_BATCHES[:1] if bench.plan.quick else steps.MODEL_BATCHES
        cases = steps.model_cases(bench.plan.model, batches)
    for case in cases:
        yield from steps.step_rows(bench.stages_in(case.dtype), cases=[case], effort=effort, torch=bench.torch)


def _step_parts(bench: Bench) -> Iterator[BenchRow]:
    effort = _effort(bench, step_parts.EFFORT, 2.0)
    for case in step_parts.CASES:
        yield from step_parts.part_rows(bench.stages_in(case.dtype), cases=[case], effort=effort)


def _inference(bench: Bench) -> Iterator[BenchRow]:
    some: dict[str, Any] = {"batches": (1, 64, 1024)} if bench.plan.quick else {}
    if bench.plan.model:
        batches = inference.MODEL_BATCHES
        some = {"batches": batches[::2] if bench.plan.quick else batches, "model": bench.plan.model}
    yield from inference.inference_rows(
        bench.stages, effort=_effort(bench, inference.EFFORT, 2.0), **some, torch=bench.torch
    )


def _training_on_the_subset(bench: Bench) -> Iterator[BenchRow | Curve]:
    # Stage 1 takes as long for an epoch as everyone else for ten, and its epochs are much alike.
    few = {} if bench.first else {contract.STAGES[0]: 1}
    data = load_dataset("mnist-subset")
    some: dict[str, Any] = {}
    if bench.plan.quick:
        images = Split(data.train.x[:QUICK_IMAGES], data.train.y[:QUICK_IMAGES])
        data = replace(data, name=f"{QUICK_IMAGES:,} images of mnist-subset", train=images)
        some = {"recipe": QUICK_RECIPE}
    yield from _training(bench, bench.loaded, data, epochs_of=few, **some)


def _training_of_a_model(bench: Bench) -> Iterator[BenchRow | Curve]:
    recipe = training.MODEL_RECIPES[bench.plan.model]
    yield from _training(bench, bench.stages, load_dataset("mnist-subset"), recipe=recipe)


def _training_on_mnist(bench: Bench) -> Iterator[BenchRow | Curve]:
    yield from _training(bench, bench.stages, load_dataset("mnist", bench.plan.mnist or None))


def _training(bench: Bench, stages: Sequence[Stage], data: Dataset, **more: Any) -> Iterator[BenchRow | Curve]:
    threads = bench.plan.threads
    yield from training.training_rows(stages, data, curve=bench.first, threads=threads, torch=bench.torch, **more)


def _memory(bench: Bench) -> Iterator[BenchRow]:
    some: dict[str, Any] = {"cases": memory.CASES[:1]} if bench.plan.quick else {}
    if bench.plan.model:
        some = {"cases": steps.model_cases(bench.plan.model, [memory.MODEL_BATCH])}
    yield from memory.memory_rows(bench.stages, threads=bench.plan.threads, **some, torch=bench.torch)


def _phases(bench: Bench) -> Iterator[BenchRow]:
    some: dict[str, Any] = {"sizes": phases.SIZES[:2]} if bench.plan.quick else {}
    effort = _effort(bench, phases.EFFORT, 2.0)
    yield from phases.phase_rows(
        bench.stages, effort=effort, **some, processes=bench.first, torch=bench.torch, quick=bench.plan.quick
    )
