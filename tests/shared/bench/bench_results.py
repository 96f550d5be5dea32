"""Results as a whole run leaves them, made up but of the right size, for the tests of charts, page and comparison.

`full_results` is a machine of two cores with all that a CPU can measure, stage 4 emulated; `gpu_results` is one with a
GPU beside them; `tiny_results` is what an interrupted quick run of two stages left. `only` cuts down any of them. The
speeds are those of real machines, rounded; nothing here was measured.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from shared.bench.measuring.gpu import NO_REFERENCE
from shared.bench.measuring.rows import BenchRow, Curve, product_bytes
from shared.bench.measuring.timing import Measurement
from shared.bench.records.document import Results
from tests.shared.bench.bench_numbers import (
    CPU_STAGES,
    CUBLAS,
    ENVIRONMENT,
    FOUR,
    GPU_FACTS,
    GPU_LADDER,
    GPU_PEAK,
    GPU_SIZES,
    LADDERS,
    NETWORK,
    NUMPY_SPEED,
    ONE,
    OPS,
    PARTS,
    PEAK,
    STEP,
    STEP_FLOPS,
    THREE,
    TWO,
)


def full_results() -> Results:
    """Every kind of row for stages 1 to 3 and the libraries, the rows that matter of an emulated stage 4, curves."""
    rows = [
        *_machine(),
        *_ladders(),
        *_products(),
        *_convolutions(),
        *_ops(),
        *_steps(),
        *_parts(),
        *_inference(),
        *_training(),
    ]
    rows += [*_memory(), *_phases()]
    return Results(
        rows=[*rows, *_emulated()],
        curves=_curves(),
        environment=ENVIRONMENT,
        passes=3,
        unavailable={"cuBLAS": "no GPU was found"},
        predictions=[
            {"question": "NumPy beside pure Python, 128³", "unit": "times", "guess": 100.0, "measured": 829.0},
            {"question": "C beside NumPy, 512³", "unit": "times", "guess": None, "measured": 1.1},
        ],
        command="groundup bench",
    )


def gpu_results() -> Results:
    """The same with a GPU: stage 4's rows are its own times, by its own clock."""
    full = full_results()
    return replace(
        full,
        rows=[row for row in full.rows if not row.emulated] + list(_gpu()),
        curves=[replace(curve, emulated=False) for curve in full.curves] + [_gpu_curve(full.curves)],
        environment=ENVIRONMENT | {"stage4_numba_cuda": GPU_FACTS},
        unavailable={},
    )


def tiny_results() -> Results:
    """What a quick run of stages 2 and 3, interrupted early, left: one pass, some rungs and a step, no noise."""
    rows = [row for row in [*_ladders(), *_steps()] if row.stage in (TWO, THREE) and row.dtype == "float32"]
    few = [row for row in rows if row.kind == "step" or row.shape[0] <= 128]
    return Results(
        rows=[replace(row, ratio_noise=None, against_noise={}, passes=1) for row in few],
        curves=[],
        environment=ENVIRONMENT | {"pytorch": None, "stage4_numba_cuda": {}},
        complete=False,
        quick=True,
        unavailable={"pytorch": "PyTorch is not installed"},
        command="groundup bench --quick --stages 2,3",
    )


def only(results: Results, *, stages: Collection[str] | None = None, kinds: Collection[str] | None = None) -> Results:
    """The same results with the rows and curves of these stages (and libraries) and the rows of these kinds alone."""
    rows = [
        row for row in results.rows if (stages is None or row.stage in stages) and (kinds is None or row.kind in kinds)
    ]
    return replace(
        results, rows=rows, curves=[curve for curve in results.curves if stages is None or curve.stage in stages]
    )


def timed(seconds: float, spread: float = 0.02) -> Measurement:
    """A measurement with this median and this distance between the quartiles, as a share of it."""
    lower, upper = seconds * (1 - spread / 2), seconds * (1 + spread / 2)
    return Measurement(seconds, lower, upper, lower * 0.98, 45, 1, True)


def _machine() -> Iterator[BenchRow]:
    for dtype, peak in PEAK.items():
        flops = 51_200_000
        yield BenchRow("peak", THREE, "registers only", dtype, (), flops, timed(flops / peak), "", 1.004, peak=peak)
    for size, speed in ((24 << 10, 210.0), (768 << 10, 92.0), (12 << 20, 48.0), (768 << 20, 21.5)):
        yield BenchRow(
            "bandwidth", THREE, "triad", "float64", (size,), 2 * size // 24, timed(size / speed / 1e9), bytes=size,
            threads=2,
        )  # fmt: skip


