"""Launches that are not friendly, of tiny kernels that are right when launched as plainly as can be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float32

from cuda_emulator import cuda
from groundup.course.checks.check import Tally, Wrong
from groundup.course.checks.exercise import Exercise
from groundup.course.grading.calling import launched_again
from groundup.course.grading.calling.kernel_launches import Launch, Out, backend, launched
from groundup.course.grading.calling.launched_again import kernel_checks

pytestmark = pytest.mark.skipif(backend() != "emulator", reason="line by line on the emulator")


@cuda.jit
def halved(a, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a[i] / a.dtype.type(2)


@cuda.jit
def through_float32(a, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = float32(a[i]) / float32(2)


@cuda.jit
def a_little_more(a, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a[i] / a.dtype.type(2) + a.dtype.type(1e-10)


@cuda.jit
def clamped(a, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = min(max(a[i], a.dtype.type(-100)), a.dtype.type(100)) / a.dtype.type(2)


@cuda.jit
def without_nan(a, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a[i] / a.dtype.type(2) if a[i] == a[i] else a.dtype.type(0)


@cuda.jit
def leaves_zeros(a, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        if a[i] != 0 or out[i] != out[i]:
            out[i] = a[i] / a.dtype.type(2)


@cuda.jit
def not_in_place(a, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a.dtype.type(0)
        out[i] = a[i] / a.dtype.type(2)


def memory_of(kernel: Any, **more: Any) -> Callable[[], None]:
    """The last check of a kernel that halves numbers, and writes 0 for 0."""
    exercise = Exercise(
        call=lambda a: launched(kernel, Launch(2, 4), a, Out(a.shape)),
        reference=lambda a: a.astype(np.float64) / 2,
        show=lambda a: f"halved of {a.size}",
        hand=[((np.ones(3, np.float32),), [0.5] * 3)],
        arguments=lambda rng, size: (np.append(rng.standard_normal(size), 0).astype(np.float32),),
        typical=9,
        sizes=[1],
        dtype="float32",
    )
    return lambda: kernel_checks(exercise, **more)[-1].run(Tally())


@pytest.mark.parametrize(
    ("kernel", "what", "cause"),
    [
        (through_float32, "in float64", launched_again.NAMES_FLOAT32),
        (a_little_more, "in float64", launched_again.SHORT),
        (clamped, "in float64, with huge numbers", launched_again.BEYOND_A_BOUND),
        (without_nan, "with inf and nan and -inf in one of its arrays", launched_again.LOST_NAN),
        (leaves_zeros, "on arrays with gaps", launched_again.LEFT_AS_IT_WAS),
        (not_in_place, "with arguments 1 and 2 one array", launched_again.IN_PLACE),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_launch_that_is_not_friendly_says_in_what_it_differs(kernel: Any, what: str, cause: str) -> None:
    with pytest.raises(Wrong) as raised:
        memory_of(kernel, same=[(0, 1)])()
    assert what in raised.value.what
    assert raised.value.cause == cause


def test_a_kernel_that_keeps_its_promises_passes() -> None:
    memory_of(halved, same=[(0, 1)])()
    memory_of(not_in_place)()


def test_a_kernel_of_float32_alone_is_launched_on_float32() -> None:
    memory_of(through_float32, single=True)()
    for kernel in (clamped, without_nan, leaves_zeros):
        with pytest.raises(Wrong, match=r"huge numbers|one of its arrays|gaps"):
            memory_of(kernel, single=True)()
