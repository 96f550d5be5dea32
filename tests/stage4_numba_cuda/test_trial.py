"""stage4_numba_cuda.trial: a GPU on which no kernel runs is told in one sentence before anything else is done."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Any

import pytest

import stage4_numba_cuda
from shared.contract import StageUnavailable, load_stage
from stage4_numba_cuda import backend, trial
from stage4_numba_cuda.backend import BACKEND, Backend, BackendError

GPU = Backend("gpu", BACKEND.cuda, "NVIDIA T4, compute capability 7.5")


class Refusing:
    """A kernel whose launch fails as numba-cuda 0.30.4's do under NumPy 2.5."""

    def __getitem__(self, shape: Any) -> Any:
        raise AttributeError("module 'numpy' has no attribute\n'row_stack'")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretends that these versions are installed, and that no kernel runs."""

    def put(**versions: str) -> None:
        named = {name.replace("_", "-"): version for name, version in versions.items()}

        def version(name: str) -> str:
            if name not in named:
                raise importlib.metadata.PackageNotFoundError(name)
            return named[name]

        monkeypatch.setattr(trial, "BACKEND", GPU)
        monkeypatch.setattr(trial, "double", Refusing())
        monkeypatch.setattr(trial.importlib.metadata, "version", version)

    return put


def test_a_kernel_that_runs_is_not_talked_about() -> None:
    trial.attempt()


def test_a_pair_of_versions_is_named_with_the_command_that_mends_it(installed: Any) -> None:
    installed(numpy="2.5.0", numba_cuda="0.30.4", numba="0.68.1")
    with pytest.raises(BackendError) as caught:
        trial.attempt()
    fix = f'"{sys.executable}" -m pip install "numpy<2.5"'
    assert str(caught.value) == (
        "a trial kernel does not run on NVIDIA T4, compute capability 7.5: numba-cuda 0.30.4 compiles no kernel with "
        f"NumPy 2.5.0, which no longer has numpy.row_stack; this mends it: {fix}"
    )
    assert caught.value.fix == fix


def test_an_unknown_cause_is_told_with_the_versions_on_one_line(installed: Any) -> None:
    installed(numpy="2.4.6", numba_cuda="0.30.4")
    with pytest.raises(BackendError) as caught:
        trial.attempt()
    assert str(caught.value) == (
        "a trial kernel does not run on NVIDIA T4, compute capability 7.5: AttributeError: module 'numpy' has no "
        "attribute 'row_stack' (numpy 2.4.6, numba-cuda 0.30.4); `groundup doctor` looks for the cause"
    )


def test_wrong_numbers_are_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "double", Idle())
    with pytest.raises(BackendError, match=r"it should double 0, 1, 2, … and gave \[0\.0, 1\.0, 2\.0"):
        trial.attempt()


class Idle:
    """A kernel that does nothing."""

    def __getitem__(self, shape: Any) -> Any:
        return lambda *arguments: None


def test_the_stage_is_unavailable_where_the_trial_fails(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(numpy="2.5.0", numba_cuda="0.30.4")
    monkeypatch.setattr(backend, "BACKEND", GPU)
    monkeypatch.delenv(stage4_numba_cuda.ANNOUNCED, raising=False)
    with pytest.raises(
        StageUnavailable, match=r"^stage4_numba_cuda: a trial kernel does not run on NVIDIA T4"
    ) as caught:
        load_stage("stage4_numba_cuda")
    assert (caught.value.fix or "").endswith('-m pip install "numpy<2.5"')
