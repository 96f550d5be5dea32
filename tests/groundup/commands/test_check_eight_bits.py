"""`groundup check --int8`: a trained network in eight bits beside itself, as tables and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from groundup import eight_bits
from groundup.train import DEFAULTS
from groundup.trained import as_learned, load_data, open_checkpoint
from shared.contract import load_stage
from shared.data.datasets import Dataset, Split, load_dataset
from shared.data.normalisation import Normalisation
from shared.training import loop
from shared.training.settings import QUIET, Saving, TrainingSettings
from tests.program import ran

FULL = load_dataset("mnist-subset")


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as `groundup train` would leave it, on normalised images."""
    stage, folder = load_stage("numpy"), tmp_path_factory.mktemp("run")
    few = Split(FULL.train.x[:512], FULL.train.y[:512])
    normalisation = Normalisation.of(few.x)
    data = normalisation.dataset(Dataset("mnist-subset", few, few, 10))
    saving = Saving(folder, notes=DEFAULTS | normalisation.as_note())
    network, optimizer = stage.network.Network([784, 16, 10], seed=1), stage.optimizers.Adam(0.005)
    loop.train(stage, network, optimizer, data.train, TrainingSettings(5), saving=saving, hooks=QUIET)
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    ended, out, err = ran(capsys, "check", *arguments)
    assert ended == code
    return err if code else out


def test_the_document_has_answers_size_time_and_steps(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(capsys, "--int8", run_dir, "--calibrate", 50, "--json"))
    assert (document["images"], document["calibrated_on"], document["stage"]) == (1000, 50, "stage 2: NumPy")
    floats, whole = document["numbers"]["float32"], document["numbers"]["int8"]
    assert document["same_answers"] >= 980
    assert abs(floats["right"] - whole["right"]) <= 1000 - document["same_answers"]
    assert floats["right"] > 700
    assert floats["bytes"] == 4 * (784 * 16 + 16 + 16 * 10 + 10)
    # int8 weights, int32 biases, a float32 scale for each output, one for the input and one for the hidden numbers
    assert whole["bytes"] == 784 * 16 + 160 + 4 * 26 + 4 * 26 + 4 + 4
    assert floats["seconds"] > 0 < whole["seconds"]
    steps = {step["step"]: step for step in document["steps"]}
    assert list(steps) == ["input", "1 Dense, relu", "3 Dense"]
    assert steps["3 Dense"]["reach"] is None
    assert steps["1 Dense, relu"]["smallest"] == 0
    assert 0.5 < steps["input"]["reach"] / steps["input"]["largest"] < 2
    assert all(0 < step["error"] < 0.05 for step in steps.values())


def test_the_tables_say_the_same(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "2", "--int8", run_dir)
    for part in (
        "784-16-10 relu, 5 epochs of mnist-subset by stage 2: NumPy",
        "1,000 test images",
        "The same answer for ",
        "int8 has 25 % of the size, and is ",
        "on stage 2: NumPy.",
        "1 Dense, relu",
        "Scales from 200 training images.",
    ):
        assert part in text, text


def test_the_loss_of_a_step_is_what_its_roundings_make_of_it(run_dir: Path) -> None:
    checkpoint = open_checkpoint(run_dir)
    data = as_learned(checkpoint, load_data(checkpoint))
    network = eight_bits.in_eight_bits(checkpoint, data, 50)
    x = data.test.x[:150]  # more than go through at a time
    first, hidden, last = eight_bits.losses(network, x)
    scale = float(network.steps[0].scale)
    rounded = np.clip(np.rint(x / scale), -128, 127) * scale
    assert first["error"] == pytest.approx(np.linalg.norm(rounded - x) / np.linalg.norm(x), rel=1e-4)
    assert (first["smallest"], first["largest"]) == (x.min(), x.max())
    assert hidden["reach"] == pytest.approx(127 * float(network.steps[1].scale))
    expected = network.real(x)
    off = np.linalg.norm(network.forward(x) - expected) / np.linalg.norm(expected)
    assert last["error"] == pytest.approx(off, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["2", "3", "--int8"], "--int8 takes one stage at most, and no --compile, --dtype and --full"),
        (["1", "--int8"], "stage1_pure_python has no product of whole numbers; choose stage2_numpy or stage3_c"),
        (["--calibrate", "6001", "--int8"], "--calibrate: expected a number of images from 1 to 6,000, got 6,001"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], sentence: str, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = said(capsys, *arguments, run_dir, code=2)
    assert error.startswith(f"error: {sentence}")
    assert error.count("\n") == 1


def test_options_of_eight_bits_need_eight_bits_and_these_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--calibrate", "--data-dir"):
        assert said(capsys, option, 5, code=2) == f"error: {option} belongs to --int8\n"
    assert "holds no run" in said(capsys, "--int8", tmp_path, code=2)
