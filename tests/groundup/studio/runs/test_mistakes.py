"""The confusion matrix and the images of the page are those of the library."""

import base64
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from groundup import inside
from groundup.studio.answers import Refused
from groundup.studio.runs.folders import Folders, RunFolder
from groundup.studio.runs.mistakes import Answers, Asking, Mistakes, document
from groundup.trained import beliefs
from shared import contract
from shared.architectures import Architecture
from shared.data.datasets import load_dataset, load_test
from shared.layers import Activate, Conv, Dense, Flatten, MaxPool
from shared.training.checkpoints import build_network, load_checkpoint, save_checkpoint
from shared.training.metrics import evaluate


def answers_of(folder: Path) -> Answers:
    mistakes = Mistakes([folder])
    [run] = Folders(folder, []).all()
    assert mistakes.ask(run).finished.wait(1200)
    return mistakes.ready(run)


def test_the_matrix_is_that_of_the_networks_own_answers(small: Path, tmp_path: Path) -> None:
    found = answers_of(tmp_path)
    stage, checkpoint = contract.load_stage("numpy"), load_checkpoint(small / "best.safetensors")
    test = load_dataset().test
    _, accuracy, predictions = evaluate(stage, build_network(stage, checkpoint), test)
    matrix = found.matrix()
    assert matrix["counts"] == inside.confusion_matrix(test.y, predictions, 10).tolist()
    assert matrix["right"] / matrix["of"] == pytest.approx(accuracy)
    assert (matrix["file"], matrix["epoch"], matrix["dataset"]) == ("best.safetensors", 2, "mnist-subset")

    total = 0
    for label in range(10):
        for prediction in range(10):
            cell = found.cell(label, prediction)
            total += cell["count"]
            assert cell["count"] == matrix["counts"][label][prediction]
            sure = [each["confidence"] for each in cell["images"]]
            assert sure == sorted(sure, reverse=True)
            for each in cell["images"]:
                assert (each["label"], each["prediction"]) == (label, prediction)
                assert test.y[each["image"]] == label
                assert predictions[each["image"]] == prediction
    assert total == 1000

    surest = found.surest(24)
    assert surest["count"] == 1000 - matrix["right"]
    wrong = inside.most_wrong(beliefs(checkpoint, test.x), test.y, 24)
    assert [each["image"] for each in surest["images"]] == wrong.tolist()
    shown = surest["images"][0]
    pixels = np.frombuffer(base64.b64decode(shown["pixels"]), np.uint8)
    np.testing.assert_allclose(pixels / 255, test.x[shown["image"]], atol=1e-6)


@pytest.mark.parametrize(("label", "prediction"), [(10, 0), (0, 10)])
def test_a_cell_that_is_not_there_is_refused(small: Path, tmp_path: Path, label: int, prediction: int) -> None:
    with pytest.raises(ValueError, match="the classes are 0 to 9"):
        answers_of(tmp_path).cell(label, prediction)


def test_a_convolutional_network_is_asked_too(tmp_path: Path) -> None:
    layers = (Conv(2, 3), Activate("relu"), MaxPool(4), Flatten(), Dense(10))
    stage = contract.load_stage("numpy")
    network = stage.network.Network(Architecture((1, 28, 28), layers), seed=3)
    notes = {"dataset": "mnist-subset", "data_dir": None, "normalisation": {"mean": 0.13, "deviation": 0.3}}
    save_checkpoint(tmp_path / "runs" / "r" / "last.safetensors", stage, network, None, {"notes": notes})
    found = answers_of(tmp_path)
    test = load_test()
    scores = np.asarray(network.forward(((test.x - 0.13) / 0.3).astype(np.float32)))
    assert np.mean(scores.argmax(axis=1) == found.beliefs.argmax(axis=1)) > 0.998
    np.testing.assert_allclose(found.beliefs, inside.probabilities(scores), atol=1e-4)


