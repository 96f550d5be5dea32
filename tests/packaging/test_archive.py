"""Imported from an archive, stages and data work, and the commands say in one sentence that they do not."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.wide import wide

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    *("cuda_emulator", "groundup", "shared"),
    *("stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda"),
)
STEP = """
import numpy as np
from shared.contract import load_stage
from shared.data.datasets import load_dataset
from shared.training.loop import train
from shared.training.settings import QUIET, TrainingSettings
import shared
assert ".zip" in shared.__file__, shared.__file__
stage, data = load_stage({stage!r}), load_dataset()
few = data.train.first(20)
network = stage.network.Network([784, 4, 10], seed=1)
result = train(stage, network, stage.optimizers.SGD(0.1), few, TrainingSettings(1, 10), hooks=QUIET)
print(stage.name, round(result.epochs[-1].train_loss, 3))
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel holds, in a zip file."""
    path = tmp_path_factory.mktemp("archive") / "groundup.zip"
    with zipfile.ZipFile(path, "w") as made:
        for package in PACKAGES:
            for file in (ROOT / package).rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    made.write(file, file.relative_to(ROOT))
    return path


def run(archive: Path, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the archive first on its path, away from the checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=False,
    )


@wide
@pytest.mark.parametrize("stage", ["stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda"])
def test_every_stage_trains_on_the_bundled_set(archive: Path, tmp_path: Path, stage: str) -> None:
    ran = run(archive, tmp_path, "-c", STEP.format(stage=stage))
    if "StageUnavailable" in ran.stderr:
        pytest.skip(ran.stderr.splitlines()[-1])
    assert ran.stdout.split() == [stage, "3.004"], ran.stderr


@wide
@pytest.mark.parametrize("command", [["doctor"], ["train", "2"]])
def test_a_command_says_that_it_needs_files(archive: Path, tmp_path: Path, command: list[str]) -> None:
    ran = run(archive, tmp_path, "-m", "groundup", *command)
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    assert f"it lies in an archive, {archive}" in ran.stderr
