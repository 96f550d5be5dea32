"""Which run folders the page finds, and that it reads nothing outside them."""

import os
import sys
from pathlib import Path

import pytest

from groundup.studio.answers import Refused
from groundup.studio.runs.folders import DEPTH, Folders


def make(folder: Path, name: str = "last.safetensors", at: float | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("x")
    if at is not None:
        os.utime(folder / name, (at, at))
    return folder


def names(folders: Folders) -> list[str]:
    return [each.name for each in folders.all()]


def test_every_folder_with_a_file_of_a_run_is_found_the_newest_first(tmp_path: Path) -> None:
    make(tmp_path / "runs" / "a", at=1000)
    make(tmp_path / "runs" / "deep" / "b", "metrics.jsonl", at=3000)
    make(tmp_path / "runs" / "c", "steps.jsonl", at=2000)
    make(tmp_path / "runs" / "race", "results.json")
    make(tmp_path / "elsewhere")
    assert names(Folders(tmp_path, [])) == [os.path.join("deep", "b"), "c", "a"]


def test_folders_of_the_command_line_are_looked_into_and_a_file_stands_for_its_folder(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one", at=1000), make(tmp_path / "other", at=2000)
    folders = Folders(tmp_path / "empty", [one, other / "last.safetensors", one])
    assert names(folders) == ["other", "one"]
    assert folders.named(folders.all()[1].code).path == one


def test_an_unknown_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no such run"):
        Folders(tmp_path, []).named("../../etc")


def test_folders_that_are_too_deep_or_hidden_are_left_out(tmp_path: Path) -> None:
    make(tmp_path / "runs" / Path(*"x" * DEPTH))
    make(tmp_path / "runs" / Path(*"y" * (DEPTH + 1)))
    make(tmp_path / "runs" / ".trash")
    assert names(Folders(tmp_path, [])) == [str(Path(*"x" * DEPTH))]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right on Windows")
def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    secret = make(tmp_path / "secret")
    run = make(tmp_path / "runs" / "r", "metrics.jsonl")
    (run / "last.safetensors").symlink_to(secret / "last.safetensors")
    (tmp_path / "runs" / "link").symlink_to(secret)
    [found] = Folders(tmp_path, []).all()
    assert found.name == "r"
    assert found.file("last.safetensors") is None
    assert found.file("metrics.jsonl") == run / "metrics.jsonl"


@pytest.mark.skipif(sys.platform != "linux", reason="such a name is possible on Linux only")
def test_a_name_that_is_no_text_is_shown_all_the_same(tmp_path: Path) -> None:
    make(Path(os.fsdecode(os.fsencode(tmp_path / "runs") + b"/caf\xe9")))
    [found] = Folders(tmp_path, []).all()
    assert found.name == "caf?"
    assert found.file("last.safetensors") is not None
