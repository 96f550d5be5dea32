"""What a stranger's checkpoint says about its training: checked against its own network, and never a download."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy

from groundup.run_notes import check_size
from groundup.train import resumed_settings
from groundup.trained import check_fit, settings_of
from shared.architectures import NAMED, Architecture, named
from shared.data import datasets
from shared.data.datasets import FORMS
from shared.layers import Conv, Dense, Flatten, MaxPool
from shared.training.checkpoints import Checkpoint, CheckpointError, checksum, load_checkpoint
from tests.program import run
from tests.promises.earlier_files import MADE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(MADE / "trained" / "stage2", tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def forge(folder: Path) -> Callable[..., Path]:
    """A run whose checkpoint has other notes, and a checksum that is right."""

    def forged(**notes: Any) -> Path:
        path = folder / "last.safetensors"
        content = path.read_bytes()
        tensors = safetensors.numpy.load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        about = json.loads(header["__metadata__"]["groundup"])
        about["progress"]["notes"] |= notes
        text = json.dumps(about)
        path.write_bytes(safetensors.numpy.save(tensors, {"groundup": text, "sha256": checksum(text, tensors)}))
        return folder

    return forged


def test_the_settings_of_an_own_run_are_those_that_it_had(folder: Path) -> None:
    settings = resumed_settings(folder, {})
    assert settings["dataset"] == "mnist-subset"
    assert settings_of(load_checkpoint(folder / "last.safetensors"))["dataset"] == "mnist-subset"


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ({"dataset": "../../etc"}, "does not say which images"),
        ({"data_dir": "//server/share"}, "data_dir is '//server/share', no folder of this machine"),
        ({"hidden": "100000000"}, "hidden: '100000000' is not the network in the file"),
        ({"model": "lenet5"}, "model: 'lenet5' is not the network in the file"),
        ({"epochs": 10**300}, "epochs: expected a whole number of at least 0, got 1000"),
        ({"batch_size": 0}, "settings that groundup train does not write: batch_size: expected at least 1, got 0"),
        ({"optimizer": "momentum"}, "optimizer: it is 'momentum', but its network has 'adam'"),
    ],
)
def test_settings_that_no_run_has_are_refused_with_the_file_s_name(
    forge: Callable[..., Path], notes: dict[str, Any], message: str
) -> None:
    folder = forge(**notes)
    with pytest.raises(CheckpointError, match=message) as caught:
        resumed_settings(folder, {})
    assert str(folder / "last.safetensors") in str(caught.value)


def test_notes_start_no_download_and_make_no_folder(
    forge: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(datasets, "download", lambda *arguments: asked.append(arguments))
    folder = forge(dataset="mnist", data_dir=str(tmp_path / "made"), download=True)
    assert run("look", str(folder)) == 2
    assert run("train", "2", "--resume", str(folder)) == 2
    assert "or fetch them with --download" in capsys.readouterr().err
    assert asked == []
    assert not (tmp_path / "made").exists()
    assert not (folder / "look").exists()
    assert resumed_settings(folder, {"download": True})["download"] is True


def test_settings_that_no_training_can_have_are_told_with_the_run_s_name(
    forge: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = forge(validation=5e-324)
    assert run("train", "2", "--resume", str(folder), "--quiet") == 2
    told = capsys.readouterr().err
    assert "leaves one part without" in told
    assert str(folder) in told


GREEDY = {
    "large images": [*[Conv(1, 1, padding=500)] * 5, Flatten(), Dense(10)],
    "large windows of a pool": [Conv(1, 1, padding=300), MaxPool(300, 1), MaxPool(300), Flatten(), Dense(10)],
    "many channels": [*[Conv(64, 5, padding=2)] * 5, Flatten(), Dense(10)],
}


@pytest.mark.parametrize("name", GREEDY)
def test_a_network_that_takes_minutes_to_look_into_is_refused(name: str, folder: Path) -> None:
    checkpoint = load_checkpoint(folder / "last.safetensors")
    strange = Checkpoint(**{**vars(checkpoint), "architecture": Architecture((1, 28, 28), tuple(GREEDY[name]))})
    with pytest.raises(CheckpointError, match=r"one image takes .* operations and .* numbers, more than the"):
        check_fit(strange, "mnist-subset", FORMS["mnist-subset"])


@pytest.mark.parametrize("name", NAMED)
def test_every_known_network_is_small_enough(name: str, folder: Path) -> None:
    checkpoint = load_checkpoint(folder / "last.safetensors")
    check_size(Checkpoint(**{**vars(checkpoint), "architecture": named(name)}))
