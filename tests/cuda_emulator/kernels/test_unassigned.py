"""A thread that reads a variable which only other threads have assigned: refused in check mode and step mode, and never
another thread's value in the fast mode."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import int32

import stage4_numba_cuda.kernels
from cuda_emulator import KernelError, cuda, options
from cuda_emulator.compiler.reading.source import FunctionSource
from cuda_emulator.compiler.reading.unassigned import NONE, find_unassigned
from cuda_emulator.runtime.check import CheckedLaunch, check_launch
from cuda_emulator.settings import current
from tests.cuda_emulator.syntax.stepping import line_of, refusal, step

BLOCK = 8
POISON = -842150451


def check(kernel: Any, *arguments: Any) -> None:
    """Launch a block in check mode, without the search for races, which compiles the kernel once more."""
    with options(check=True):
        given = kernel._arguments(arguments)
        ready = kernel._get_ready(given.types, current())
        check_launch(CheckedLaunch(kernel.py_func, ready, given.values, kernel.parameters, (1, 1, 1), (BLOCK, 1, 1)))


def checked_refusal(kernel: Any, *arguments: Any, at: str, written_in: Any = None) -> str:
    """The sentence that check mode refuses a launch with; it must point to the line with the text `at`."""
    with pytest.raises(KernelError) as caught:
        check(kernel, *arguments)
    assert caught.value.line == line_of(written_in or kernel, at)
    return caught.value.sentence


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.ones(BLOCK, np.float32), np.zeros(BLOCK, np.float32), np.zeros(BLOCK, np.int32)


@cuda.jit
def half_of_each(x, out, counts):
    i = cuda.threadIdx.x
    if i < x.size // 2:
        v = x[i]
        n = int32(i)
    cuda.syncthreads()
    out[i] = v
    counts[i] = n


@pytest.mark.parametrize("bounds", [True, False])
def test_the_fast_mode_gives_the_values_of_fresh_memory(bounds: bool) -> None:
    x, out, counts = arrays()
    with options(bounds=bounds):
        half_of_each[1, BLOCK](x, out, counts)
    assert np.isnan(out).tolist() == [False] * 4 + [True] * 4
    assert counts.tolist() == [0, 1, 2, 3, *[POISON] * 4]


def test_check_mode_names_the_variable_the_line_the_thread_and_the_block() -> None:
    sentence = checked_refusal(half_of_each, *arrays(), at="out[i] = v")
    assert sentence.startswith(
        "'v' has no value yet: this thread has not assigned it; in block (0, 0, 0), thread (4, 0, 0). On a device"
    )
    assert sentence == refusal(half_of_each, 1, BLOCK, *arrays(), at="out[i] = v")
    with options(check=True), pytest.raises(KernelError, match="'v' has no value yet"):
        half_of_each[1, BLOCK](*arrays())


@cuda.jit(device=True)
def plain(x, i):
    if i < 4:
        found = x[i], x[0]
    return found[1]


@cuda.jit(device=True)
def meets(x, i):
    if i < 4:
        v = x[i]
    cuda.syncthreads()
    return v


@cuda.jit
def calls(x, out):
    i = cuda.threadIdx.x
    for k in range(2):  # what the first call has assigned is gone in the second
        out[i] = meets(x, i % 4 + k * 4)


@cuda.jit
def calls_plain(x, out):
    out[cuda.threadIdx.x] = plain(x, cuda.threadIdx.x)


def test_a_variable_of_a_device_function_has_no_value_from_an_earlier_call() -> None:
    x, out, _ = arrays()
    sentence = checked_refusal(calls, x, out, at="return v", written_in=meets)
    assert sentence == refusal(calls, 1, BLOCK, x, out, at="return v", written_in=meets)
    calls_plain[1, BLOCK](x, out)
    assert np.isnan(out).tolist() == [False] * 4 + [True] * 4


@cuda.jit
def views(x, out):
    i = cuda.threadIdx.x
    if i < 4:
        row = x[2:]
    out[i] = row[i]


def test_a_view_that_a_thread_does_not_have_is_refused_in_the_fast_mode_too() -> None:
    x, out, _ = arrays()
    with pytest.raises(KernelError, match=r"'row' has no value yet: .* in block \(0, 0, 0\), thread \(4, 0, 0\)"):
        views[1, BLOCK](x, out)


@cuda.jit
def lends_a_view(x, out, last):
    i = cuda.threadIdx.x
    if i < 4:
        row = x[2:]

    def of_row(k):
        return row[k] if i <= last else x[k]

    out[i] = of_row(i)


def test_a_function_inside_may_leave_a_view_unread_that_a_thread_does_not_have() -> None:
    x, out = np.arange(BLOCK, dtype=np.float32), np.zeros(BLOCK, np.float32)
    lends_a_view[1, BLOCK](x, out, 3)
    assert out.tolist() == [2, 3, 4, 5, 4, 5, 6, 7]
    check(lends_a_view, x, out, 3)
    with pytest.raises(KernelError, match=r"row\[4\] is out of bounds: row has shape \(0,\)"):
        lends_a_view[1, BLOCK](x, out, 4)


@cuda.jit
def adds_to_nothing(x, out):
    for k in range(3):
        total += x[k]  # noqa: F821
    out[0] = total


def test_a_variable_that_no_line_has_assigned_is_refused_when_the_kernel_is_compiled() -> None:
    x, out, _ = arrays()
    with pytest.raises(KernelError, match="'total' has no value yet: no line before this one assigns it") as caught:
        adds_to_nothing[1, BLOCK](x, out)
    assert caught.value.line == line_of(adds_to_nothing, "total +=")


@cuda.jit
def paths(x, out):
    i = cuda.threadIdx.x
    if x[i, 0] > 0:
        a = x[i, 1]
    for k in range(x[i, 1]):
        if x[i, 2] == k:
            break
        b = a if x[i, 0] > 0 else k
    cuda.syncthreads()
    if x[i, 0] > 0 or x[i, 3] == 0:
        out[i] += a
    left = x[i, 2]
    while left > 0:
        c = cuda.ballot_sync(cuda.activemask(), left > 1)
        left -= 1
    if x[i, 2] > 0 or x[i, 3] == 1:
        out[i] += c
    if x[i, 3] == 2:
        out[i] += k + b


def test_check_mode_refuses_exactly_the_launches_in_which_python_finds_no_value() -> None:
    random, outcomes = np.random.default_rng(1), []
    for _ in range(60):
        x = random.integers(0, [3, 3, 4, 24], (BLOCK, 4)).astype(np.int32)
        stepped, out = np.zeros(BLOCK, np.int32), np.zeros(BLOCK, np.int32)
        problems: list[str] = []
        for launch in (
            lambda x=x, out=stepped: step(paths, 1, BLOCK, x, out),
            lambda x=x, out=out: check(paths, x, out),
        ):
            try:
                launch()
                problems.append("")
            except KernelError as error:
                problems.append(str(error).split("in block")[0])
        assert problems[0] == problems[1]
        assert problems[0] or (stepped == out).all()
        outcomes.append(problems[0])
    assert outcomes.count("") > 9
    assert len(set(outcomes)) > 4


def kernels() -> Iterator[Any]:
    package = stage4_numba_cuda.kernels
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        yield from (value.py_func for value in vars(module).values() if hasattr(value, "py_func"))


def test_every_variable_of_stage_4s_kernels_has_a_value_wherever_it_is_read() -> None:
    functions = set(kernels())
    assert len(functions) > 100
    assert [each.__name__ for each in functions if find_unassigned(FunctionSource(each)) is not NONE] == []
