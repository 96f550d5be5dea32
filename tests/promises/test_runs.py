"""Checkpoints and run folders of commit aa8f7fd open, and go on to where they would have gone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.data.datasets import load_dataset
from shared.training.checkpoints import build_network, load_checkpoint, restore_optimizer
from shared.training.metrics import read_metrics
from tests.program import run
from tests.promises.earlier_files import MADE, copied
from tests.stages import STAGE_PARAMS, without_announcement
from tests.wide import wide

CHAOS = 0.1
"""Stage 3's run has a learning rate of 0.1 and a momentum of 0.9, which throws three neurons about: on a machine whose
compiler adds in another order, a difference of 1e-16 was 2e-6 of the loss one epoch later, and 1e-2 after two more."""


def assert_same_epochs(found: list[dict[str, Any]], told: list[dict[str, Any]], tolerance: float) -> None:
    """Equal but for what the clock says, and for the last digits: BLAS and compilers round as the machine has it."""
    assert len(found) == len(told)
    for one, other in zip(found, told, strict=True):
        assert one.keys() == other.keys()
        for name in one.keys() - {"seconds", "samples_per_second"}:
            expected = other[name] if other[name] is None else pytest.approx(other[name], rel=tolerance)
            assert one[name] == expected, name


def test_a_checkpoint_opens_and_its_network_answers_the_same() -> None:
    expected = json.loads((MADE / "checkpoint.json").read_text())
    stage = contract.load_stage("numpy")
    checkpoint = load_checkpoint(MADE / "checkpoint.safetensors")
    network = build_network(stage, checkpoint)
    np.testing.assert_allclose(network.forward(np.array(expected["x"])), expected["scores"], rtol=1e-13)
    assert (network.activation, network.loss_name) == ("leaky_relu", "hinge")
    assert restore_optimizer(stage, checkpoint).state()["steps"] == 5
    assert checkpoint.about_run == {"made by": "aa8f7fd"}


@pytest.mark.parametrize("name", STAGE_PARAMS)
def test_every_stage_opens_a_checkpoint_of_another(name: str) -> None:
    expected = json.loads((MADE / "checkpoint.json").read_text())
    stage = contract.load_stage(name)
    network = build_network(stage, load_checkpoint(MADE / "checkpoint.safetensors"))
    answers = stage.arrays.to_host(network.forward(stage.arrays.asarray(expected["x"], "float64")))
    np.testing.assert_allclose(np.array(answers), expected["scores"], rtol=1e-12)


def test_the_best_network_of_a_run_is_as_good_as_its_record_says() -> None:
    stage = contract.load_stage("numpy")
    folder = MADE / "trained" / "stage2"
    checkpoint = load_checkpoint(folder / "best.safetensors")
    record = read_metrics(folder / "metrics.jsonl")[checkpoint.about_run["record"]["epoch"] - 1]
    test = load_dataset().test
    answers = np.array(build_network(stage, checkpoint).forward(test.x.astype("float64")))
    assert np.mean(answers.argmax(axis=1) == test.y) == pytest.approx(record.test_accuracy)


@pytest.mark.parametrize("name", STAGE_PARAMS)
def test_an_interrupted_run_goes_on_and_ends_where_the_old_program_ended(
    name: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(name.partition("_")[0], tmp_path)
    expected = json.loads((folder / "finished.json").read_text())
    ours = ["--data-dir", str(data)] if name.startswith(("stage1", "stage4")) else []
    assert run("train", name, "--resume", str(folder), *ours, "--json") == 0
    shown = capsys.readouterr()
    assert without_announcement(shown.err) == ""
    found = json.loads(shown.out)
    assert expected.keys() <= found.keys()
    assert found["monitor"] == expected["monitor"]
    if name == "stage3_c":
        assert_same_epochs(found["epochs"][:1], expected["epochs"][:1], 0)
        assert_same_epochs(found["epochs"][:2], expected["epochs"][:2], 0.01)
        assert_same_epochs(found["epochs"], expected["epochs"], CHAOS)
        return
    tolerance = 1e-4 if found["settings"]["dtype"] == "float32" else 1e-9
    assert_same_epochs(found["epochs"], expected["epochs"], tolerance)
    assert found["best_epoch"] == expected["best_epoch"]


@wide
def test_a_run_from_its_beginning_ends_there_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = json.loads((MADE / "trained" / "stage2" / "finished.json").read_text())
    settings = load_checkpoint(MADE / "trained" / "stage2" / "last.safetensors").about_run["notes"]
    options = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items() if value not in (None, False)]
    assert run("train", "2", *options, "--run-dir", str(tmp_path / "run"), "--json") == 0
    assert_same_epochs(json.loads(capsys.readouterr().out)["epochs"], expected["epochs"], 1e-9)
