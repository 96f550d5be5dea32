"""The learner's guess before each measurement: people remember a number better if they guessed it first.

Every question asks for a factor. The error of a guess is a factor, too: if 100 was measured, guesses of 50 and of 200
are equally far off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from shared.bench.measuring.rows import BenchRow
from shared.numbers import two_digits

Rows = Sequence[BenchRow]
MOST = 1e9
"""Guesses beyond this are slips of the finger."""


class Question(NamedTuple):
    """job: the title of the job that measures the answer. unit: what the factor counts. measured: rows -> the answer,
    None where they do not hold it."""

    job: str
    text: str
    unit: str
    measured: Callable[[Rows], float | None]


def questions(job: str) -> list[Question]:
    """The questions that a job of this title answers, in their order."""
    return [question for question in QUESTIONS if question.job == job]


def parse(text: str) -> float | None:
    """A guess as people type it: '20', '1,5', '300x', '12 times', '1e3'; None for an empty line.

    Raises ValueError for anything that is not a positive number.
    """
    cleaned = text.strip().lower().removesuffix("times").rstrip("x\u00d7").strip()
    if not cleaned:
        return None
    try:
        value = float(cleaned.replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST:
        raise ValueError(f"expected a factor like 20 or 1.5, got {text.strip()!r}")
    return value


def verdict(guess: float | None, measured: float | None) -> str:
    """Guess beside result, in words: '187 times; you said 20: too low by a factor of 9.4'."""
    if measured is None:
        return "not measured here"
    said = f"{two_digits(measured)} times"
    if guess is None:
        return said
    off = guess / measured
    if max(off, 1 / off) < 1.25:
        return f"{said}; you said {two_digits(guess)}: within a quarter of it"
    direction = "high" if off > 1 else "low"
    return f"{said}; you said {two_digits(guess)}: too {direction} by a factor of {two_digits(max(off, 1 / off))}"


def _seconds(rows: Rows, kind: str, stage: str, **fields: object) -> dict[tuple[int, ...], float]:
    """shape -> median seconds of the fastest of the rows that have these fields."""
    found: dict[tuple[int, ...], float] = {}
    for row in rows:
        fits = all(getattr(row, name) == value for name, value in fields.items())
        if row.kind == kind and row.stage == stage and fits and row.seconds and not row.emulated:
            found[row.shape] = min(row.seconds, found.get(row.shape, math.inf))
    return found


def _factor(slow: dict[tuple[int, ...], float], fast: dict[tuple[int, ...], float]) -> float | None:
    """The time of the first divided by the time of the second, at the largest shape that both were measured at."""
    common = set(slow) & set(fast)
    return slow[max(common)] / fast[max(common)] if common else None


def _ladder(rows: Rows, slow: tuple[str, str | None], fast: tuple[str, str | None], dtype: str) -> float | None:
    """Stage and rung against stage and rung; a rung of None is the stage's fastest."""

    def times(stage: str, rung: str | None) -> dict[tuple[int, ...], float]:
        return _seconds(rows, "ladder", stage, dtype=dtype, **({"name": rung} if rung else {}))

    return _factor(times(*slow), times(*fast))


def _convolution(rows: Rows, stage: str) -> float | None:
    """The last rung against the first one of a stage, forward, at the largest shape that both were measured at."""
    mine = [row for row in rows if row.kind == "convolution" and row.stage == stage and row.part == "forward"]
    rungs = list(dict.fromkeys(row.variant for row in mine))
    if len(rungs) < 2:
        return None
    slow, fast = (
        {(row.flops, *row.shape): row.seconds for row in mine if row.variant == rung and row.seconds}
        for rung in (rungs[0], rungs[-1])
    )
    return _factor(slow, fast)


def _eight_bits(rows: Rows) -> float | None:
    """Float32's fastest rung on one thread against the integers', at the largest shape that both were measured at."""
    floats = _seconds(rows, "integer", C, dtype="float32", threads=1)
    return _factor(floats, _seconds(rows, "integer", C, dtype="int8", threads=1))


def _first_rung(rows: Rows, stage: str) -> str | None:
    return next((row.name for row in rows if row.kind == "ladder" and row.stage == stage), None)


def _stages(kind: str, slow: str, fast: str, **fields: object) -> Callable[[Rows], float | None]:
    return lambda rows: _factor(_seconds(rows, kind, slow, **fields), _seconds(rows, kind, fast, **fields))


def _throughput(stage: str, few: int, many: int) -> Callable[[Rows], float | None]:
    def measured(rows: Rows) -> float | None:
        speeds = {
            row.samples: row.samples_per_second
            for row in rows
            if row.kind == "inference" and row.stage == stage and row.dtype == "float32" and not row.emulated
        }
        slow, fast = speeds.get(few), speeds.get(many)
        return fast / slow if slow and fast else None

    return measured


