"""A trained run for the tests of the page Runs, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from groundup.train import Training, new_settings, run
from shared.contract import load_stage
from shared.training.settings import QUIET

GIVEN = {"epochs": 2, "hidden": "16", "learning_rate": 0.2, "validation": 0.1}


@pytest.fixture(scope="session")
def _trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "runs" / "small"
    asked = Training.of(new_settings("stage2_numpy", GIVEN), folder, resume=False, overwrite=False)
    run(load_stage("numpy"), asked, lambda network, data: QUIET, live=False)
    return folder


@pytest.fixture
def small(_trained: Path, tmp_path: Path) -> Path:
    """A folder of a studio, tmp_path, with the run runs/small: a copy of its own."""
    return Path(shutil.copytree(_trained, tmp_path / "runs" / "small"))