def test_the_page_is_told_how_far_it_is(small: Path, tmp_path: Path) -> None:
    mistakes = Mistakes([tmp_path])
    [run] = Folders(tmp_path, []).all()
    with mistakes._one:  # another network is being asked
        asking = mistakes.ask(run)
        assert document(asking) == {"state": "asking", "done": 0, "of": 0}
        with pytest.raises(Refused, match="still being asked"):
            mistakes.ready(run)
        assert mistakes.ask(run) is asking
    assert asking.finished.wait(1200)
    assert document(asking)["state"] == "ready"
    assert asking.done == asking.of == 1000


def asked_and_then_trained_on(small: Path, folder: Path) -> tuple[Mistakes, RunFolder, Asking]:
    """The one run of a folder after its network was asked, and after its checkpoint has become newer."""
    mistakes = Mistakes([folder])
    [run] = Folders(folder, []).all()
    first = mistakes.ask(run)
    assert first.finished.wait(1200)
    later = time.time() + 10
    os.utime(small / "best.safetensors", (later, later))
    return mistakes, run, first


def test_a_newer_checkpoint_is_asked_anew(small: Path, tmp_path: Path) -> None:
    mistakes, run, first = asked_and_then_trained_on(small, tmp_path)
    assert mistakes.ask(run) is not first


def test_the_images_behind_a_matrix_are_those_of_its_checkpoint(small: Path, tmp_path: Path) -> None:
    mistakes, run, first = asked_and_then_trained_on(small, tmp_path)
    assert mistakes.ready(run, document(first)["version"]) is first.answers
    with pytest.raises(Refused, match="the run has a newer checkpoint: ask again"):
        mistakes.ready(run, "best.safetensors-1-1")


def refusal(folder: Path) -> str:
    mistakes = Mistakes([folder])
    [run] = Folders(folder, []).all()
    asking = mistakes.ask(run)
    assert asking.finished.wait(1200)
    assert document(asking)["state"] == "refused"
    return asking.refusal


def test_a_damaged_checkpoint_is_a_sentence(small: Path, tmp_path: Path) -> None:
    raw = bytearray((small / "best.safetensors").read_bytes())
    raw[-1] ^= 1
    (small / "best.safetensors").write_bytes(raw)
    assert "is damaged: its contents do not match their checksum" in refusal(tmp_path)


def test_a_run_that_does_not_name_its_data_is_a_sentence(tmp_path: Path) -> None:
    stage = contract.load_stage("numpy")
    save_checkpoint(tmp_path / "runs" / "r" / "last.safetensors", stage, stage.network.Network([784, 10]), None, {})
    assert "does not say which images it was trained on" in refusal(tmp_path)


@pytest.mark.parametrize("place", ["/etc", "../../somewhere", "~/secret"])
def test_a_run_does_not_lead_to_data_outside_the_folders_that_were_given(tmp_path: Path, place: str) -> None:
    stage = contract.load_stage("numpy")
    notes = {"dataset": "mnist", "data_dir": place}
    network = stage.network.Network([784, 10])
    save_checkpoint(tmp_path / "runs" / "r" / "last.safetensors", stage, network, None, {"notes": notes})
    assert "lies outside the folders that this studio was given" in refusal(tmp_path)


def test_data_within_the_folders_is_looked_for(tmp_path: Path) -> None:
    stage = contract.load_stage("numpy")
    notes = {"dataset": "mnist", "data_dir": str(tmp_path / "data")}
    network = stage.network.Network([784, 10])
    save_checkpoint(tmp_path / "runs" / "r" / "last.safetensors", stage, network, None, {"notes": notes})
    assert "mnist: missing" in refusal(tmp_path)


def test_a_run_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs" / "r").mkdir(parents=True)
    (tmp_path / "runs" / "r" / "metrics.jsonl").write_text(json.dumps({}))
    [run] = Folders(tmp_path, []).all()
    with pytest.raises(Refused, match="no checkpoint yet"):
        Mistakes([tmp_path]).ask(run)
