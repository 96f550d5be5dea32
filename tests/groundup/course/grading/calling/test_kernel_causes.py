"""Why a launch failed: the causes that the source tells."""

from typing import Any

import numpy as np
import pytest

from cuda_emulator import cuda
from groundup.course.checks.check import Wrong
from groundup.course.grading.calling import kernel_causes
from groundup.course.grading.calling.kernel_launches import Both, Launch, Out, backend, launched
from groundup.course.grading.calling.line_by_line import line_by_line

pytestmark = pytest.mark.skipif(backend() != "emulator", reason="the emulator's errors are explained")


@cuda.jit
def unguarded(values, out):
    i = cuda.grid(1)
    out[i] = values[i]


@cuda.jit
def one_too_far(values, out):
    count = out.size
    i = cuda.grid(1)
    while i <= count:
        out[i] = values[i]
        i += cuda.gridsize(1)


@cuda.jit
def returns_too_late(values, out):
    i = cuda.grid(1)
    if i > len(values):
        return
    out[i] = values[i]


@cuda.jit
def one_more(values, out):
    i = cuda.grid(1)
    if i < len(values) + 1:
        out[i] = values[i]


@cuda.jit
def ranges_too_far(values, out):
    for i in range(cuda.grid(1), out.size + 1, cuda.gridsize(1)):
        out[i] = values[i]


@cuda.jit
def adds_atomically_to_nothing(values, out):
    i = cuda.grid(1)
    if i < out.size:
        cuda.atomic.add(out, i, values[i])


@cuda.jit
def other_guard(values, out):
    i = cuda.grid(1)
    if i < 100:
        out[i] = values[i]


@cuda.jit
def guards_another(values, out):
    i = cuda.grid(1)
    for k in range(values.size):
        if k < out.size:
            out[i] = values[k]


@cuda.jit
def guards_too_late(values, out):
    i = cuda.grid(1)
    value = values[i]
    if i < out.size:
        out[i] = value


@cuda.jit
def guards_by_a_name(values, out):
    i = cuda.grid(1)
    inside = i < 100
    out[i] = values[i] if inside else values[0]


@cuda.jit
def float_index(values, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i / 1] = values[i]


@cuda.jit
def adds_to_nothing(values, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] += values[i]


@cuda.jit
def adds_to_nothing_in_full(values, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = out[i] + values[i]


@cuda.jit
def changes_its_input(values, out):
    i = cuda.grid(1)
    if i < out.size:
        values[i] *= values.dtype.type(2)
        out[i] = values[i]


@pytest.mark.parametrize(
    ("kernel", "cause"),
    [
        (unguarded, kernel_causes.NO_GUARD),
        (one_too_far, kernel_causes.ONE_TOO_FAR),
        (returns_too_late, kernel_causes.ONE_TOO_FAR),
        (one_more, kernel_causes.ONE_TOO_FAR),
        (ranges_too_far, kernel_causes.ONE_TOO_FAR),
        (other_guard, kernel_causes.OTHER_GUARD),
        (guards_another, kernel_causes.NO_GUARD_FOR.format("i")),
        (guards_too_late, kernel_causes.NO_GUARD),
        (guards_by_a_name, kernel_causes.OTHER_GUARD),
        (float_index, kernel_causes.WHOLE_INDEX),
    ],
)
def test_a_wrong_index_has_the_cause_that_its_guard_shows(kernel: Any, cause: str) -> None:
    with pytest.raises(Wrong) as raised:
        line_by_line(kernel, Launch(1, 8), np.ones(5, np.float32), Out((5,)))
    assert raised.value.cause == cause


@cuda.jit
def guard_ends_too_early(values, out):
    i = cuda.grid(1)
    if i < 3:
        value = values[i]
    if i < 5:
        out[i] = value


@pytest.mark.parametrize("launch", [launched, line_by_line])
def test_a_variable_that_only_some_threads_assign_is_named_and_no_wrong_number(launch: Any) -> None:
    with pytest.raises(Wrong, match=r"'value' has no value yet: .* in block \(0, 0, 0\), thread \(3, 0, 0\)") as raised:
        launch(guard_ends_too_early, Launch(1, 8), np.ones(5, np.float32), Out((5,)))
    assert raised.value.cause == kernel_causes.NO_VALUE


@pytest.mark.parametrize("kernel", [adds_to_nothing, adds_to_nothing_in_full, adds_atomically_to_nothing])
def test_adding_to_an_output_that_holds_nothing_is_told_with_the_line(kernel: Any) -> None:
    with pytest.raises(Wrong, match=r"line \d+ adds to what out holds, and out holds nothing yet"):
        line_by_line(kernel, Launch(1, 8), np.ones(5, np.float32), Out((5,)))
    held = Both(np.ones(5, np.float32))
    assert line_by_line(kernel, Launch(1, 8), np.ones(5, np.float32), held).tolist() == [2] * 5


def test_an_input_that_the_kernel_changes_is_named() -> None:
    with pytest.raises(Wrong, match="values was changed by the kernel, which should only read it"):
        line_by_line(changes_its_input, Launch(1, 8), np.ones(5, np.float32), Out((5,)))
    line_by_line(changes_its_input, Launch(1, 8), Both(np.ones(5, np.float32)), Out((5,)))
