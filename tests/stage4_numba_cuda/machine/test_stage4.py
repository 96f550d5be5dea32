"""Stage 4's own tests once more, on the kernels as numba-cuda and NVVM have compiled them for compute capability 9.0.

The order in which threads take turns is drawn by lot, and so is the time at which an asynchronous copy arrives. The
second test plants mistakes in the PTX, to show that the first would find them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.process import run
from tests.wide import WIDE, wide, widely

pytestmark = needs_numba_cuda

HERE = "tests/stage4_numba_cuda"
FILES = (
    *("test_ptx", "test_tensor_cores", "test_persistent", "test_meetings"),  # those with inline PTX
    *("test_resident", "test_steps", "test_matmul", "test_blocked", "test_gather", "test_losses", "test_optimizers"),
    *("test_reductions", "test_dropout", "test_convolution", "test_pooling", "test_batch_norm", "test_operation_plan"),
    "test_shared_memory",
    *("test_resident_operations", "test_activations", "test_arrays", "test_copies", "test_unrolled", "test_precision"),
    "../floors/test_oracle",
)
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"]
ALL = ["-m", "wide or not wide"] if WIDE else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the driver and the compiled kernels are kept for all of these tests."""
    return tmp_path_factory.mktemp("machine")


@pytest.mark.parametrize("file", widely(FILES, first=4))
def test_stage_4_is_right_as_it_is_compiled(file: str, folder: Path) -> None:
    done = run([*PYTEST, *ALL, f"{HERE}/{file}.py"], folder)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "FAULT" not in (folder / "log.txt").read_text()


@wide
@pytest.mark.parametrize("capability", ["7.5", "12.0"])
def test_stage_4_is_right_on_other_architectures(capability: str, tmp_path: Path) -> None:
    """The oldest, whose tensor cores know f16 alone, and the newest, for which NVVM writes another kind of PTX."""
    files = [f"{HERE}/{file}.py" for file in FILES]
    done = run([*PYTEST, *files], tmp_path, MACHINE_CAPABILITY=capability)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "FAULT" not in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(
    ("mistake", "tests"),
    widely(
        [
            (r"(mma\S+ \{[^}]*\}, \{%r\d+),(%r\d+),(%r\d+)=>\1,\3,\2", "test_tensor_cores.py"),  # two fragments swapped
            (r"cp\.async\.wait_group 1;=>cp.async.wait_group 2;", "test_tensor_cores.py"),  # a tile is read too early
            (r"bar\.sync\s+0;=>", "test_matmul.py"),
            (r"setp\.ge\.s64=>setp.gt.s64", "test_matmul.py"),  # a guard lets one index too many pass
            (
                r"(red\.release\.gpu\.global\.add\.u32 \[\S+\]), 1;=>\1, 2;",
                "test_persistent.py",
            ),  # blocks go on too soon
        ],
        first=1,
    ),
)
def test_a_mistake_in_the_ptx_is_found(mistake: str, tests: str, tmp_path: Path) -> None:
    done = run([*PYTEST, "-x", f"{HERE}/{tests}"], tmp_path, MACHINE_EDIT=mistake)
    assert done.returncode == 1, done.stdout[-4000:]
    assert "1 failed" in done.stdout
    assert "cannot be made" not in done.stdout + done.stderr  # a text that the machine refuses would fail any test