def _ladders() -> Iterator[BenchRow]:
    for stage, rungs in LADDERS.items():
        for rung, dtypes in rungs.items():
            threads = 2 if rung in ("at_operator", "threads") else 1
            for dtype, speeds in dtypes.items():
                for size, speed in speeds.items():
                    yield _product(
                        "ladder", stage, rung, dtype, (size,) * 3, speed, NUMPY_SPEED[dtype][size],
                        threads=threads, peak=PEAK[dtype] * threads,
                    )  # fmt: skip
    shape = (2048,) * 3
    slow = "one call would take about 5.9 s; the limit is 1 s"
    yield BenchRow("ladder", THREE, "ijk", "float64", shape, 2 * 2048**3, skipped=slow, bytes=product_bytes(*shape, "float64"))  # fmt: skip  # noqa: E501


def _product(
    kind: str, stage: str, name: str, dtype: str, shape: tuple[int, int, int], speed: float, reference: float,
    **more: Any,
) -> BenchRow:  # fmt: skip
    """A product at `speed` GFLOP/s beside NumPy at `reference`."""
    flops = 2 * math.prod(shape)
    return BenchRow(
        kind, stage, name, dtype, shape, flops, timed(flops / speed / 1e9), f"NumPy a @ b, {dtype}", reference / speed,
        bytes=product_bytes(*shape, dtype), ratio_noise=0.03, passes=3, **more,
    )  # fmt: skip


def _products() -> Iterator[BenchRow]:
    speeds = {
        ("xW 64x784x128", (64, 784, 128)): (160.7, 159.4, 202.4, 107.4, 172.9),
        ("xᵀg 784x64x128", (784, 64, 128)): (184.0, 179.5, 182.0, None, 181.9),
        ("gWᵀ 64x128x784", (64, 128, 784)): (136.7, 134.2, 174.3, None, 142.4),
        ("ab 512³", (512, 512, 512)): (202.8, 200.4, 215.7, 110.9, 189.7),
        ("ab 1024³", (1024, 1024, 1024)): (205.3, 207.4, 217.9, 109.6, 197.6),
    }
    who = (("numpy", ""), (TWO, ""), (THREE, ""), (THREE, "packed"), ("pytorch", ""))
    for (name, shape), values in speeds.items():
        for (stage, variant), speed in zip(who, values, strict=True):
            if speed is not None:
                threads = 1 if variant else 2
                opponents = {"numpy": values[0], "pytorch": values[4]}
                against = {other: speed / value for other, value in opponents.items() if other != stage and value}
                yield _product(
                    "product", stage, name, "float32", shape, speed, values[0] or 1.0, variant=variant,
                    threads=threads, peak=PEAK["float32"] * threads, against=against,
                    against_noise=dict.fromkeys(against, 0.04),
                )  # fmt: skip


def _convolutions() -> Iterator[BenchRow]:
    rungs = {
        (ONE, "float64"): {"seven_loops": 0.003, "im2col": 0.013},
        (TWO, "float32"): {"sliding_einsum": 0.36, "im2col_in_cache": 10.2},
        (THREE, "float32"): {"direct": 0.67, "implicit": 60.8, "winograd4": 95.0, "threads": 180.0},
        ("pytorch", "float32"): {"": 120.5},
    }
    forms = {
        "6x14x14 by 16 of 5x5": ((6, 14, 14, 16, 5, 5), 100),
        "64x13x13 by 128 of 3x3": ((64, 13, 13, 128, 3, 3), 121),
    }
    for name, (shape, places) in forms.items():
        for (stage, dtype), speeds in rungs.items():
            batch = 1 if stage == ONE else 32
            flops = 2 * batch * places * shape[0] * shape[3] * shape[4] * shape[5]
            for rung, speed in speeds.items():
                threads = 2 if rung in ("threads", "") else 1
                yield BenchRow(
                    "convolution", stage, f"{name}, batch {batch}", dtype, (batch, *shape), flops,
                    timed(flops / speed / 1e9), variant=rung, part="forward", samples=batch, threads=threads,
                    peak=None if stage == ONE else PEAK[dtype] * threads,
                )  # fmt: skip


