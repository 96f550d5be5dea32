"""Images of the user's own through everything: training on every stage, look, resume, race and the studio."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.contract import is_emulated, load_stage
from shared.data.datasets import Form, check_apart, load_dataset
from shared.training.checkpoints import build_network, load_checkpoint, restore_optimizer, save_checkpoint
from tests.program import run
from tests.shared.data.own_sets import FLAGS, SHAPES, flags, shapes
from tests.stages import STAGE_PARAMS, USABLE_STAGES, without_announcement
from tests.wide import WIDE, widely

SETS = {"shapes": ("shapes", []), "flags": ("flags.npz", ["--colour"])}
"""Name -> (place, options)."""
PARTS = ("train", "test")
SMALL = ["--dataset", "shapes", "--resize", "6"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both sets, and in `run` a training of stage 2 on the shapes."""
    folder = tmp_path_factory.mktemp("own")
    shapes(folder / "shapes", train=8, test=4)
    flags(folder / "flags.npz", train=24, test=12)
    words = ("--dataset", folder / "shapes", "--hidden", 6, "--epochs", 1, "--quiet", "--run-dir", folder / "run")
    assert run("train", 2, *words) == 0
    return folder


@pytest.fixture(autouse=True)
def _there(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of the sets; figures, which have tests of their own, are not drawn."""
    monkeypatch.chdir(made)
    monkeypatch.setattr("groundup.race_results.draw", lambda *_: [])
    monkeypatch.setattr("groundup.look.write_page", lambda *_: None)


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert run(*arguments) == 2
    return without_announcement(capsys.readouterr().err)


def train(name: str, folder: Path, *more: object, stage: str = "stage2_numpy") -> int:
    place, options = SETS[name]
    hidden = [] if "--model" in more else ["--hidden", 6]
    return run(
        "train", stage, "--dataset", place, *options, *hidden, "--epochs", 1, "--run-dir", folder, "--quiet", *more
    )


@pytest.mark.parametrize("stage", widely([STAGE_PARAMS[i] for i in (2, 3, 1, 0)]))
@pytest.mark.parametrize("name", widely(SETS))
def test_a_set_goes_through_training_resuming_and_looking(
    stage: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(name, tmp_path / "run", stage=stage) == 0
    data = load_dataset(SETS[name][0], colour=name == "flags")
    checkpoint = load_checkpoint(tmp_path / "run" / "last.safetensors")
    stack = checkpoint.architecture.as_mlp()
    assert stack is not None
    assert stack.sizes == [data.train.x.shape[1], 6, data.classes]
    assert Form.from_notes(checkpoint.about_run["notes"]) == data.form
    monkeypatch.chdir(tmp_path)  # the place is known in every folder
    assert run("train", stage, "--resume", tmp_path / "run", "--epochs", 2, "--quiet") == 0
    capsys.readouterr()
    assert run("look", tmp_path / "run", "--json") == 0
    document = json.loads(without_announcement(capsys.readouterr().out))
    assert document["classes"] == list(SHAPES if name == "shapes" else FLAGS)
    assert [(each["class"], each["images"]) for each in document["by_class"]] == [
        (each, len(data.test) // data.classes) for each in document["classes"]
    ]
    rights = [document["confusion"][i][i] for i in range(data.classes)]
    assert [each["right"] for each in document["by_class"]] == rights


@pytest.mark.parametrize(
    ("name", "stages"), widely([("flags", USABLE_STAGES[:2]), ("flags", USABLE_STAGES), ("shapes", USABLE_STAGES)])
)
def test_the_stages_race_on_a_set_and_agree(
    name: str, stages: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, options = SETS[name]
    words = ["--dataset", place, *options, "--hidden", 4, "--epochs", 1, "--limit", 12, "--batch-size", 4, "--json"]
    assert run("race", *words, "--stages", ",".join(stages), "--out", tmp_path) == 0
    document = json.loads(without_announcement(capsys.readouterr().out))
    assert document["agree"]
    assert [each["stage"] for each in document["stages"]] == stages
    assert document["settings"]["dataset"] == name
    assert document["network"] == ([400, 4, 3] if name == "shapes" else [1152, 4, 4])


@pytest.mark.parametrize("stage", widely(STAGE_PARAMS[1:3]))
def test_first_and_last_layer_of_a_known_network_follow_the_set(stage: str, tmp_path: Path) -> None:
    assert train("flags", tmp_path / "run", "--model", "lenet5", "--schedule", "constant", stage=stage) == 0
    architecture = load_checkpoint(tmp_path / "run" / "last.safetensors").architecture
    assert (architecture.input_shape, architecture.output_shape) == ((3, 24, 16), (4,))
    assert run("look", tmp_path / "run", "--out", tmp_path / "look") == 0
    assert run("train", stage, "--resume", tmp_path / "run", "--epochs", 2, "--quiet") == 0


@pytest.mark.parametrize("augmentation", [["--augment-shift", 1], ["--augment-rotation", 20]])
def test_images_that_are_no_squares_are_moved_as_the_set_says(tmp_path: Path, augmentation: list[object]) -> None:
    stages = [stage for stage in USABLE_STAGES[1:] if WIDE or not is_emulated(stage)]
    for stage in stages:
        assert train("flags", tmp_path / stage, *augmentation, "--normalise", stage=stage) == 0
    first, *others = (load_checkpoint(tmp_path / stage / "last.safetensors") for stage in stages)
    for other in others:
        for one, same in zip(first.parameters, other.parameters, strict=True):
            np.testing.assert_allclose(one, same, rtol=1e-4, atol=1e-6)


def test_a_set_that_was_moved_is_found_with_data_dir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree("shapes", tmp_path / "before")
    words = ("--dataset", tmp_path / "before", "--hidden", 6, "--epochs", 1, "--quiet")
    assert run("train", 2, *words, "--run-dir", tmp_path / "run") == 0
    (tmp_path / "before").rename(tmp_path / "after")
    assert "there is no such folder" in error_of(capsys, "look", tmp_path / "run")
    assert run("look", tmp_path / "run", "--data-dir", tmp_path / "after") == 0
    resumed = ("train", 2, "--resume", tmp_path / "run", "--epochs", 2, "--quiet")
    assert run(*resumed, "--data-dir", tmp_path / "after") == 0
    assert run("look", tmp_path / "run") == 0  # the run goes on knowing it


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda p: [(p / part / "bar").rename(p / part / "arc") for part in PARTS], "bar was class 0 and is arc"),
        (lambda p: [shutil.rmtree(p / part / "ring") for part in PARTS], "in 2 classes now"),
    ],
)
def test_a_set_with_other_classes_is_not_the_one_that_was_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Any, sentence: str
) -> None:
    place = shutil.copytree("shapes", tmp_path / "set")
    assert run("train", 2, "--dataset", place, "--epochs", 1, "--run-dir", tmp_path / "run", "--quiet") == 0
    change(place)
    assert sentence in error_of(capsys, "train", 2, "--resume", tmp_path / "run", "--epochs", 2)
    told = error_of(capsys, "look", tmp_path / "run")
    assert sentence in told or "holds a network from 400 inputs to 3 outputs, but set has images" in told


def test_a_set_with_other_pictures_is_not_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = shutil.copytree("shapes", tmp_path / "set")
    assert run("train", 2, "--dataset", place, "--epochs", 1, "--run-dir", tmp_path / "run", "--quiet") == 0
    shutil.copy(place / "train" / "bar" / "0.png", place / "train" / "bar" / "1.png")
    assert "its training data is crc32" in error_of(capsys, "train", 2, "--resume", tmp_path / "run", "--epochs", 2)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*SMALL, "--model", "lenet5"], "lenet5 for images of 6 by 6 pixels in 3 classes: layer 4, Conv(16, 5): "),
        (["--dataset", "nothing-here"], "unknown data set 'nothing-here'; choose one of mnist-subset"),
        (["--dataset", "shapes", "--data-dir", "."], "--data-dir is for the full sets"),
        (["--dataset", "shapes", "--resize", "big"], "--resize: expected a size like 28"),
        (["--colour"], "colour and resize are for images of your own"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    told = error_of(capsys, "train", 2, *words, "--run-dir", tmp_path / "run")
    assert sentence in told
    assert len(told.splitlines()) == 1
    if "--data-dir" not in words:
        assert sentence in error_of(capsys, "race", "--stages", 2, *words, "--out", tmp_path / "race")


@pytest.mark.parametrize("place", [".", "test/new/run"])
def test_results_among_the_pictures_of_a_set_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    data = shutil.copytree("shapes", tmp_path / "set")
    before = sorted(data.rglob("*"))
    for words in (("train", 2, "--run-dir", data / place), ("race", "--stages", 2, "--out", data / place)):
        told = error_of(capsys, *words, "--dataset", data, "--epochs", 1)
        assert told == (
            f"error: {data / place}: this folder belongs to the data set {data}; choose another one for the results\n"
        )
    assert sorted(data.rglob("*")) == before


def test_results_beside_the_pictures_are_not(tmp_path: Path) -> None:
    check_apart(str(tmp_path), None, tmp_path / "runs" / "train")
    check_apart("mnist-subset", None, tmp_path)
    check_apart("mnist", tmp_path, tmp_path)


def test_what_was_done_with_the_data_is_a_line_for_the_user(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = shutil.copytree("shapes", tmp_path / "set")
    (place / "train" / "bar" / "notes.txt").write_text("x")
    monkeypatch.setattr("warnings.showwarning", _as_python_does)
    assert run("train", 2, "--dataset", place, "--epochs", 1, "--run-dir", tmp_path / "run", "--quiet") == 0
    (note,) = capfd.readouterr().err.splitlines()
    assert note == f"note: {place}/train: left out 1 files that are no pictures of a known kind, such as notes.txt"


def _as_python_does(message: Warning, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


@pytest.mark.parametrize(
    "changed",
    [
        {"data": {"shape": [1, 20, 20], "classes": ["bar", "cross"]}},
        {"dataset": "//server/share/set"},
        {"colour": "yes"},
    ],
)
def test_notes_of_strangers_lead_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any]
) -> None:
    path = shutil.copytree("run", tmp_path / "run") / "last.safetensors"
    checkpoint, stage = load_checkpoint(path), load_stage("2")
    about = {**checkpoint.about_run, "notes": {**checkpoint.about_run["notes"], **changed}}
    network, optimizer = build_network(stage, checkpoint), restore_optimizer(stage, checkpoint)
    save_checkpoint(path, stage, network, optimizer, about)
    for words in (["look", tmp_path / "run"], ["train", 2, "--resume", tmp_path / "run", "--epochs", 2]):
        told = error_of(capsys, *words)
        assert told.startswith("error: ")
        assert str(tmp_path / "run") in told
