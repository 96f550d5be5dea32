"""The command that the page shows trains with exactly the settings that the run has."""

import shlex
from typing import Any

import pytest

from groundup.cli import main
from groundup.studio.runs.command import command
from groundup.train import DEFAULTS, Training, new_settings


@pytest.fixture
def settings_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that gives the settings that a command line asks for."""
    asked: list[dict[str, Any]] = []

    def of(settings: dict[str, Any], folder: object, resume: bool, overwrite: bool) -> Training:
        asked.append({"folder": str(folder), **settings})
        raise ValueError("this is all that the test wants to know")

    monkeypatch.setattr("groundup.train.Training.of", of)

    def ask(line: str) -> dict[str, Any]:
        program, *words = shlex.split(line)
        assert program == "groundup"
        with pytest.raises(SystemExit):
            main(words)
        return asked.pop()

    return ask


@pytest.mark.parametrize(
    ("stage", "given"),
    [
        ("stage2_numpy", {}),
        ("stage1_pure_python", {"hidden": "none", "epochs": 7}),
        ("stage3_c", {"optimizer": "adam", "learning_rate": 3e-05, "schedule": "step", "gamma": 0.5, "mine": True}),
        ("stage2_numpy", {"momentum": 0.9, "nesterov": True, "data_dir": "/a folder/it's", "download": True}),
        ("stage4_numba_cuda", {"validation": 0.1, "patience": 3, "monitor": "validation_accuracy", "seed": 5}),
        ("stage3_c", {"model": "lenet5"}),
        ("stage3_c", {"model": "lenet5", "normalise": False, "augment_shift": 0, "batch_size": 7}),
        ("stage1_pure_python", {"model": "fashion_cnn", "dataset": "fashion-mnist", "optimizer": "sgd"}),
        ("stage2_numpy", {"checkpoint_every": 10, "dropout": 0.25, "augment_rotation": 2.5, "dtype": "float64"}),
    ],
)
def test_the_command_asks_for_the_same_settings(settings_of: Any, stage: str, given: dict[str, Any]) -> None:
    settings = new_settings(stage, given)
    notes = {name: settings[name] for name in DEFAULTS}
    asked = settings_of(command(stage, notes, "runs/a b-again"))
    assert asked.pop("folder") == "runs/a b-again"
    assert asked == settings


def test_a_default_is_not_named() -> None:
    notes = new_settings("stage2_numpy", {"epochs": 3})
    assert command("stage2_numpy", notes, "x") == "groundup train numpy --epochs 3 --run-dir x"


@pytest.mark.parametrize("notes", [{}, {"dataset": "mnist"}])
def test_a_run_from_python_has_no_command(notes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="made by a program of its own"):
        command("stage2_numpy", notes, "x")


@pytest.mark.parametrize("value", [{"a": 1}, [1]])
def test_a_setting_that_no_option_takes_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="a setting that no option takes"):
        command("stage2_numpy", {**DEFAULTS, "hidden": value}, "x")


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown model"):
        command("stage2_numpy", {**DEFAULTS, "model": "<img>"}, "x")