def _bandwidth(rows: Rows) -> float | None:
    """Bandwidth of the cache closest to the core divided by the bandwidth of main memory, on one thread."""
    found = sorted(
        (row.shape[0], row.gigabytes)
        for row in rows
        if row.kind == "bandwidth" and row.stage == C and row.threads == 1 and row.dtype == "float32" and row.gigabytes
    )
    return found[0][1] / found[-1][1] if len(found) > 1 and found[0][1] and found[-1][1] else None


def _parts(slow: str, fast: str) -> Callable[[Rows], float | None]:
    def measured(rows: Rows) -> float | None:
        times = {part: _seconds(rows, "part", NUMPY, part=part, dtype="float32") for part in (slow, fast)}
        return _factor(times[slow], times[fast])

    return measured


def _compiling(rows: Rows) -> float | None:
    """The time to compile the C divided by the time to load the compiled library."""
    times = {row.part: row.seconds for row in rows if row.kind == "phase" and row.stage == C and row.seconds}
    compiling, loading = times.get("compile"), times.get("import")
    return compiling / loading if compiling and loading else None


def _memory(rows: Rows) -> float | None:
    held = sorted(
        (row.samples, row.memory) for row in rows if row.kind == "memory" and row.stage == NUMPY and row.memory
    )
    return held[-1][1] / held[0][1] if len(held) > 1 and held[0][1] and held[-1][1] else None


PYTHON, NUMPY, C = "stage1_pure_python", "stage2_numpy", "stage3_c"

QUESTIONS = (
    Question(
        "the machine's roofs",
        "One core adding two arrays: how many times as many bytes a second does its first cache give as main memory?",
        "times as many",
        _bandwidth,
    ),
    Question(
        "matmul ladders",
        "Pure Python, its largest product: how many times as fast as three nested loops is the last rung?",
        "times as fast",
        lambda rows: _ladder(rows, (PYTHON, _first_rung(rows, PYTHON)), (PYTHON, None), "float64"),
    ),
    Question(
        "matmul ladders",
        "The same product: how many times as fast as the best of pure Python is the best of NumPy?",
        "times as fast",
        lambda rows: _ladder(rows, (PYTHON, None), (NUMPY, None), "float64"),
    ),
    Question(
        "matmul ladders",
        "C, the largest product: how many times as fast as three nested loops is the last rung, all threads together?",
        "times as fast",
        lambda rows: _ladder(rows, (C, _first_rung(rows, C)), (C, None), "float32"),
    ),
    Question(
        "the network's products",
        "The first layer's product, 64 by 784 times 784 by 128: how many times as fast as NumPy's a @ b is our C?",
        "times as fast",
        _stages("product", "numpy", C, name="xW 64x784x128"),
    ),
    Question(
        "convolutions",
        "C, the largest convolution: how many times as fast as seven loops is the last rung of its ladder?",
        "times as fast",
        lambda rows: _convolution(rows, C),
    ),
    Question(
        "products of eight bits",
        "C, 1,024 by 1,024 numbers, on one core: how many times as fast as float32 is eight bits, by the best rung?",
        "times as fast",
        _eight_bits,
    ),
    Question(
        "operations",
        "ReLU of 64 by 128 numbers: how many times as fast as a loop in Python is NumPy?",
        "times as fast",
        _stages("op", PYTHON, NUMPY, name="relu", part="forward", dtype="float64"),
    ),
    Question(
        "training steps",
        "One training step of 784-32-10 on 64 images: how many times as fast as pure Python is NumPy?",
        "times as fast",
        _stages("step", PYTHON, NUMPY, dtype="float64"),
    ),
    Question(
        "training steps",
        "One training step of 784-128-10 on 64 images: how many times as fast as NumPy is a single call of C?",
        "times as fast",
        _stages("step", NUMPY, C, dtype="float32", name="784-128-10, batch 64"),
    ),
    Question(
        "where a step's time goes",
        "NumPy, a step of 784-128-10 on 64 images: how many times as long as ReLU takes the first layer's product?",
        "times as long",
        _parts("dense 1 forward", "relu forward"),
    ),
    Question(
        "inference",
        "NumPy, predictions: how many times as many images a second at batches of 1,024 as one image at a time?",
        "times as many",
        _throughput(NUMPY, 1, 1024),
    ),
    Question(
        "training on the bundled images",
        "An epoch of training: how many times as fast as pure Python is C?",
        "times as fast",
        _stages("epoch", PYTHON, C),
    ),
    Question(
        "training on MNIST",
        "Training on MNIST until 97 % of the test images are right: how many times as fast as NumPy is C?",
        "times as fast",
        _stages("target", NUMPY, C),
    ),
    Question(
        "memory",
        "NumPy: how many times as much memory does a training step need for 4,096 images as for 64?",
        "times as much",
        _memory,
    ),
    Question(
        "copies and compilers",
        "C: how many times as long as importing a stage that was compiled before takes compiling it?",
        "times as long",
        _compiling,
    ),
)