def _ops() -> Iterator[BenchRow]:
    for (name, part), seconds in OPS.items():
        for stage, time in zip(CPU_STAGES, seconds, strict=False):
            dtype = "float64" if stage == ONE else "float32"
            yield BenchRow(
                "op", stage, name, dtype, (64, 128), 64 * 128, timed(time, 0.05), f"stage 2, {dtype}",
                time / seconds[1], part=part, bytes=2 * 64 * 128 * 4, ratio_noise=0.06,
                against={} if stage == TWO else {TWO: seconds[1] / time}, passes=3,
            )  # fmt: skip
        if name in ("relu", "sigmoid", "tanh", "dense"):
            yield BenchRow(
                "op", "pytorch", name, "float32", (64, 128), 64 * 128, timed(seconds[1] * 0.9, 0.05),
                "stage 2, float32", 0.9, part=part, ratio_noise=0.06, threads=2, against={TWO: 1 / 0.9}, passes=3,
            )  # fmt: skip


def _steps() -> Iterator[BenchRow]:
    cases: dict[tuple[str, str], dict[tuple[str, str], float]] = {
        ("784-128-10, batch 64", "float64"): {
            (ONE, ""): 384e-3, (TWO, ""): 815e-6, (THREE, "op_by_op"): 652e-6, (THREE, "one_call"): 350e-6,
            ("pytorch", ""): 866e-6,
        },
        ("784-128-10, batch 64", "float32"): {
            (TWO, ""): 496e-6, (THREE, "op_by_op"): 323e-6, (THREE, "fused"): 306e-6, (THREE, "one_call"): 181e-6,
            ("pytorch", ""): 620e-6,
        },
        ("784-512-10, batch 256", "float32"): {
            (TWO, ""): 4160e-6, (THREE, "op_by_op"): 2600e-6, (THREE, "fused"): 2591e-6, (THREE, "one_call"): 2336e-6,
            ("pytorch", ""): 3530e-6,
        },
    }  # fmt: skip
    for (name, dtype), contenders in cases.items():
        sizes, _, batch = name.partition(", batch ")
        shape = tuple(map(int, sizes.split("-")))
        flops = STEP_FLOPS if shape == NETWORK else 2 * 256 * (784 * 512 * 2 + 512 * 10 * 3)
        opponents = {other: contenders[other, ""] for other in (TWO, "pytorch")}
        for (stage, variant), time in contenders.items():
            against = {other: seconds / time for other, seconds in opponents.items() if other != stage}
            yield BenchRow(
                "step", stage, name, dtype, shape, flops, timed(time), f"its matrix products alone, {dtype}",
                time / (flops / 180e9), variant=variant, samples=int(batch), threads=1 if stage == ONE else 2,
                against=against, against_noise=dict.fromkeys(against, 0.04), ratio_noise=0.03, passes=3,
            )  # fmt: skip


def _parts(stages: Collection[str] = CPU_STAGES) -> Iterator[BenchRow]:
    for place, stage in enumerate((*CPU_STAGES, FOUR)):
        if stage in stages:
            for part, seconds in PARTS.items():
                yield BenchRow(
                    "part", stage, STEP, "float64" if stage == ONE else "float32", NETWORK, 0,
                    timed(seconds[place], 0.04), part=part, samples=64, passes=3,
                    clock="events" if stage == FOUR else "wall",
                )  # fmt: skip


def _inference() -> Iterator[BenchRow]:
    seconds = {
        ONE: (2.9e-3, 23e-3, 91e-3, 180e-3, None),
        TWO: (11e-6, 31e-6, 66e-6, 96e-6, 1.22e-3),
        THREE: (7.9e-6, 17e-6, 42e-6, 65e-6, 0.97e-3),
        "pytorch": (31e-6, 46e-6, 78e-6, 118e-6, 1.31e-3),
    }
    for stage, times in seconds.items():
        for batch, time in zip((1, 8, 32, 64, 1024), times, strict=True):
            if time is not None:
                yield _inferred(stage, batch, time)


def _inferred(stage: str, batch: int, time: float, **more: Any) -> BenchRow:
    return BenchRow(
        "inference", stage, f"784-128-10, batch {batch}", "float64" if stage == ONE else "float32", NETWORK,
        2 * batch * (784 * 128 + 1280), timed(time, 0.05), samples=batch, threads=1 if stage == ONE else 2, passes=3,
        **more,
    )  # fmt: skip


