"""The parts of the GPU report about convolutional networks, which are asked for by name (--only).

networks           steps, predictions, single convolutions and memory beside PyTorch and cuDNN, TF32 off and on
network_training   the Fashion CNN and the residual CNN by their recipes: seconds of training and accuracy

The measuring is done by the same modules as `groundup bench --model`; what is needed most is measured first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from groundup.train import Training, new_settings, with_background
from shared.architectures import NAMED
from shared.bench.kinds.convolutions import convolution_rows, forms_of
from shared.bench.kinds.inference import MODEL_BATCHES, inference_rows
from shared.bench.kinds.memory import MODEL_BATCH, memory_rows
from shared.bench.kinds.steps import model_cases, step_rows
from shared.bench.measuring import gpu
from shared.bench.measuring.rows import BenchRow
from shared.bench.on_gpu.gpu_plan import NO_GPU, Found, GpuPlan, LeftOut, attempted, not_timed
from shared.contract import STAGES, Stage, load_stage
from shared.data.datasets import DataError, Dataset, Split, limited
from shared.numbers import duration, size_of, three_digits
from shared.training import loop
from shared.training.metrics import EpochRecord
from shared.training.settings import Hooks

STEP_BATCHES = (64, 32, 128)
"""The one that the goals are about comes first."""

TRAININGS = (("fashion_cnn", "fashion-mnist", 0.91), ("residual_cnn", "mnist", 0.99))
"""Model, data set, and the accuracy on the test images that its recipe should reach."""

TINY_TRAINING, TINY_IMAGES = ("lenet5", "mnist-subset", 0.99), 48
CUDNN = "cuDNN"


def networks(plan: GpuPlan) -> Iterator[Found | LeftOut]:
    """A row for each network, batch and contender; each convolution, direction and contender; and for memory."""
    stage = load_stage(STAGES[3])
    models = ["lenet5"] if plan.tiny else ["lenet5", "fashion_cnn"] if plan.quick else list(NAMED)
    batches: Sequence[int] = (2,) if plan.tiny else STEP_BATCHES[:1] if plan.quick else STEP_BATCHES
    if not gpu.on_gpu(stage):
        yield LeftOut("PyTorch and cuDNN", NO_GPU)
    elif gpu.cuda_torch() is None:
        yield LeftOut("PyTorch and cuDNN", "PyTorch is not installed, or sees no GPU")
    left = len(models) * (len(batches) + 2)

    def kept(group: str, model: str, measure: Callable[[], Iterable[BenchRow]]) -> Iterator[Found | LeftOut]:
        return attempted(group, lambda: beside_pytorch(list(measure()), model))

    for number, batch in enumerate(batches):
        for model in models:
            (case,) = model_cases(model, [batch])
            effort = plan.effort(left, 11)
            yield from kept(case.name, model, partial(step_rows, [stage], cases=[case], effort=effort))
            left -= 1
        for model in models if number == 0 else ():
            sizes = (1, 2) if plan.tiny else MODEL_BATCHES
            measure = partial(inference_rows, [stage], model=model, batches=sizes, effort=plan.effort(left, 9))
            yield from kept(f"predictions of {model}", model, measure)
            left -= 1
    for model in models:
        forms = forms_of([model], 2)[1:] if plan.tiny else forms_of([model])
        effort = plan.effort(left * 2 * len(forms), 9)
        for form in forms:
            measure = partial(convolution_rows, [stage], forms=[form], effort=effort)
            yield from kept(f"convolutions of {model}", model, measure)
        left -= 1
    for model in models if gpu.on_gpu(stage) else ():
        yield from kept(f"memory of {model}", model, partial(_memory, stage, model))


def _memory(stage: Stage, model: str) -> list[BenchRow]:
    """PyTorch is not asked for what it needs on the CPU; without that it has no row on the GPU."""
    rows = memory_rows([stage], cases=model_cases(model, [MODEL_BATCH]), threads=1, torch=gpu.cuda_torch())
    return [row for row in rows if row.variant]


def beside_pytorch(rows: Sequence[BenchRow], model: str) -> Iterator[Found | LeftOut]:
    """The rows of contenders that were measured together, each with its ratio to PyTorch's ways on the GPU, of either
    layout the faster. Rows of different batches or directions are not compared."""
    theirs: dict[tuple[str, str, str], float] = {}
    for row in rows:
        if row.stage == "pytorch" and row.seconds:
            key = (row.name, row.part, _way(row))
            theirs[key] = min(theirs.get(key, row.seconds), row.seconds)
    for row in rows:
        who = row.variant or "in use"
        if row.stage == "pytorch":
            who = f"PyTorch {row.variant.removesuffix(gpu.ON_GPU)}".strip()
        subject = ", ".join(filter(None, [row.name, row.part, who]))
        values = {"kind": row.kind, "model": model, "name": row.name, "batch": row.samples, "part": row.part}
        values |= {"who": who, "precision": row.dtype}
        if row.memory is not None:
            yield Found(f"{subject}: {size_of(row.memory)}", values | {"memory": row.memory})
            continue
        if row.measurement is None:
            yield not_timed(subject, row)
            continue
        ours = row.measurement.median
        against: dict[str, float] = {}
        if row.stage != "pytorch" and not row.emulated:
            mine = {
                way: seconds for (name, part, way), seconds in theirs.items() if (name, part) == (row.name, row.part)
            }
            against = {way: seconds / ours for way, seconds in mine.items()}
        said = "".join(f", {three_digits(ratio)} x PyTorch {way}" for way, ratio in against.items())
        values |= {"against": against, "samples_per_second": row.samples_per_second, "clock": row.clock}
        yield Found(f"{subject}: {duration(ours)}{said}", values | asdict(row.measurement))


def _way(row: BenchRow) -> str:
    """'graph', 'eager TF32', … whatever the layout; of a single convolution 'cuDNN' or 'cuDNN TF32'."""
    words = [word for word in row.variant.removesuffix(gpu.ON_GPU).split() if word != "channels-last"]
    return " ".join([CUDNN, *words] if row.kind == "convolution" else words)


def network_training(plan: GpuPlan) -> Iterator[Found | LeftOut]:
    """A row for each epoch of each training, and one that sums it up."""
    stage = load_stage(STAGES[3])
    for model, name, goal in (TINY_TRAINING,) if plan.tiny else TRAININGS:
        given: dict[str, Any] = {"model": model, "dataset": name}
        given |= {"data_dir": str(plan.data_dir)} if plan.data_dir and not plan.tiny else {}
        given |= {"epochs": 1} if plan.tiny or plan.quick else {}
        training = Training.of(new_settings(stage.name, given), Path(), resume=False, overwrite=False)
        try:
            data, normalisation = training.data.load()
        except DataError as reason:
            yield LeftOut(f"{model} on {name}", str(reason).partition(". ")[0])
            continue
        data = limited(data, TINY_IMAGES if plan.tiny else None)
        if normalisation is not None:
            training = replace(training, settings=with_background(training.settings, normalisation, data))
        yield from attempted(f"{model} on {name}", partial(_trained, stage, training, data, goal))


def _trained(stage: Stage, training: Training, data: Dataset, goal: float) -> Iterator[Found]:
    """Train as `groundup train` does, but for saving. A few steps before it have the kernels compiled."""
    model, batch = training.network.model, training.settings.batch_size
    count = 2 * batch + len(data.train) % batch  # the last batch as short as in an epoch
    few = Split(data.train.x[:count], data.train.y[:count])
    results: list[EpochRecord] = []
    for part, test in ((few, None), (data.train, data.test)):
        network, optimizer = training.network.build(stage, data), training.optimizer.build(stage)
        hooks = Hooks(progress_bar=False)
        results = loop.train(stage, network, optimizer, part, training.settings, test_data=test, hooks=hooks).epochs
    seconds, accuracy = 0.0, 0.0
    reached: float | None = None
    for record in results:
        seconds += record.seconds
        accuracy = record.test_accuracy or 0.0
        reached = seconds if reached is None and accuracy >= goal else reached
        row: dict[str, Any] = {"kind": "epoch", "model": model, "dataset": data.name, "epoch": record.epoch}
        row |= {"train_loss": record.train_loss, "test_accuracy": accuracy, "training_seconds": seconds}
        said = f"{model} on {data.name}, epoch {record.epoch}: {accuracy:.2%} after {duration(seconds)} of training"
        yield Found(said, row)
    row = {"kind": "summary", "model": model, "dataset": data.name, "batch": batch, "epochs": len(results)}
    row |= {"samples": len(data.train), "seconds": seconds, "test_accuracy": accuracy, "goal": goal}
    yield Found(f"{model} on {data.name}: {accuracy:.2%} in {duration(seconds)}", row | {"seconds_to_goal": reached})


PARTS = {"networks": networks, "network_training": network_training}
