"""The addresses of the page Runs, through a real server."""

import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from groundup.studio.runs.mistakes import BATCH
from shared.contract import load_stage
from shared.data.datasets import load_dataset
from shared.training.checkpoints import build_network, load_checkpoint, save_checkpoint
from tests.studio_server import RunningStudio


def code(server: RunningStudio, name: str = "small") -> str:
    [found] = [each["code"] for each in server.get("/api/runs/list")["runs"] if each["name"] == name]
    return found


def test_a_run_is_listed_with_its_columns_and_its_mistakes(small: Path, studio_server: RunningStudio) -> None:
    listed = studio_server.get("/api/runs/list")
    assert [each["name"] for each in listed["runs"]] == ["small"]
    assert listed["folders"] == [str(small.parent)]
    run = code(studio_server)
    columns = studio_server.get(f"/api/runs/curves?run={run}")
    assert columns["trouble"] == []
    assert columns["steps"]["step"][-1] == 170
    assert columns["epochs"]["step"] == [85, 170]
    for _ in range(6000):
        matrix = studio_server.get(f"/api/runs/mistakes?run={run}")
        if matrix["state"] == "ready":
            break
        time.sleep(0.05)
    counts = matrix["counts"]
    cell = studio_server.get(f"/api/runs/cell?run={run}&label=3&prediction=5")
    assert cell["count"] == counts[3][5]
    surest = studio_server.get(f"/api/runs/surest?run={run}&count=3")
    assert len(surest["images"]) == 3


def test_the_network_of_a_run_is_drawn(small: Path, studio_server: RunningStudio) -> None:
    path = f"/api/runs/architecture?run={code(studio_server)}"
    drawn = studio_server.get(path)
    assert drawn["svg"].count("<svg") == 1
    assert drawn["alt"].startswith("The layers of 784-16-10 relu from top to bottom. input: 784, 0")
    assert drawn["note"] == ""
    (small / "last.safetensors").write_bytes(b"damaged")
    damaged = studio_server.get(path)
    assert damaged["svg"] == ""
    assert "last.safetensors" in damaged["note"]
    for name in ("last", "best"):
        (small / f"{name}.safetensors").unlink()
    assert studio_server.get(path)["note"] == "there is no checkpoint in this folder"


def test_the_weights_are_counted(small: Path, studio_server: RunningStudio) -> None:
    path = f"/api/runs/histograms?run={code(studio_server)}"
    counted = studio_server.get(path)
    checkpoint = load_checkpoint(small / "last.safetensors")
    assert [each["name"] for each in counted["layers"]] == ["1: 784 x 16", "2: 16 x 10"]
    for each, weights in zip(counted["layers"], checkpoint.parameters[::2], strict=True):
        assert sum(each["counts"]) == weights.size
        assert each["end"] == np.abs(weights).max()
        assert each["deviation"] == pytest.approx(weights.std(), rel=1e-4)
    (small / "last.safetensors").write_bytes(b"damaged")
    assert "last.safetensors" in studio_server.get(path)["file"]


def test_the_gradients_are_those_of_a_batch_of_the_training_set(small: Path, studio_server: RunningStudio) -> None:
    path = f"/api/runs/gradients?run={code(studio_server)}"
    counted, checkpoint = studio_server.get(path), load_checkpoint(small / "last.safetensors")
    assert (counted["file"], counted["count"]) == ("last.safetensors", BATCH)
    train = load_dataset().train
    chosen = np.linspace(0, len(train.x) - 1, BATCH).astype(int)
    network = build_network(load_stage("stage1_pure_python"), checkpoint)  # another stage than the studio's
    gradients = network.gradients(train.x[chosen].tolist(), train.y[chosen].tolist())
    for layer, gradient in zip(counted["layers"], map(np.array, gradients[::2]), strict=True):
        assert sum(layer["counts"]) == gradient.size
        assert layer["end"] == pytest.approx(np.abs(gradient).max(), rel=1e-4)
        assert layer["deviation"] == pytest.approx(gradient.std(), rel=1e-4)


