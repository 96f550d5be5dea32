"""What the list tells about a run: true for a sound one, a sentence for a damaged one."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from groundup.studio.runs.folders import FILES, Folders, RunFolder
from groundup.studio.runs.overview import details, overview
from shared.training.metrics import read_metrics
from shared.training.run_facts import DONE, RUNNING, STOPPED, UNKNOWN
from shared.training.runs import BEST, FACTS, LAST, METRICS, STEPS
from shared.training.step_records import read_line


def found(folder: Path) -> RunFolder:
    [run] = Folders(folder, []).all()
    return run


def told(folder: Path) -> dict[str, Any]:
    run = found(folder)
    about = overview(run)
    json.dumps({**about, **details(run, None)}, allow_nan=True)  # all of it can be sent
    return about


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_names_of_the_files_are_those_of_the_training() -> None:
    assert (LAST, BEST, METRICS, STEPS, FACTS) == FILES


def test_a_sound_run_is_told_as_its_own_files_have_it(small: Path, tmp_path: Path) -> None:
    about = told(tmp_path)
    records = read_metrics(small / "metrics.jsonl")
    last = read_line((small / "steps.jsonl").read_text().splitlines()[-1])
    assert last is not None
    assert about["trouble"] == []
    assert (about["name"], about["state"], about["reason"]) == ("small", DONE, "")
    assert (about["stage"], about["network"], about["dataset"]) == ("stage2_numpy", "784-16-10 relu", "mnist-subset")
    assert (about["epochs_done"], about["epochs"], about["steps_done"], about["steps"]) == (2, 2, 170, 170)
    assert about["accuracy"] == {"part": "validation", "value": records[-1].validation_accuracy, "epoch": 2}
    assert (about["monitor"], about["best_epoch"]) == ("validation_loss", 2)
    assert (about["train_loss"], about["train_loss_of"]) == (last.loss, "the last steps")
    assert about["optimizer"] == "SGD, learning_rate 0.2"
    assert about["layers"] == ["1: 784 x 16", "2: 16 x 10"]
    assert about["left"] is None
    assert "--hidden 16" in about["command"]["text"]


def test_a_run_that_goes_on_has_a_time_left_and_one_that_was_killed_does_not(small: Path, tmp_path: Path) -> None:
    facts = small / "run.json"
    sessions = json.loads(facts.read_text())["sessions"]
    change(facts, state=RUNNING, epochs=4, sessions=[{**sessions[0], "ended": None}])
    about = told(tmp_path)
    if os.name != "nt":
        assert about["state"] == RUNNING
        steps = [read_line(line) for line in (small / "steps.jsonl").read_text().splitlines()]
        assert steps[0] is not None
        assert steps[-1] is not None
        speed = (steps[-1].step - steps[0].step) / (steps[-1].seconds - steps[0].seconds)
        assert about["left"] == pytest.approx(170 / speed)
    change(facts, sessions=[{**sessions[0], "mark": sessions[0]["mark"] + "0", "ended": None}])
    about = told(tmp_path)
    if os.name != "nt":
        assert about["state"] == STOPPED
        assert "it was killed" in about["reason"]
        assert about["left"] is None


def test_a_run_of_an_earlier_version_is_told_from_its_checkpoint(small: Path, tmp_path: Path) -> None:
    (small / "run.json").unlink()
    (small / "steps.jsonl").unlink()
    about = told(tmp_path)
    assert about["trouble"] == []
    assert (about["state"], about["stage"], about["epochs_done"], about["steps"]) == (DONE, "stage2_numpy", 2, 170)
    assert about["layers"] == []
    columns = details(found(tmp_path), None)
    assert columns["steps"] == {}
    assert columns["epochs"]["step"] == [85, 170]


def test_an_unfinished_run_of_an_earlier_version_is_not_called_running(small: Path, tmp_path: Path) -> None:
    (small / "run.json").unlink()
    raw = (small / "last.safetensors").read_bytes()
    (small / "last.safetensors").write_bytes(raw.replace(b'\\"epochs\\": 2', b'\\"epochs\\": 5'))
    about = told(tmp_path)
    assert about["state"] == UNKNOWN
    assert "earlier version" in about["reason"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 3000, b"[" * 100_000, None, "folder"])
def test_no_damage_to_a_file_breaks_the_list(small: Path, tmp_path: Path, name: str, content: Any) -> None:
    path = small / name
    whole = path.read_bytes()
    path.unlink()
    if content == "folder":
        path.mkdir()
    else:
        path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    about = told(tmp_path)
    assert about["name"] == "small"
    if name == "run.json" and content != "folder":
        assert any("run.json" in each for each in about["trouble"])
    if name == "last.safetensors" and content not in ("folder", None):
        assert about["network"] == "784-16-10 relu"  # the best checkpoint says so, too
        assert about["trouble"][0].startswith("last.safetensors cannot be read: ")


def test_strange_values_in_a_header_are_shown_as_what_they_are(small: Path, tmp_path: Path) -> None:
    def header(**progress: Any) -> bytes:
        about = {
            "format": 1,
            "stage": "<b>",
            "layer_sizes": ["<script>"],
            "activation": 7,
            "loss": [],
            "progress": progress,
        }
        text = json.dumps({"__metadata__": {"groundup": json.dumps(about), "sha256": "0"}}).encode()
        return len(text).to_bytes(8, "little") + text

    for name in ("run.json", "metrics.jsonl", "steps.jsonl", "best.safetensors"):
        (small / name).unlink()
    for progress in (
        {},
        {"position": 7, "settings": [], "notes": "x"},
        {"position": {"epoch": "many", "best_value": "<i>", "best_epoch": -3}, "settings": {"epochs": 1e300}},
        {"notes": {"model": "<img src=x onerror=alert(1)>" * 100, "dataset": {}}, "settings": {"monitor": 3}},
    ):
        (small / "last.safetensors").write_bytes(header(**progress))
        about = told(tmp_path)
        assert about["stage"] is None
        assert about["state"] == UNKNOWN
        assert len(about["network"]) <= 300
        assert about["command"]["text"] == ""


def test_a_run_is_listed_while_its_folder_goes_away(small: Path, tmp_path: Path) -> None:
    run = found(tmp_path)
    shutil.rmtree(small)
    about = overview(run)
    assert about["trouble"] == ["there is no checkpoint in this folder"]
    assert about["changed"] == 0.0


def test_a_header_that_claims_to_be_huge_is_not_read(small: Path, tmp_path: Path) -> None:
    (small / "best.safetensors").unlink()
    (small / "last.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}" * 100)
    begin = time.process_time()
    (trouble,) = told(tmp_path)["trouble"]
    assert trouble.startswith("last.safetensors cannot be read: it is no checkpoint, or its header is damaged")
    assert time.process_time() - begin < 5


def test_files_that_may_not_be_read_are_sentences(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *arguments: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    for function in ("tail", "read_epochs"):
        monkeypatch.setattr(f"groundup.studio.runs.curves.{function}", refuse)
    for function in ("read_about", "read_facts"):
        monkeypatch.setattr(f"groundup.studio.runs.overview.{function}", refuse)
    about = overview(found(tmp_path))
    assert len(about["trouble"]) == 5
    assert all("Permission denied" in each for each in about["trouble"])
    monkeypatch.setattr(Path, "is_file", refuse)
    assert overview(found(tmp_path))["trouble"] == ["there is no checkpoint in this folder"]
