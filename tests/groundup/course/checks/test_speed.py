"""The time of a function is compared with another one's."""

import time

import pytest

from groundup.course.checks.speed import times_slower


def test_a_time_is_the_median_of_ratios_taken_in_turn() -> None:
    clock = {"now": 0.0}

    def takes(seconds: float) -> None:
        clock["now"] += seconds

    original = time.perf_counter
    try:
        time.perf_counter = lambda: clock["now"]  # type: ignore[assignment]
        assert times_slower(lambda: takes(3.0), lambda: takes(1.0)) == pytest.approx(3.0)
    finally:
        time.perf_counter = original
