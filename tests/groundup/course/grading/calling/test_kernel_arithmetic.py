"""Float64 in a kernel of float32: found without compiling, with its line and where it comes from."""

import math
from typing import Any

import numpy as np
import pytest
from numba import float64

from cuda_emulator import cuda
from groundup.course.checks.check import Tally, Wrong
from groundup.course.grading.calling.kernel_arithmetic import AtMost, counted, only_float32
from groundup.course.grading.calling.kernel_launches import Launch, Out, backend, random

pytestmark = pytest.mark.skipif(backend() != "emulator", reason="types are seen on the emulator only")

HALF = 0.5


@cuda.jit
def bare_zero(values, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0.0
        total += values[i]
        out[i] = total


@cuda.jit
def whole_zero(values, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        total += values[i]
        out[i] = total


@cuda.jit
def literal(values, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = values[i] * 2.0


@cuda.jit
def meets_int(values, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = values[i] / out.size


@cuda.jit
def largest_with_int(values, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = max(values[i], 0)


@cuda.jit
def asked_for(values, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = float64(values[i]) * values[i]


@cuda.jit
def shared_float64(values, out):
    partial = cuda.shared.array(8, float64)
    i = cuda.threadIdx.x
    partial[i] = values[i]
    cuda.syncthreads()
    out[i] = partial[i] + partial[0]


@cuda.jit(device=True)
def half_of(value):
    return value * 0.5


@cuda.jit
def in_a_function(values, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = half_of(values[i])


@pytest.mark.parametrize(
    ("kernel", "line", "cause"),
    [
        (bare_zero, "total += values[i]", "total begins as 0.0"),
        (whole_zero, "total += values[i]", "total begins as 0 "),
        (literal, "out[i] = values[i] * 2.0", "a bare 1.0 is a float64"),
        (meets_int, "out[i] = values[i] / out.size", "where a float32 meets a whole number"),
        (largest_with_int, "out[i] = max(values[i], 0)", "where a float32 meets a whole number"),
        (asked_for, "out[i] = float64(values[i]) * values[i]", "float64 is asked for in this line"),
        (shared_float64, "out[i] = partial[i] + partial[0]", "partial is made of float64"),
        (in_a_function, "return value * 0.5", "a bare 1.0 is a float64"),
    ],
)
def test_float64_in_a_kernel_of_float32_is_told_with_its_line_and_its_cause(kernel: Any, line: str, cause: str) -> None:
    check = only_float32(kernel, Launch(1, 8), lambda rng: (random(rng, 8), Out((8,))))
    with pytest.raises(Wrong) as raised:
        check(Tally())
    assert raised.value.what.endswith(f"computes in float64: {line}")
    assert cause in raised.value.cause


def test_a_remark_passes_and_notes_the_line() -> None:
    notes: list[str] = []
    check = only_float32(literal, Launch(1, 8), lambda rng: (random(rng, 8), Out((8,))), remark=True)
    check(Tally(lambda event, text: notes.append(text)))
    assert any("computes in float64: out[i] = values[i] * 2.0" in note for note in notes)


@cuda.jit
def typed(values, out):
    """Right: literals that are converted, constants that cost nothing, and whole numbers among themselves."""
    i = cuda.grid(1)
    while i < out.size:
        total = values.dtype.type(0)
        total += values.dtype.type(HALF * 2.0) * values[i]
        largest = values.dtype.type(-math.inf)
        largest = max(largest, values[i])
        out[i] = math.exp(total - largest) + out.dtype.type(i // 2)
        i += cuda.gridsize(1)


def test_float32_and_whole_numbers_pass() -> None:
    only_float32(typed, Launch(2, 4), lambda rng: (random(rng, 11), Out((11,))))(Tally())


def test_operations_are_counted_and_limited() -> None:
    given = [np.ones(6, np.float32), np.zeros(6, np.float32)]
    assert counted(typed, Launch(1, 3), given).counts["exp"] == 6
    limited = only_float32(typed, Launch(1, 3), lambda rng: (random(rng, 6), Out((6,))), AtMost("exp", 1, "too often"))
    with pytest.raises(Wrong, match="exp is computed 2 times a thread") as raised:
        limited(Tally())
    assert raised.value.cause == "too often"