def _training() -> Iterator[BenchRow]:
    times = {TWO: 0.526, THREE: 0.214, "pytorch": 0.5}
    for stage, time in times.items():
        yield _epoch(stage, "mnist", "float32", time, 0.9325)
    for stage, time in {ONE: 26.0, TWO: 0.068, THREE: 0.031, "pytorch": 0.074}.items():
        yield _epoch(stage, "mnist-subset", "float64", time, 0.8475)
    for stage, time in {TWO: 2.63, THREE: 1.07, "pytorch": 2.5}.items():
        yield BenchRow(
            "target", stage, "97 % on mnist, 784-128-10", "float32", NETWORK, 0, timed(time, 0.03), threads=2,
            accuracy=0.97, against={} if stage == TWO else {TWO: 2.63 / time}, passes=3,
        )  # fmt: skip


def _epoch(stage: str, dataset: str, dtype: str, time: float, accuracy: float, **more: Any) -> BenchRow:
    samples = 60_000 if dataset == "mnist" else 5_000
    base = 0.526 if dataset == "mnist" else 0.068
    return BenchRow(
        "epoch", stage, f"{STEP}, {dataset}", dtype, NETWORK, STEP_FLOPS * samples // 64, timed(time, 0.03),
        "the epoch of stage2_numpy", time / base, samples=samples, threads=1 if stage == ONE else 2,
        accuracy=accuracy, ratio_noise=0.04, passes=3, against={} if stage == TWO else {TWO: base / time}, **more,
    )  # fmt: skip


def _memory() -> Iterator[BenchRow]:
    for stage, size in {ONE: 61 << 20, TWO: 5 << 20, THREE: 3 << 20, "pytorch": 148 << 20}.items():
        yield BenchRow("memory", stage, STEP, "float32", NETWORK, memory=size, passes=3)


def _phases() -> Iterator[BenchRow]:
    phases = {
        TWO: {"import": 0.118, "compute": 1.34e-3},
        THREE: {"import": 0.131, "compile": 2.9, "compute": 1.21e-3},
        "pytorch": {"import": 1.43, "compute": 1.41e-3},
    }
    for stage, parts in phases.items():
        for part, time in parts.items():
            yield _phase(stage, part, time, 512)


def _phase(stage: str, part: str, time: float, size: int, **more: Any) -> BenchRow:
    moved = {"copy in": 2 * size * size * 4, "copy out": size * size * 4}.get(part, 0)
    flops = 2 * size**3 if part == "compute" else 0
    return BenchRow(
        "phase", stage, f"product {size}³", "float32", (size,) * 3, flops, timed(time, 0.04), part=part, bytes=moved,
        passes=3, **more,
    )  # fmt: skip


def _curves() -> list[Curve]:
    """MNIST on what is fast enough, the subset on every stage, the last one emulated."""
    found = []
    for dataset, stages, epochs, last, per_epoch in (
        ("mnist", (TWO, THREE, "pytorch"), 8, 0.9775, {TWO: 0.526, THREE: 0.214, "pytorch": 0.5}),
        ("mnist-subset", (*CPU_STAGES, FOUR), 10, 0.9130, {ONE: 26.0, TWO: 0.068, THREE: 0.031, FOUR: 1.9}),
    ):
        numbers = list(range(1, epochs + 1))
        accuracy = [round(last - 0.055 * math.exp(-0.55 * (epoch - 1)), 4) for epoch in numbers]
        loss = [round(0.05 + 0.42 * math.exp(-0.5 * (epoch - 1)), 4) for epoch in numbers]
        for stage in stages:
            # PyTorch and float32 round otherwise: one image of 10,000 or so.
            own = [round(value + (0.0003 if stage == "pytorch" else 0.0), 4) for value in accuracy]
            seconds = [per_epoch[stage] * epoch for epoch in numbers]
            found.append(
                Curve(stage, "784-128-10", dataset, numbers, loss, own, seconds, threads=2, emulated=stage == FOUR)
            )
    return found


def _gpu_curve(curves: Sequence[Curve]) -> Curve:
    numpy = next(curve for curve in curves if (curve.stage, curve.dataset) == (TWO, "mnist"))
    return replace(numpy, stage=FOUR, seconds=[0.094 * epoch for epoch in numpy.epochs])


