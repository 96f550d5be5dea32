"""What all tests share: which stages exist, and the sizes that catch wrong indexing."""

import importlib

import pytest

from shared import contract

AWKWARD_SIZES = [(1, 1, 1), (1, 7, 3), (2, 3, 5), (13, 17, 11), (5, 97, 2), (31, 2, 29), (33, 65, 17)]
"""(M, K, N): ones, primes, one past a power of two, K much larger than N and the reverse."""


def why_not(name: str) -> str | None:
    """Why an installed stage cannot be used on this machine (it has no compiler, say); None where it can be."""
    try:
        contract.load_stage(name)
    except contract.StageUnavailable as reason:
        return str(reason)
    except Exception:  # a broken stage: the tests that load it fail with the error, each by itself
        return None
    return None


REASONS = {name: why_not(name) for name in contract.available_stages()}
USABLE_STAGES = [name for name, reason in REASONS.items() if reason is None]
"""The stages for tests that look at all at once."""

STAGE_PARAMS = [
    pytest.param(name, id=name, marks=[pytest.mark.skip(reason=reason)] if reason else [])
    for name, reason in REASONS.items()
]
"""The names of the installed stages to parametrise over; those that cannot be used here are skipped and say why."""


EVERY_KERNEL = {
    *("test_activations", "test_check_command", "test_classics", "test_equivalence", "test_gradient_check"),
    *("test_losses", "test_matmul", "test_network", "test_oracle", "test_properties"),
    *("test_bench_ladders", "test_bench_steps", "test_bench_operations", "test_bench_step_parts"),
    *("test_bench_inference", "test_train_command", "test_live"),
    *(f"test_stage4_{room}" for room in ("activations", "losses", "matmul", "optimizers", "reductions", "steps")),
}
"""Files whose tests need so many of stage 4's kernels that compiling them for the emulator takes minutes: their tests
of stage 4 count as slow, so that the further Python versions, which compile everything anew, leave them out."""


MANY_KERNELS = {
    *(f"test_emulator_{what}" for what in ("check_mode", "diagnoses", "kernels", "warps")),
    *("test_lens_analysis", "test_lens_defects", "test_lens_docs", "test_lens_textbook", "test_lens_tracer"),
    *("test_lens_command", "test_lens_tools", "test_race", "test_stage4_gpu_report", "test_stage4_resident"),
    *("test_bench_training", "test_course_exercises", "test_learn_command"),
}
"""The same for files that are about kernels as a whole."""

DRAWING = {
    *("test_charts", "test_charts_ladders", "test_charts_learning", "test_charts_page", "test_charts_times"),
    "test_look_command",
}
"""Files that draw every figure in every look: matplotlib, and not Python's version, decides how those come out."""


ANY_PYTHON = ("test_bench_", "test_charts_", "test_lens_", "test_doctor", "test_docs", "test_notebooks", "test_look")
"""Beginnings of the names of files that are tested on one Python only: what they are about does not depend on it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        file = item.path.stem
        everywhere = file not in MANY_KERNELS | DRAWING and not file.startswith(ANY_PYTHON)
        if not everywhere or (file in EVERY_KERNEL and "stage4" in item.nodeid):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=STAGE_PARAMS)
def stage(request: pytest.FixtureRequest) -> contract.Stage:
    return contract.load_stage(request.param)


@pytest.fixture
def one_step_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training loop that takes a step only when the one before has been told, on every stage: on a GPU stage 4 would
    order many at once."""
    if "stage4_numba_cuda" in USABLE_STAGES:
        resident = importlib.import_module("stage4_numba_cuda.resident")
        monkeypatch.setattr(resident.Resident, "interval", 1)


def without_announcement(stderr: str) -> str:
    """What a command said besides the line in which stage 4 says what it runs on."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("stage 4 runs its kernels"))
