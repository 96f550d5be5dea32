"""Which networks can answer: the one that ships, and the runs that take images of digits."""

from __future__ import annotations

import os

import numpy as np
import pytest

from groundup.studio.digits import networks
from shared.contract import load_stage
from shared.data.datasets import CLOTHES, load_dataset
from shared.training.checkpoints import CheckpointError, build_network
from shared.training.metrics import evaluate
from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_run


def test_the_shipped_network_is_as_good_as_it_says(tmp_path):
    trained = networks.load(tmp_path / "runs", networks.DEFAULT)
    stage = load_stage("numpy")
    _, accuracy, _ = evaluate(stage, build_network(stage, trained.checkpoint), load_dataset().test)
    assert accuracy == pytest.approx(0.975)
    assert trained.title == "784-128-10 relu"
    assert trained.about.endswith("of mnist-subset by stage 2: NumPy; 97.5 % of the test images right")
    assert networks.SHIPPED.stat().st_size < 450_000


def test_runs_are_listed_below_the_shipped_network_the_newest_first(tmp_path):
    runs = tmp_path / "runs"
    for age, (name, layers) in enumerate([("old", [784, 5, 10]), ("deep/er", SMALL_CNN)]):
        os.utime(a_run(runs / name, layers) / "last.safetensors", (1e9 + age, 1e9 + age))
    a_run(runs / "no digits", [2, 3, 10])
    a_run(runs / "no classes", [784, 3])
    (runs / "damaged").mkdir()
    (runs / "damaged" / "last.safetensors").write_bytes(b"nothing")
    listed = networks.listed(runs)
    assert [each["name"] for each in listed] == [networks.DEFAULT, "deep/er", "old"]
    assert [each["title"] for each in listed[1:]] == ["5 layers", "784-5-10 relu"]
    assert listed[2]["about"] == "2 epochs of mnist by stage 2: NumPy"


def test_a_folder_that_is_removed_while_they_are_listed_is_passed_over(tmp_path, monkeypatch):
    a_run(tmp_path / "runs" / "kept", [784, 5, 10])
    (tmp_path / "runs" / "gone" / "below").mkdir(parents=True)
    scan = os.scandir

    def scandir(path):
        if "gone" in os.fspath(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [each["name"] for each in networks.listed(tmp_path / "runs")] == [networks.DEFAULT, "kept"]


@pytest.mark.parametrize("name", ["default", "shipped"])
def test_a_run_may_have_any_name_that_a_folder_can_have(tmp_path, name):
    a_run(tmp_path / "runs" / name, [784, 5, 10])
    assert [each["name"] for each in networks.listed(tmp_path / "runs")] == [networks.DEFAULT, name]
    assert networks.load(tmp_path / "runs", name).title == "784-5-10 relu"
    assert networks.load(tmp_path / "runs", networks.DEFAULT).title == "784-128-10 relu"


def test_a_run_is_answered_by_its_best_epoch(tmp_path):
    folder = a_run(tmp_path / "runs" / "one", [784, 5, 10])
    assert networks.load(tmp_path / "runs", "one").checkpoint.path == folder / "last.safetensors"
    (folder / "best.safetensors").write_bytes((folder / "last.safetensors").read_bytes())
    assert networks.load(tmp_path / "runs", "one").checkpoint.path == folder / "best.safetensors"


def test_a_name_that_is_not_listed_is_refused(tmp_path):
    a_run(tmp_path / "elsewhere", [784, 5, 10])
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert [each["name"] for each in networks.listed(tmp_path / "runs")] == [networks.DEFAULT]
    for name in ("../elsewhere", "link", "", "/", None, 3):
        with pytest.raises(ValueError, match="network: there is no run"):
            networks.load(tmp_path / "runs", name)


def test_a_damaged_run_and_one_of_other_images_are_refused_by_name(tmp_path):
    (a_run(tmp_path / "runs" / "bad", [784, 5, 10]) / "last.safetensors").write_bytes(b"nothing")
    a_run(tmp_path / "runs" / "points", [2, 3, 2])
    with pytest.raises(CheckpointError, match=r"bad/last\.safetensors is no safetensors file"):
        networks.load(tmp_path / "runs", "bad")
    with pytest.raises(ValueError, match="network: points does not take the images of its data set, or images of 28"):
        networks.load(tmp_path / "runs", "points")


def test_a_run_brings_its_normalisation_and_the_names_of_its_classes(tmp_path):
    notes = {"dataset": "fashion-mnist", "normalisation": {"mean": 0.25, "deviation": 0.5}}
    a_run(tmp_path / "runs" / "clothes", [784, 5, 10], notes, loss="hinge")
    trained = networks.load(tmp_path / "runs", "clothes")
    assert trained.form.names == CLOTHES
    assert not trained.certain
    x = np.array([[0.0, 0.25, 1.0]], np.float32)
    np.testing.assert_array_equal(trained.learned(x), [[-0.5, 0.0, 1.5]])
