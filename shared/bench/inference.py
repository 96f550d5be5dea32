"""How many images a second a network can tell apart: `predict` on batches from a single image up.

A single image leaves most of a machine idle: the weights are read for one row, and what a call costs by itself is most
of its time. How fast the images per second grow with the batch says how much of that a stage has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shared.bench import pytorch
from shared.bench.gpu import NO_REFERENCE, waiter
from shared.bench.operations import first_of_each
from shared.bench.rows import BenchRow, product_bytes
from shared.bench.steps import Case
from shared.bench.timing import aligned, measure, stage_dtypes, times_as_fast
from shared.checks.tolerance import tolerance
from shared.contract import Stage, is_emulated, load_stage
from shared.initialize import initialize_parameters
from shared.machine.environment import usable_cores

LAYER_SIZES = (784, 128, 10)
BATCHES = (1, 8, 32, 64, 1024)
CALL_LIMIT = 0.5
"""Seconds; a batch that is expected to take longer is left out."""

NUMPY_STAGE, PYTORCH = "stage2_numpy", "pytorch"


class Scores(NamedTuple):
    """What the network says of each image, (images, classes), and how far rounding in the other dtype may move it."""

    exact: np.ndarray
    allowed: np.ndarray


def inference_rows(
    stages: Sequence[Stage],
    *,
    layer_sizes: Sequence[int] = LAYER_SIZES,
    batches: Sequence[int] = BATCHES,
    dtype: str = "float32",
    repeats: int = 9,
    group_limit: float = 4.0,
    call_limit: float = CALL_LIMIT,
    minimum_sample: float = 0.003,
    threads: int | None = None,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time predictions of every batch size, all contenders and sizes interleaved.

    In dtype stand the stages that compute in it, and PyTorch where `torch` is given; stage 1 stands in float64 with
    stage 2 beside it. A batch lies in the stage's own array before the clock runs; what comes out are classes.
    call_limit: seconds; a batch that is predicted to take longer, from the one before, is skipped with that reason.
    minimum_sample: seconds, as in `measure`; group_limit: its `limit`, for a dtype. threads: as in `ladder_rows`.
    The reference is stage 2 on the same batch, where it is among the stages; what is emulated is set beside nothing.
    Whoever predicts a class whose score is not the largest, up to rounding, is not timed.
    Raises ValueError for batches that are not whole numbers of at least 1.
    """
    if not batches or min(batches) < 1:
        raise ValueError(f"inference_rows: batches must be one or more sizes of at least 1; got {list(batches)}")
    threads = threads or usable_cores()
    sizes = sorted(set(batches))
    able = [stage for stage in stages if dtype in stage_dtypes(stage)]
    yield from _rows(able, layer_sizes, sizes, dtype, repeats, group_limit, call_limit, minimum_sample, threads, torch)
    if dtype != "float64" and any(stage.number == 1 for stage in stages):
        low = [stage for stage in stages if stage.number <= 2]
        limits = (group_limit, call_limit, minimum_sample)
        yield from _rows(low, layer_sizes, sizes, "float64", repeats, *limits, threads, None)


def _rows(
    stages: Sequence[Stage],
    layer_sizes: Sequence[int],
    batches: Sequence[int],
    dtype: str,
    repeats: int,
    group_limit: float,
    call_limit: float,
    minimum_sample: float,
    threads: int,
    torch: Any | None,
) -> Iterator[BenchRow]:
    parameters = [np.array(each, dtype) for each in initialize_parameters(layer_sizes, "he", 0)]
    images = aligned((batches[-1], layer_sizes[0]), dtype)
    images[...] = np.random.default_rng(0).random(images.shape)
    right = scores(parameters, images, dtype)
    emulated = {stage.name for stage in stages if is_emulated(stage.name)}
    calls = {stage.name: _of_stage(stage, parameters, images, batches, dtype) for stage in stages}
    if torch is not None:
        calls[PYTORCH] = _of_torch(torch, parameters, images, batches)
    timed: dict[tuple[str, int], Callable[[], object]] = {}
    skipped: dict[tuple[str, int], str] = {}
    for name, predict in calls.items():
        allowed, reasons = _worth_timing(predict, right, call_limit)
        timed |= {(name, batch): call for batch, call in allowed.items()}
        skipped |= {(name, batch): reason for batch, reason in reasons.items()}
    one_thread = {stage.name for stage in stages if stage.number == 1}
    uses = {name: 1 if name in one_thread else threads for name in calls}
    woken = first_of_each(timed, {name for name, count in uses.items() if count > 1} - emulated)
    waits = {stage.name: wait for stage in stages if (wait := waiter(stage)) is not None}
    measured = (
        measure(
            timed,
            repeats=repeats,
            limit=group_limit,
            minimum_sample=minimum_sample,
            threaded=woken,
            finish={key: waits[key[0]] for key in timed if key[0] in waits},
        )
        if timed
        else {}
    )
    for batch in batches:
        case = Case(layer_sizes, batch, dtype)
        products = [(batch, rows, columns) for rows, columns in pairwise(layer_sizes)]
        opponents = {label: (label, batch) for label in (NUMPY_STAGE, PYTORCH)}
        for name in calls:
            key = (name, batch)
            result = measured.get(key)
            compared = result if name not in emulated else None
            reference = measured.get((NUMPY_STAGE, batch))
            yield BenchRow(
                "inference",
                name,
                case.name,
                dtype,
                tuple(layer_sizes),
                2 * sum(m * k * n for m, k, n in products),
                result,
                NO_REFERENCE if name in emulated else f"stage 2, {dtype}" if reference else "",
                compared.median / reference.median if compared and reference else None,
                skipped.get(key),
                bytes=sum(product_bytes(m, k, n, dtype) for m, k, n in products),
                samples=batch,
                threads=uses[name],
                against=times_as_fast(measured, key, opponents) if compared else {},
                emulated=name in emulated,
            )


