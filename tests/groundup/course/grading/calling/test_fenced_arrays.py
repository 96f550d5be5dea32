"""Calls of a function by two threads, and the limit of its processor time. Python stands in for C here."""

import ctypes
import os
import signal
import sys
import time

import numpy as np
import pytest

from groundup.course.checks.check import Wrong
from groundup.course.grading.calling import fenced_arrays
from groundup.course.grading.calling.fenced_arrays import by_two_threads, filled, read
from groundup.course.judging.verdict import verdict_of

GIVEN = read("x", np.arange(4.0)), filled("y", (4,))


def test_a_buffer_that_calls_share_is_seen_when_two_threads_call() -> None:
    shared = np.empty(4)

    def twice(x: np.ndarray, y: np.ndarray) -> None:
        shared[:] = x
        time.sleep(0.002)  # C has no lock while it computes
        y[:] = 2 * shared

    with pytest.raises(Wrong, match="two threads call twice at the same time, and y is not what it is for one alone"):
        by_two_threads("twice", twice, GIVEN, "float64")


def test_a_function_with_variables_of_its_own_may_be_called_by_two_threads() -> None:
    def twice(x: np.ndarray, y: np.ndarray) -> None:
        own = x.copy()
        time.sleep(0.0005)
        y[:] = 2 * own

    by_two_threads("twice", twice, GIVEN, "float64")


@pytest.mark.skipif(sys.platform == "win32", reason="no setitimer and no fork here")
def test_a_call_that_does_not_end_is_ended_and_the_verdict_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fenced_arrays, "SECONDS", 0.05)
    child = os.fork()
    if child == 0:
        with fenced_arrays._time_limit():
            while True:
                pass
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == -signal.SIGPROF
    verdict = verdict_of([{"event": "trying", "text": "add_bias of (2, 3)"}], code, "", 90, 1)
    assert verdict.what.startswith("a call in C took seconds of processor time where it should take less than one")
    assert verdict.what.endswith("while trying add_bias of (2, 3), and was stopped")
    assert "A counter of 16 bits" in verdict.cause


@pytest.mark.parametrize(("place", "where"), [(4, "past the end"), (-1, "before the beginning")])
def test_one_number_outside_an_array_is_seen(place: int, where: str) -> None:
    def fill(x: np.ndarray, y: np.ndarray) -> None:
        ctypes.c_double.from_address(y.ctypes.data + place * y.itemsize).value = 7.0

    with pytest.raises(Wrong, match=rf"fill writes {where} of y \(4,\)"):
        fenced_arrays._once("fill", fill, GIVEN, "float64", fenced_arrays.OUTSIDE, np.nan)
