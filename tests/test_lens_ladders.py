"""The lens over this project's own kernels: all of them are traced whole, and none is accused of anything."""

from __future__ import annotations

import os

import pytest

from stage4_numba_cuda.backend import BACKEND

if BACKEND.name != "emulator":
    pytest.skip("launches are traced on the emulator", allow_module_level=True)

from stage4_numba_cuda.lens import Profile, profile, project

SIZE = (40, 70, 33)
"""Of a product: one block and a piece of another where tiles are small, a piece of one where they are large."""

EVERY_KERNEL = pytest.mark.skipif(
    os.environ.get("GROUNDUP_EVERY_KERNEL") != "1",
    reason="GROUNDUP_EVERY_KERNEL=1 traces the other kernels too: minutes of compiling for the emulator",
)
OF_LADDERS = (
    "softmax.softmax_thread",
    "softmax.softmax_warp",
    "softmax.softmax_block",
    "sums.",
    "fused.",
    "head.",
    "update.",
)
"""The kernels of softmax's, the sums' and the training step's ladders; the matmul ladder is in project.RUNGS."""


def kernels() -> list:
    """Every rung of every ladder; the backward and loss kernels beside them where all are asked for."""
    forms = [f"{rung}:{form}" for rung in project.RUNGS for form in ("nn", "tn", "nt")]
    forms = [name for name in forms if name.endswith("nn") or name.partition(":")[0] not in ("naive", "coalesced")]
    always = {
        *(name for name in forms if name.endswith("nn")),
        *(name for name in project.KERNELS if name.startswith(OF_LADDERS) and "backward" not in name),
    }
    return [pytest.param(name, marks=[] if name in always else [EVERY_KERNEL]) for name in [*forms, *project.KERNELS]]


def profile_of(name: str) -> Profile:
    launch = project.project_launch(name, SIZE)
    return profile(launch.kernel, launch.grid, launch.block, *launch.arguments, sharedmem=launch.sharedmem)


@pytest.mark.slow
@pytest.mark.parametrize("name", kernels())
def test_a_correct_kernel_is_traced_whole_and_not_accused(name: str) -> None:
    found = profile_of(name)
    assert found.accesses
    assert (found.races, found.uninitialised, found.fault) == ([], [], "")
    assert (found.not_traced, found.unjudged) == ([], [])
    assert found.correct
