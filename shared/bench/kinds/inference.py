"""How many images a second a network classifies: `predict` on batches from one image up.

A single image leaves most of a machine idle: the weights are read for one row, and most of the time is the cost of the
call itself. How much the images per second grow with the batch shows how much of that cost a stage has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from shared.architectures import named
from shared.bench.kinds.steps import (
    LOSS_TOLERANCE,
    TF32_LOSS_TOLERANCE,
    Case,
    model_cases,
    start_parameters,
)
from shared.bench.measuring import gpu
from shared.bench.measuring.compared_candidates import CallLimit, Effort, take_turns
from shared.bench.measuring.rows import NOT_TIMED, BenchRow, product_bytes
from shared.bench.measuring.timing import aligned, stage_dtypes
from shared.bench.peers import pytorch
from shared.checks.tolerance import tolerance
from shared.contract import Stage, load_stage

LAYER_SIZES = (784, 128, 10)
BATCHES = (1, 8, 32, 64, 1024)
MODEL_BATCHES = (1, 8, 32, 64)
"""Of a known network."""
EFFORT = Effort(repeats=9, group_limit=4.0, minimum_sample=0.003)
CALL_LIMIT = 0.5
"""Seconds; a batch that is expected to take longer is left out."""

NUMPY_STAGE, PYTORCH = "stage2_numpy", "pytorch"

Key = tuple[str, int, str]
"""Who predicts, the batch size, and in which way."""


class Scores(NamedTuple):
    """The network's output for each image, (images, classes), and how far rounding in the other dtype may move it."""

    exact: np.ndarray
    allowed: np.ndarray


def inference_rows(
    stages: Sequence[Stage],
    *,
    layer_sizes: Sequence[int] = LAYER_SIZES,
    batches: Sequence[int] = BATCHES,
    dtype: str = "float32",
    effort: Effort = EFFORT,
    call_limit: float = CALL_LIMIT,
    torch: Any | None = None,
    model: str = "",
) -> Iterator[BenchRow]:
    """Time predictions of every batch size, all contenders and sizes in turns.

    Measured in dtype: the stages that compute in it, and PyTorch where `torch` is given. Stage 1 is measured in
    float64, beside stage 2. A batch lies in the stage's own array before the clock runs; the results are classes.
    effort: its group_limit is for a dtype
    model: the name of a known network, in place of layer_sizes
    call_limit: seconds; a batch that is expected to take longer, from the one before, is skipped with that reason
    The reference is stage 2 on the same batch, where it is among the stages. Rows of an emulated stage are compared
    with nothing. Where a stage runs on a GPU, PyTorch predicts there, too, in all its ways, with the batch on the
    device and the classes brought to the host, as the stage does it. The stage predicts a known network with TF32, too.
    A contender is not timed where it predicts a class whose score is below the largest by more than rounding explains.
    Raises ValueError for batches that are not whole numbers of at least 1.
    """
    if not batches or min(batches) < 1:
        raise ValueError(f"inference_rows: batches must be one or more sizes of at least 1; got {list(batches)}")
    sizes = sorted(set(batches))
    case = model_cases(model, [1])[0]._replace(dtype=dtype) if model else Case(layer_sizes, 1, dtype)
    able = [stage for stage in stages if dtype in stage_dtypes(stage)]
    yield from _rows(able, case, sizes, effort, call_limit, torch)
    if dtype != "float64" and any(stage.number == 1 for stage in stages):
        low = [stage for stage in stages if stage.number <= 2]
        yield from _rows(low, case._replace(dtype="float64"), sizes, effort, call_limit, None)


def _rows(
    stages: Sequence[Stage],
    any_batch: Case,
    batches: Sequence[int],
    effort: Effort,
    call_limit: float,
    torch: Any | None,
) -> Iterator[BenchRow]:
    layer_sizes, dtype, model = any_batch.layer_sizes, any_batch.dtype, any_batch.model
    parameters = start_parameters(any_batch.network, dtype)
    images = aligned((batches[-1], layer_sizes[0]), dtype)
    images[...] = np.random.default_rng(0).random(images.shape)
    right = model_scores(any_batch, parameters, images) if model else scores(parameters, images, dtype)
    contenders = {}
    for stage in stages:
        for way in ("", gpu.TF32) if model and dtype == "float32" and gpu.has_tf32(stage) else ("",):
            contenders[stage.name, way] = _of_stage(stage, parameters, images, batches, any_batch, way)
    if torch is not None:
        contenders[PYTORCH, ""] = _of_torch(torch, parameters, images, batches, model)
    if dtype == "float32" and any(gpu.on_gpu(stage) for stage in stages):
        ways = gpu.torch_predictors(parameters, images, batches, model)
        contenders |= {(PYTORCH, f"{way} {gpu.ON_GPU}"): calls for way, calls in ways.items()}
    calls: dict[Key, Callable[[], object]] = {}
    skipped: dict[Key, str] = {}
    for (name, way), predict in contenders.items():
        coarse = right._replace(allowed=right.allowed * TF32_LOSS_TOLERANCE / LOSS_TOLERANCE)
        allowed, reasons = _worth_timing(predict, coarse if gpu.TF32 in way else right, call_limit)
        calls |= {(name, batch, way): call for batch, call in allowed.items()}
        skipped |= {(name, batch, way): reason for batch, reason in reasons.items()}
    one_thread = {stage.name for stage in stages if stage.number == 1}
    threads = {
        (name, batch, way): 1 if name in one_thread or way else effort.most_threads
        for name, way in contenders
        for batch in batches
    }
    on_device = [key for key in threads if key[2]]
    turns = take_turns(calls, stages, effort, threads=threads, wake_once=True, also_on_device=on_device)
    for batch in batches:
        case = any_batch._replace(batch=batch)
        products = [] if model else [(batch, rows, columns) for rows, columns in pairwise(layer_sizes)]
        work = named(model).multiply_adds * batch if model else sum(m * k * n for m, k, n in products)
        opponents = {label: (label, batch, "") for label in (NUMPY_STAGE, PYTORCH)}
        for name, way in contenders:
            key = (name, batch, way)
            compared = turns.columns(
                key, reference=opponents[NUMPY_STAGE], label=f"stage 2, {dtype}", opponents=opponents
            )
            yield BenchRow(
                "inference",
                name,
                case.name,
                gpu.precision_of(way, dtype),
                tuple(layer_sizes),
                2 * work,
                skipped=skipped.get(key),
                variant=way,
                bytes=sum(product_bytes(m, k, n, dtype) for m, k, n in products),
                samples=batch,
                **compared,
            )