def test_the_gradients_of_a_run_whose_data_is_not_at_hand_are_a_sentence(studio_server: RunningStudio) -> None:
    place, stage = studio_server.studio.folder / "runs" / "far" / "last.safetensors", load_stage("numpy")
    about = {"notes": {"dataset": "mnist", "data_dir": "/etc"}}
    save_checkpoint(place, stage, stage.network.Network([784, 10]), None, about)
    counted = studio_server.get(f"/api/runs/gradients?run={code(studio_server, 'far')}")
    assert counted["layers"] == []
    assert "/etc, which lies outside the folders that this studio was given" in counted["file"]


def test_a_run_gets_a_name_and_a_note(small: Path, studio_server: RunningStudio) -> None:
    run = code(studio_server)
    wrong = {"run": run, "title": "x" * 81, "note": ""}
    assert studio_server.refused("/api/runs/label", wrong) == "title: expected a text of at most 80 characters"
    assert studio_server.refused("/api/runs/label", {"run": run, "title": "x", "note": 3}).startswith("note: expected")
    assert "there is no such run" in studio_server.refused("/api/runs/label", {"run": "x", "title": "", "note": ""})
    studio_server.post("/api/runs/label", {"run": run, "title": "wide", "note": "<b>"})
    [listed] = studio_server.get("/api/runs/list")["runs"]
    assert (listed["name"], listed["note"], Path(listed["folder"]).name) == ("wide", "<b>", "small")
    (small / "label.json").write_text("[]")
    studio_server.refused("/api/runs/label", wrong)
    (small / "steps.jsonl").touch()  # so that it is read again
    [listed] = studio_server.get("/api/runs/list")["runs"]
    assert listed["trouble"] == ["label.json cannot be read: label.json should be a JSON object, and is list"]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("architecture", "there is no such run"),
        ("curves", "there is no such run"),
        ("curves?run=..%2F..%2Fetc", "there is no such run"),
        ("mistakes?run=%00", "there is no such run"),
        ("cell?run={code}&label=x&prediction=1", "label: expected a whole number, got 'x'"),
        ("cell?run={code}&label=1&prediction=-1", "prediction: expected a whole number"),
        ("cell?run={code}&label=10&prediction=1", "the classes are 0 to 9"),
        ("surest?run={code}&count=1e9", "count: expected a whole number"),
    ],
)
def test_wrong_questions_are_refused_with_a_sentence(
    small: Path, studio_server: RunningStudio, path: str, sentence: str
) -> None:
    run = code(studio_server)
    for _ in range(6000):
        if "cell" not in path or studio_server.get(f"/api/runs/mistakes?run={run}")["state"] == "ready":
            break
        time.sleep(0.05)
    assert sentence in studio_server.refused(f"/api/runs/{path.format(code=run)}")


def test_a_run_that_grows_or_comes_or_goes_is_told(small: Path, studio_server: RunningStudio) -> None:
    run = code(studio_server)

    def change() -> None:
        time.sleep(0.7)
        with open(small / "steps.jsonl", "a") as file:
            file.write("\n")
        time.sleep(0.7)
        shutil.copytree(small, small.parent / "another")

    thread = threading.Thread(target=change)
    thread.start()
    first, second, third = studio_server.events("/api/runs/watch", 3)
    thread.join()
    assert first == {"changed": [], "all": False}
    assert second == {"changed": [run], "all": False}
    assert third["all"]
    assert len(third["changed"]) == 1


def test_a_name_from_the_disk_is_data(small: Path, studio_server: RunningStudio) -> None:
    name = "<img src=x onerror=alert(1)>"
    small.rename(small.parent / name)
    assert code(studio_server, name)
    page: Any = studio_server.ask("GET", "/runs")
    assert page.status == 200
    assert b"onerror" not in page.body
    assert quote(name).encode() not in page.body
    json.dumps(studio_server.get("/api/runs/list"), allow_nan=False)
