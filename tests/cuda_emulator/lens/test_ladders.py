"""The lens over this project's own kernels: they are traced whole, and none is accused of anything.

The rungs of the matmul ladder as ab are in tests/docs/test_lens_page.py, which has them traced for the page.
"""

from __future__ import annotations

from typing import Any

import pytest

from stage4_numba_cuda.backend import BACKEND

if BACKEND.name != "emulator":
    pytest.skip("launches are traced on the emulator", allow_module_level=True)

from cuda_emulator.lens import Profile, profile, terminal
from groundup.kernels.launching import KERNELS, OF_ROUNDED, RUNGS, project_launch
from tests.wide import wide

SIZE = (40, 70, 33)
"""Of a product: one block and a piece of another where tiles are small, a piece of one where they are large."""

OF_LADDERS = ("sums.total_by_tree", "tiled_16:tn")
"""Shuffles, trees, the step's largest kernel, and the first rung that knows tn and nt: the others are wide."""


def kernels() -> list[Any]:
    """Everything that the lens knows by name."""
    only_nn = ("naive", "coalesced", *OF_ROUNDED)
    first = [rung for rung in RUNGS if rung not in only_nn]
    names = [
        *only_nn,
        *(f"{rung}:{form}" for rung in first for form in ("nn", "tn", "nt")),
        *KERNELS,
    ]
    return [pytest.param(name, marks=[] if name.startswith(OF_LADDERS) else [wide]) for name in names]


def profile_of(name: str) -> Profile:
    launch = project_launch(name, SIZE)
    return profile(launch.kernel, launch.grid, launch.block, *launch.arguments, sharedmem=launch.sharedmem)


@pytest.mark.parametrize("name", kernels())
def test_a_correct_kernel_is_traced_whole_and_not_accused(name: str) -> None:
    found = profile_of(name)
    assert found.accesses
    assert (found.races, found.uninitialised, found.fault) == ([], [], "")
    assert (found.not_traced, found.unjudged) == ([], [])
    assert found.correct


def test_the_advice_and_the_table_of_reuse_say_what_they_count() -> None:
    """Of naive's number of a, 16 threads of a block load it: two in a request, since a warp is two rows of 16."""
    report = " ".join(terminal.text(profile_of("naive")).split())
    assert "The warps of a block ask for elements of a up to 8 times" in report
    assert "16 in one block, by 8 requests" in report


@wide
@pytest.mark.parametrize(
    ("rung", "ways"),
    [
        *(("packed", 2), ("ldmatrix", 2), ("swizzled", 1), ("staged", 1), ("square_warps", 1)),
        *(("pipelined", 1), ("wide_tile", 1)),
    ],
)
def test_chunks_that_change_places_meet_no_bank_twice(rung: str, ways: int) -> None:
    """Rows of 20 words are read without conflicts and written with them; rows of 16 with swapped chunks have none."""
    shared = [access for access in profile_of(f"bf16_{rung}").accesses if access.space == "shared"]
    assert {access.most_ways for access in shared if access.kind == "load"} == {1}
    assert {access.most_ways for access in shared if access.kind == "store"} == {ways}
