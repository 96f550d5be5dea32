"""The learner's own set: whole files that `groundup train` reads, after every addition and after a crash."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from groundup.cli import main
from groundup.studio.digits import own_set
from groundup.studio.digits.own_set import FOLDER, OwnSet
from shared.data.datasets import FILES, TRAIN_FILES, load_dataset
from shared.data.idx import DataError, idx_bytes, read_idx
from tests.groundup.studio.digits.made_runs import a_drawing


def test_the_set_is_the_subset_and_the_drawings_behind_it(tmp_path):
    own = OwnSet(tmp_path)
    assert own.about()["count"] == 0
    assert not own.folder.exists()
    own.add(a_drawing(0), 7)
    about = own.add(a_drawing(1), 3)
    assert (about["count"], about["counts"]) == (2, [0, 0, 0, 1, 0, 0, 0, 1, 0, 0])
    assert [each["label"] for each in about["latest"]] == [3, 7]
    assert base64.b64decode(about["latest"][0]["pixels"]) == a_drawing(1).tobytes()
    data, bundled = load_dataset("mnist", own.folder), load_dataset()
    np.testing.assert_array_equal(data.train.x[:6000], bundled.train.x)
    np.testing.assert_array_equal(data.train.x[6000:], np.stack([a_drawing(0), a_drawing(1)]) / np.float32(255))
    assert data.train.y[6000:].tolist() == [7, 3]
    np.testing.assert_array_equal(data.test.x, bundled.test.x)
    assert sorted(path.name for path in own.folder.iterdir()) == sorted(FILES)


def test_the_command_that_is_shown_trains_on_it(tmp_path, monkeypatch, capsys):
    OwnSet(tmp_path).add(a_drawing(0), 7)
    monkeypatch.chdir(tmp_path)
    words = own_set.command().split()
    assert words[0] == "groundup"
    words[words.index("--epochs") + 1] = "1"
    with pytest.raises(SystemExit) as end:
        main([*words[1:], "--hidden", "4"])
    assert not end.value.code, capsys.readouterr().err
    assert (tmp_path / "runs" / FOLDER / "best.safetensors").is_file()


def test_the_newest_drawing_can_be_taken_back(tmp_path):
    own = OwnSet(tmp_path)
    own.add(a_drawing(0), 7)
    own.add(a_drawing(1), 3)
    assert own.take_back()["counts"][7] == 1
    assert own.take_back()["count"] == 0
    with pytest.raises(ValueError, match="holds no drawing that could be taken back"):
        own.take_back()
    assert len(load_dataset("mnist", own.folder).train) == 6000


def test_an_image_without_a_label_from_a_crash_is_dropped(tmp_path):
    own = OwnSet(tmp_path)
    own.add(a_drawing(0), 7)
    path = own.folder / TRAIN_FILES[0]
    images = read_idx(path)
    path.write_bytes(idx_bytes(np.concatenate([images, images[:1]])))
    assert own.about()["count"] == 1
    assert own.add(a_drawing(2), 1)["count"] == 2
    assert load_dataset("mnist", own.folder).train.y[6000:].tolist() == [7, 1]


def test_a_failed_write_leaves_the_set_as_it_was(tmp_path, monkeypatch):
    own = OwnSet(tmp_path)
    own.add(a_drawing(0), 7)

    def full(contents):
        raise OSError(f"cannot write {next(iter(contents))}: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(own_set, "write_together", full)
        with pytest.raises(OSError, match="No space left"):
            own.add(a_drawing(1), 3)
    assert own.about()["count"] == 1
    assert len(load_dataset("mnist", own.folder).train) == 6001


def test_a_folder_with_another_set_is_left_alone(tmp_path):
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / TRAIN_FILES[0]).write_bytes(idx_bytes(np.zeros((3, 28, 28), np.uint8)))
    (folder / TRAIN_FILES[1]).write_bytes(idx_bytes(np.zeros(3, np.uint8)))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(DataError, match=r"my-digits holds a data set that is not the studio's"):
        OwnSet(tmp_path).add(a_drawing(0), 7)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_full_set_and_a_label_that_is_no_digit_are_refused(tmp_path, monkeypatch):
    own = OwnSet(tmp_path)
    for label in (10, -1, True, "3", None):
        with pytest.raises(ValueError, match="label: expected a digit from 0 to 9, got"):
            own.add(a_drawing(0), label)
    assert not own.folder.exists()
    own.add(a_drawing(0), 7)
    monkeypatch.setattr(own_set, "MOST", 1)
    with pytest.raises(ValueError, match="is full: it holds 1 drawings"):
        own.add(a_drawing(1), 7)
