"""The order in which C reads and writes is noted, access by access."""

import sys

import numpy as np
import pytest

from groundup.course.grading.calling.c_trace import Traced, longest_until_read_again, passes, share_of_neighbours
from tests.stages import REASONS

pytestmark = [
    pytest.mark.skipif(REASONS.get("stage3_c") is not None, reason=str(REASONS.get("stage3_c"))),
    pytest.mark.skipif(sys.platform != "linux", reason="accesses are noted on Linux"),
]


def test_every_access_of_a_function_is_noted_in_its_order() -> None:
    traced = Traced("sgd", ["optimizers.c"])
    if traced.why_not:
        pytest.skip(traced.why_not)
    p, g = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
    accesses = traced.accesses(3, p, g, None, 0.1, 0.0, False, 0.0)
    assert np.allclose(p, [0.0, 0.0, 0.0])
    assert accesses.of(1, written=False).tolist() == [0, 1, 2]
    assert accesses.of(1, written=True).tolist() == []
    assert accesses.of(0, written=True).tolist() == [0, 1, 2]
    assert passes(accesses.element) == 1


def test_what_an_order_says_about_blocks_passes_and_neighbours() -> None:
    rows_first = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    in_blocks = np.array([0, 1, 0, 1, 2, 3, 2, 3])
    assert (longest_until_read_again(rows_first), longest_until_read_again(in_blocks)) == (4, 2)
    assert longest_until_read_again(np.arange(5)) == 0
    assert (passes(np.arange(1000)), passes(np.tile(np.arange(1000), 3))) == (1, 3)
    assert share_of_neighbours(np.arange(9)) == 1.0
    assert share_of_neighbours(np.array([0, 70, 140, 1, 71, 141])) == 0.0
