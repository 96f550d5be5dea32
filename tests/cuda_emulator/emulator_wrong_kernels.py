"""Kernels that are wrong in every way that could end the process. Prints what each of them was told, as JSON.

    python -m tests.cuda_emulator.emulator_wrong_kernels

test_wrong_kernels.py runs it as a process of its own: where the emulator lets one through, the process dies,
and the last name on standard error says which.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import float32, float64, int64, uint64

from cuda_emulator import cuda

FAR = 10**9
KERNELS: dict[str, tuple[Callable[..., None], Callable[[], tuple[Any, ...]]]] = {}
POINT = np.dtype([("x", np.float64), ("counts", np.int64, (3,))], align=True)


def wrong(*arguments: Callable[[], Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A kernel, and what makes the arguments that it is launched with."""

    def keep(function: Callable[..., None]) -> Callable[..., None]:
        KERNELS[function.__name__] = (cuda.jit(function), lambda: tuple(make() for make in arguments))
        return function

    return keep


def matrix() -> np.ndarray:
    return np.ones((4, 4))


def vector() -> np.ndarray:
    return np.ones(4)


def counts() -> np.ndarray:
    return np.zeros(4, np.int64)


def far() -> int:
    return FAR


@cuda.jit(device=True)
def first_of(array, i):
    return array[i]


@cuda.jit(device=True)
def row_of(array, i):
    row = array[i, :]
    return row[0]


@cuda.jit(device=True)
def counted(array, i):
    return cuda.atomic.add(array[0], i, 1)


@wrong(vector, far)
def element(a, i):
    a[i] = 1


@wrong(vector, lambda: -FAR)
def below(a, i):
    a[i] = 1


@wrong(matrix, far)
def chained(a, i):
    a[0][i] = 1


@wrong(matrix, far)
def in_a_tuple(a, i):
    place = (i, 0)
    a[place] = 1


@wrong(matrix, vector, far)
def row(a, o, i):
    part = a[i, :]
    o[0] = part[0]


@wrong(matrix, far)
def column_assigned(a, i):
    a[0:2, i] = 5.0


@wrong(matrix, far)
def with_a_slice_in_a_tuple(a, i):
    place = (i, slice(0, 2))
    a[place] = 5.0


@wrong(matrix, far)
def with_an_ellipsis(a, i):
    a[i, ...] = 5.0


@wrong(matrix, vector, far)
def with_a_new_axis(a, o, i):
    part = a[None, i]
    o[0] = part[0, 0]


@wrong(matrix, far)
def transposed(a, i):
    a.T[i, 0] = 1


@wrong(vector, far)
def of_a_part(a, i):
    a[1:][i] = 1


@wrong(vector, far)
def flat(a, i):
    a.flat[i] = 5.0


@wrong(vector, lambda: np.array([FAR, FAR]))
def by_an_array(a, places):
    a[places] = 3.0


@wrong(vector, far)
def of_one_or_the_other(a, i):
    b = a
    (a if i > 0 else b)[i] = 1


@wrong(lambda: np.zeros(0), far)
def of_nothing(a, i):
    a[0] = a[i]


@wrong(vector, lambda: np.uint64(2**64 - 1))
def unsigned(a, i):
    a[i] = 1


@wrong(vector, lambda: np.uint64(0))
def unsigned_below(a, i):
    a[i - uint64(1)] = 1


@wrong(vector)
def from_a_float(a):
    i = int(1e30)
    a[i] = 7


@wrong(lambda: np.zeros(4, POINT), far)
def record(a, i):
    a[i].x = 1.0


@wrong(lambda: np.zeros(4, POINT), far)
def within_a_record(a, i):
    a[0].counts[i] = 1


@wrong(counts, far)
def atomic(a, i):
    cuda.atomic.add(a, i, 1)


@wrong(lambda: np.zeros((4, 4), np.int64), far)
def atomic_of_a_row(a, i):
    cuda.atomic.add(a[0], i, 1)


@wrong(counts, far)
def atomic_of_a_part(a, i):
    cuda.atomic.add(a[1:], i, 1)


@wrong(lambda: np.zeros(0, np.int64))
def swap_of_nothing(a):
    cuda.atomic.compare_and_swap(a, 0, 1)


@wrong(vector, far)
def shared(o, i):
    s = cuda.shared.array(8, float64)
    s[i] = 1
    cuda.syncthreads()
    o[0] = s[0]


@wrong(vector, far)
def local(o, i):
    own = cuda.local.array((2, 3), float32)
    own[i, 0] = 1
    o[0] = own[0, 0]


@wrong(vector, far)
def local_row_over_a_barrier(o, i):
    own = cuda.local.array((2, 3), float32)
    own[0, 0] = 1
    cuda.syncthreads()
    part = own[i, :]
    o[0] = part[0]


@wrong(vector)
def dynamic_of_no_bytes(o):
    s = cuda.shared.array(0, float64)
    s[0] = 1
    o[0] = s[0]


@wrong(vector, far)
def in_a_device_function(a, i):
    a[0] = first_of(a, i)


@wrong(matrix, far)
def in_a_device_functions_view(a, i):
    a[0, 0] = row_of(a, i)


@wrong(lambda: np.zeros((2, 4), np.int64), far)
def in_a_device_functions_atomic(a, i):
    a[0, 0] = counted(a, i)


@wrong(vector)
def renamed(a):
    s = cuda.shared.array(10000, float32)
    s = a
    s[9000] = 1


@wrong(vector)
def local_without_end(o):
    own = cuda.local.array((2**32, 2**32), float64)
    own[0, 0] = 1
    o[0] = own[0, 0]


@wrong(vector)
def divided_by_nothing(o):
    n = int64(o[0]) - 1
    o[0] = 5 // n + 5 % n + FAR // (n - 1)


def told(kernel: Callable[..., None], arguments: tuple[Any, ...]) -> str:
    """What a launch says; "" where it says nothing."""
    try:
        kernel[1, 1](*arguments)  # type: ignore[index]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Launch them all, each twice: the second launch of a kernel takes another way."""
    warnings.simplefilter("ignore")
    answers = {}
    for name, (kernel, arguments) in KERNELS.items():
        print(name, file=sys.stderr, flush=True)
        answers[name] = told(kernel, arguments())
        assert told(kernel, arguments()) == answers[name]
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