def _emulated() -> Iterator[BenchRow]:
    """Emulated rows of every kind of speed: whatever shows them by default is wrong."""
    more: dict[str, Any] = {"emulated": True, "reference": NO_REFERENCE, "threads": 2, "passes": 3}
    for rung in GPU_LADDER:
        for size in (64, 128, 256):
            flops, shape = 2 * size**3, (size,) * 3
            yield BenchRow(
                "ladder", FOUR, rung, "float32", shape, flops, timed(flops / 0.09e9),
                bytes=product_bytes(*shape, "float32"), **more,
            )  # fmt: skip
    yield BenchRow("step", FOUR, STEP, "float32", NETWORK, STEP_FLOPS, timed(0.31), variant="graph", samples=64, **more)
    for part, seconds in PARTS.items():
        yield BenchRow("part", FOUR, STEP, "float32", NETWORK, 0, timed(2000 * seconds[3]), part=part, **more)
    for (name, part), times in OPS.items():
        yield BenchRow("op", FOUR, name, "float32", (64, 128), 64 * 128, timed(1000 * times[3]), part=part, **more)
    yield BenchRow("inference", FOUR, STEP, "float32", NETWORK, 1, timed(0.09), samples=64, **more)
    yield BenchRow(
        "epoch", FOUR, f"{STEP}, mnist-subset", "float64", NETWORK, 1, timed(1.9), accuracy=0.8475, samples=5000, **more
    )
    yield BenchRow("memory", FOUR, STEP, "float32", NETWORK, memory=77 << 20, **more)
    for part, seconds in {"import": 0.9, "compile": 11.0, "copy in": 1e-4, "compute": 0.4, "copy out": 1e-4}.items():
        yield BenchRow("phase", FOUR, "product 512³", "float32", (512,) * 3, 0, timed(seconds), part=part, **more)


def _gpu() -> Iterator[BenchRow]:
    events: dict[str, Any] = {"clock": "events", "passes": 3}
    for dtype, peak in GPU_PEAK.items():
        flops = 10**11
        yield BenchRow("peak", FOUR, "registers only", dtype, (), flops, timed(flops / peak), peak=peak, **events)
    for size, speed in ((24 << 20, 5400.0), (3 << 30, 3010.0)):
        yield BenchRow("bandwidth", FOUR, "triad", "float32", (size,), size // 6, timed(size / speed / 1e9), bytes=size, **events)  # fmt: skip  # noqa: E501
    for rung, speeds in GPU_LADDER.items():
        for size, speed in zip(GPU_SIZES, speeds, strict=True):
            flops, shape = 2 * size**3, (size,) * 3
            yield BenchRow(
                "ladder", FOUR, rung, "float32", shape, flops, timed(flops / speed / 1e9),
                "cuBLAS through PyTorch 2.13.0, float32", CUBLAS[size] / speed, ratio_noise=0.02,
                bytes=product_bytes(*shape, "float32"), **events,
            )  # fmt: skip
    for part in _parts((FOUR,)):
        yield part
    for (name, part), times in OPS.items():
        yield BenchRow(
            "op", FOUR, name, "float32", (64, 128), 64 * 128, timed(times[3], 0.05), "stage 2, float32",
            times[3] / times[1], part=part, ratio_noise=0.06, against={TWO: times[1] / times[3]}, **events,
        )  # fmt: skip
    for variant, time in {"eager": 210e-6, "graph": 88e-6}.items():
        yield BenchRow(
            "step", FOUR, STEP, "float32", NETWORK, STEP_FLOPS, timed(time), "its matrix products alone", 0.5,
            variant=variant, samples=64, against={TWO: 496e-6 / time, "pytorch": 620e-6 / time},
            against_noise={TWO: 0.04, "pytorch": 0.04}, **events,
        )  # fmt: skip
    for batch, time in zip((1, 8, 32, 64, 1024), (42e-6, 43e-6, 44e-6, 46e-6, 71e-6), strict=True):
        yield _inferred(FOUR, batch, time, clock="events")
    yield _epoch(FOUR, "mnist", "float32", 0.094, 0.9325, clock="events")
    yield _epoch(FOUR, "mnist-subset", "float64", 0.0112, 0.8475, clock="events")
    yield BenchRow(
        "target", FOUR, "97 % on mnist, 784-128-10", "float32", NETWORK, 0, timed(0.47, 0.03), accuracy=0.97,
        against={TWO: 2.63 / 0.47}, passes=3,
    )  # fmt: skip
    yield BenchRow("memory", FOUR, STEP, "float32", NETWORK, memory=9 << 20, passes=3)
    for size, times in {
        512: {"import": 0.94, "compile": 1.9, "copy in": 0.21e-3, "compute": 42e-6, "copy out": 0.13e-3},
        2048: {"import": 0.94, "compile": 1.9, "copy in": 2.9e-3, "compute": 411e-6, "copy out": 1.6e-3},
    }.items():
        for part, time in times.items():
            yield _phase(FOUR, part, time, size, clock="wall" if part in ("import", "compile") else "events")
