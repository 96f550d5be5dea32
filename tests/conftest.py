"""What all tests share: the stages as a fixture, and the markers, each of which belongs to folders."""

import gc
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from shared import contract
from tests.stages import STAGE_PARAMS, USABLE_STAGES
from tests.wide import WIDE

TESTS = Path(__file__).parent

# No test is timed: a busy machine must not fail one. `make test` tries the same examples every time, so that a change
# is judged by what it changes; `make test-wide` tries new ones.
settings.register_profile("groundup", deadline=None, derandomize=not WIDE)
settings.load_profile("groundup")

SLOW = (
    *("browser", "docs", "packaging", "promises", "house"),
    *("groundup/doctor", "cuda_emulator/lens", "groundup/course", "groundup/commands"),
    *("shared/bench", "shared/charts", "cuda_emulator/kernels"),
)
"""Folders whose tests compile many kernels or draw many figures, or do not depend on Python's version: the further
Python versions leave them out."""

COMPILED_TWICE = ("floors", "shared/checks", "stage4_numba_cuda")
"""Folders whose tests of stage 4 compile kernels for minutes: the same for those tests alone."""


FLOAT64_SUFFICES = ("floors", "shared/checks", "shared/training", "stage4_numba_cuda")
"""Folders whose tests of stage 4 compile each kernel for both dtypes: those for float32 are wide."""

STAGE_4_AGAIN = ("docs", "promises", "groundup/commands")
"""Folders whose tests of stage 4 compile many kernels, and find what the stages' tests find: those are wide."""

WIDE_FOLDERS = ("browser", "cuda_emulator/compatibility")
"""Folders whose tests `make test` leaves to `make test-wide`; tests/wide.py says what else it leaves."""


# Python looks through all objects for cycles whenever their number has grown by a quarter. The tests' own objects are
# more than a million, and stay to the end: looking through them took a fifth of the processor time of `make test`.
gc.disable()


def pytest_collection_finish() -> None:
    """What there is now stays to the end: the garbage collector need not look at it again. Numba makes many objects
    that stay, too, when it compiles, so that it looks less often than by default."""
    gc.freeze()
    gc.set_threshold(10_000, 30, 30)
    gc.enable()


@cache
def _below(path: Path, folders: tuple[str, ...]) -> bool:
    return f"{path.as_posix()}/".startswith(tuple(f"{TESTS.as_posix()}/{folder}/" for folder in folders))


def _in(item: pytest.Item, folders: tuple[str, ...]) -> bool:
    return _below(item.path.parent, folders)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _in(item, SLOW) or (_in(item, COMPILED_TWICE) and "stage4" in item.nodeid):
            item.add_marker(pytest.mark.slow)
        twice = _in(item, FLOAT64_SUFFICES) and "stage4" in item.nodeid and "float32" in item.nodeid
        again = _in(item, STAGE_4_AGAIN) and "[stage4_numba_cuda" in item.nodeid
        if twice or again or _in(item, WIDE_FOLDERS):
            item.add_marker(pytest.mark.wide)
    if not WIDE and "wide" not in config.getoption("markexpr"):
        left_out = [item for item in items if item.get_closest_marker("wide")]
        items[:] = [item for item in items if not item.get_closest_marker("wide")]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(params=STAGE_PARAMS)
def stage(request: pytest.FixtureRequest) -> contract.Stage:
    return contract.load_stage(request.param)


@pytest.fixture
def one_step_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training loop that takes a step only when the one before has been told, on every stage: on a GPU stage 4 would
    order many at once."""
    if "stage4_numba_cuda" in USABLE_STAGES:
        resident = contract.load_part("stage4_numba_cuda", "plans.resident")
        monkeypatch.setattr(resident.ResidentRun, "interval", 1)