def _of_stage(
    stage: Stage,
    parameters: Sequence[np.ndarray],
    images: np.ndarray,
    batches: Sequence[int],
    case: Case,
    way: str = "",
) -> dict[int, Callable[[], Any]]:
    """Batch size -> a call that predicts the classes of so many images. way: "", or gpu.TF32"""
    dtype = case.dtype
    own = [stage.arrays.asarray(each, dtype) for each in parameters]
    form = {"architecture": named(case.model)} if case.model else {}
    network: Any = gpu.in_precision(stage.network.Network.from_parameters(own, dtype=dtype, **form), way)
    return {batch: partial(network.predict, stage.arrays.asarray(images[:batch], dtype)) for batch in batches}


def _of_torch(
    torch: ModuleType, parameters: Sequence[np.ndarray], images: np.ndarray, batches: Sequence[int], model: str
) -> dict[int, Callable[[], Any]]:
    own = pytorch.network(torch, parameters, model).eval()

    @torch.inference_mode()
    def predict(x: Any) -> Any:
        return own(x).argmax(dim=1)

    return {batch: partial(predict, torch.from_numpy(images[:batch])) for batch in batches}


def _worth_timing(
    calls: dict[int, Callable[[], Any]], right: Scores, call_limit: float
) -> tuple[dict[int, Callable[[], Any]], dict[int, str]]:
    """(the calls that are right and fast enough; why the others are not timed), for batches that grow."""
    timed: dict[int, Callable[[], Any]] = {}
    skipped: dict[int, str] = {}
    limit = CallLimit(call_limit)
    for batch, call in calls.items():
        if reason := limit.reason("images", batch):
            skipped[batch] = reason
            continue
        wrong = _wrong_class(np.asarray(call()), batch, right)
        begin = time.perf_counter()
        call()  # the second call, since the first one may compile or allocate
        limit.note("images", batch, time.perf_counter() - begin)
        if wrong is None:
            timed[batch] = call
        else:
            skipped[batch] = wrong
    return timed, skipped


def _wrong_class(classes: np.ndarray, images: int, right: Scores) -> str | None:
    """The first image whose predicted class has a score below the largest by more than rounding explains."""
    columns = right.exact.shape[1]
    if classes.shape != (images,) or not all(0 <= each < columns for each in classes):
        return f"it does not predict one of {columns} classes for each of {images} images{NOT_TIMED}"
    for image, (predicted, exact, allowed) in enumerate(zip(classes, right.exact, right.allowed, strict=False)):
        best = int(exact.argmax())
        if exact[best] - exact[predicted] > allowed[best] + allowed[predicted]:
            return (
                f"it predicts class {int(predicted)} for image {image}, whose score is {exact[predicted]:.7g}, "
                f"but class {best} has {exact[best]:.7g}{NOT_TIMED}"
            )
    return None


def scores(parameters: Sequence[np.ndarray], images: np.ndarray, dtype: str) -> Scores:
    """Stage 2's outputs in float64 for these parameters and images, and how far rounding in dtype may move them.

    The tolerance follows shared.checks.tolerance: its scale is the size of everything that is summed on the way through
    the layers (their output with every minus made a plus), its k the number of terms.
    """
    exact = load_stage(NUMPY_STAGE).network.Network.from_parameters(parameters, dtype="float64").forward(images)
    size = np.abs(np.asarray(images, np.float64))
    for weights, bias in zip(parameters[::2], parameters[1::2], strict=True):
        size = size @ np.abs(weights).astype(np.float64) + np.abs(bias)
    return Scores(exact, tolerance(dtype, sum(len(weights) + 1 for weights in parameters[::2]), size))


def model_scores(case: Case, parameters: Sequence[np.ndarray], images: np.ndarray) -> Scores:
    """Exact scores of a known network, and how far a contender's may differ. It has too many layers to add up absolute
    values; so the limit is the share of the largest score by which a loss may differ, too."""
    network = load_stage(NUMPY_STAGE).network.Network.from_parameters(
        parameters, dtype="float64", architecture=named(case.model)
    )
    exact = np.array(network.forward(images.astype(np.float64)))
    share = LOSS_TOLERANCE if case.dtype == "float32" else LOSS_TOLERANCE**2
    return Scores(exact, np.full(exact.shape, share * np.abs(exact).max()))
