"""What all tests share: the stages as a fixture, and the markers, each of which belongs to folders."""

import gc
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from shared import contract
from tests.stages import REASONS as STAGES
from tests.stages import STAGE_PARAMS, USABLE_STAGES
from tests.wide import WIDE

TESTS = Path(__file__).parent

# No test is timed: a busy machine must not fail one. `make test` tries the same examples every time, so that a change
# is judged by what it changes; `make test-wide` tries new ones.
settings.register_profile("groundup", deadline=None, derandomize=not WIDE)
settings.load_profile("groundup")

FLOAT64_SUFFICES = ("floors", "shared/checks", "shared/training", "stage4_numba_cuda")
"""Folders whose tests of stage 4 compile each kernel for both dtypes: those for float32 are wide."""

STAGE_4_AGAIN = ("docs", "promises", "groundup/commands", "groundup/studio")
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


COMPLETE = ("floors/test_oracle.py", "floors/test_image_oracle.py", "floors/test_layered.py")
"""Files of which `make test` runs every case: PyTorch's values."""


@cache
def _below(path: Path, folders: tuple[str, ...]) -> bool:
    return f"{path.as_posix()}/".startswith(tuple(f"{TESTS.as_posix()}/{folder}/" for folder in folders))


def _in(item: pytest.Item, folders: tuple[str, ...]) -> bool:
    return _below(item.path.parent, folders)


def _further_cases(items: list[pytest.Item]) -> list[pytest.Item]:
    """The cases of parametrised tests in which no pair of values is new.

    `make test` shows each pair of values of two parameters once for each stage, so that a test with one or two
    parameters keeps all its cases; `make test-wide` has the other combinations. `make test` runs the oracles complete.
    """
    shown: dict[tuple[Any, ...], set[tuple[int, str]]] = {}
    further = []
    for item in items:
        values = set(combinations(enumerate(item.callspec._idlist), 2)) if hasattr(item, "callspec") else set()
        if len(values) < 2 or _below(item.path, COMPLETE) or item.get_closest_marker("wide"):
            continue
        if item.get_closest_marker("skip") or item.get_closest_marker("skipif"):
            continue  # it shows nothing
        stage = next((name for name in STAGES if name in item.nodeid), None)
        before = shown.setdefault((item.path, item.parent, item.originalname, stage), set())
        if values <= before:
            further.append(item)
        before |= values
    return further


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        twice = _in(item, FLOAT64_SUFFICES) and "stage4" in item.nodeid and "float32" in item.name.partition("[")[2]
        again = _in(item, STAGE_4_AGAIN) and "[stage4_numba_cuda" in item.nodeid
        if twice or again or _in(item, WIDE_FOLDERS):
            item.add_marker(pytest.mark.wide)
    for item in _further_cases(items):
        item.add_marker(pytest.mark.wide)
    if WIDE:  # what takes more or new examples then
        for item in items:
            if hasattr(item.module, "WIDE") or getattr(item.obj, "is_hypothesis_test", False):
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