def _of_stage(
    stage: Stage, parameters: Sequence[np.ndarray], images: np.ndarray, batches: Sequence[int], dtype: str
) -> dict[int, Callable[[], Any]]:
    """Batch size -> a call that predicts the classes of so many images."""
    own = [stage.arrays.asarray(each, dtype) for each in parameters]
    network = stage.network.Network.from_parameters(own, dtype=dtype)
    return {batch: partial(network.predict, stage.arrays.asarray(images[:batch], dtype)) for batch in batches}


def _of_torch(
    torch: Any, parameters: Sequence[np.ndarray], images: np.ndarray, batches: Sequence[int]
) -> dict[int, Callable[[], Any]]:
    model = pytorch.network(torch, parameters)

    @torch.inference_mode()
    def predict(x: Any) -> Any:
        return model(x).argmax(dim=1)

    return {batch: partial(predict, torch.from_numpy(images[:batch])) for batch in batches}


def _worth_timing(
    calls: dict[int, Callable[[], Any]], right: Scores, call_limit: float
) -> tuple[dict[int, Callable[[], Any]], dict[int, str]]:
    """(the calls that are right and fast enough; why the others are not timed), for batches that grow."""
    timed: dict[int, Callable[[], Any]] = {}
    skipped: dict[int, str] = {}
    seconds_for_one = 0.0
    for batch, call in calls.items():
        predicted = seconds_for_one * batch
        if predicted > call_limit:
            skipped[batch] = f"one call would take about {predicted:.1f} s; the limit is {call_limit:g} s"
            continue
        wrong = _wrong_class(np.asarray(call()), batch, right)
        begin = time.perf_counter()
        call()  # the second call, since the first one may compile or allocate
        seconds_for_one = (time.perf_counter() - begin) / batch
        if wrong is None:
            timed[batch] = call
        else:
            skipped[batch] = wrong
    return timed, skipped


def _wrong_class(classes: np.ndarray, images: int, right: Scores) -> str | None:
    """The first image whose predicted class has a score below the largest by more than rounding explains."""
    columns = right.exact.shape[1]
    if classes.shape != (images,) or not all(0 <= each < columns for each in classes):
        return f"it does not predict one of {columns} classes for each of {images} images; not timed"
    for image, (predicted, exact, allowed) in enumerate(zip(classes, right.exact, right.allowed, strict=False)):
        best = int(exact.argmax())
        if exact[best] - exact[predicted] > allowed[best] + allowed[predicted]:
            return (
                f"it predicts class {int(predicted)} for image {image}, whose score is {exact[predicted]:.7g}, "
                f"but class {best} has {exact[best]:.7g}; not timed"
            )
    return None


def scores(parameters: Sequence[np.ndarray], images: np.ndarray, dtype: str) -> Scores:
    """Stage 2's outputs in float64 for these parameters and images, and what rounding in dtype may change about them.

    The tolerance follows shared.checks.tolerance: the size of all that is summed on the way through the layers, which
    is what they would give with every minus made a plus, and as many terms as are added up.
    """
    exact = load_stage(NUMPY_STAGE).network.Network.from_parameters(parameters, dtype="float64").forward(images)
    size = np.abs(np.asarray(images, np.float64))
    for weights, bias in zip(parameters[::2], parameters[1::2], strict=True):
        size = size @ np.abs(weights).astype(np.float64) + np.abs(bias)
    return Scores(exact, tolerance(dtype, sum(len(weights) + 1 for weights in parameters[::2]), size))
