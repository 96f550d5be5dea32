"""The classics, through the script a reader runs: they work on every stage, and alike."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "classics.py"


@pytest.fixture(scope="module")
def classics() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_perceptron_separates_the_two_clouds(stage: contract.Stage, classics: dict[str, Any]) -> None:
    assert classics["perceptron"](stage).accuracy == 1.0


def test_two_hidden_neurons_learn_xor(stage: contract.Stage, classics: dict[str, Any]) -> None:
    result = classics["learns_xor"](stage)
    assert result.accuracy == 1.0
    assert result.loss < 0.01
    np.testing.assert_array_equal(result.outputs > 0, [False, True, True, False])


def test_no_perceptron_gets_all_of_xor_right(stage: contract.Stage, classics: dict[str, Any]) -> None:
    assert classics["fails_at_xor"](stage).accuracy <= 0.75


@pytest.mark.parametrize("name", ["perceptron", "learns_xor"])
def test_all_stages_end_at_the_same_numbers(stage: contract.Stage, classics: dict[str, Any], name: str) -> None:
    first = classics[name](contract.load_stage("stage1_pure_python"))
    np.testing.assert_allclose(classics[name](stage).outputs, first.outputs, rtol=1e-10)


def test_script_prints_a_line_for_each_classic_and_one_for_an_unknown_stage() -> None:
    command = [sys.executable, str(SCRIPT)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done, wrong = (
        subprocess.run([*command, name], capture_output=True, text=True, env=environment, timeout=600)
        for name in ("stage2_numpy", "fortran")
    )
    assert (done.returncode, done.stderr) == (0, "")
    title, clouds, _, xor = done.stdout.splitlines()
    assert title == "stage 2: NumPy"
    assert "100% right" in clouds
    assert "100% right" in xor
    assert wrong.returncode != 0
    assert wrong.stderr.startswith("error: unknown stage 'fortran'; choose one of stage1_pure_python")
    assert len(wrong.stderr.splitlines()) == 1
