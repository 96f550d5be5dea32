"""A product in tiles and the softmax of a block are right in several orders of the threads, and need each barrier.

The emulator lets threads take turns in another way, and a missing barrier may go unseen there.
"""

from __future__ import annotations

import json

import pytest

from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.process import run
from tests.wide import WIDE

pytestmark = needs_numba_cuda

BARRIERS = {"matmul": range(1, 3), "softmax": range(1, 7)} if WIDE else {"matmul": [2], "softmax": [3]}
"""Those that are left out. These two only keep the next round from overwriting what this one reads."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, int]]:
    """(kernel, barrier that is left out or 0, in how many orders its result is wrong)"""
    left_out = [f"{file}:{barrier}" for file, barriers in BARRIERS.items() for barrier in (0, *barriers)]
    program = ["-m", "tests.stage4_numba_cuda.machine.some_rungs", *left_out]
    done = run(program, tmp_path_factory.mktemp("machine"))
    assert done.returncode == 0, done.stderr[-4000:]
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def test_rungs_with_barriers_are_right_in_every_order(answers: list[tuple[str, int, int]]) -> None:
    right = [(name, 0, 0) for name in ("tiled_16", "softmax_block", "softmax_block_backward")]
    assert [answer for answer in answers if answer[1] == 0] == right


def test_without_one_of_their_barriers_they_are_wrong(answers: list[tuple[str, int, int]]) -> None:
    wrong = {(name, barrier): orders for name, barrier, orders in answers if barrier}
    assert len(wrong) >= sum(map(len, BARRIERS.values()))
    assert [which for which, orders in wrong.items() if not orders] == []
