"""The studio knows runs on images of the user's own: Digits asks every stage, Runs shows what they are taken for."""

from __future__ import annotations

import base64
import json
import shlex
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundup.studio.digits import embedded, networks
from groundup.studio.digits.pixels import drawing as checked
from groundup.studio.runs.command import command
from groundup.train import Training, new_settings, run
from shared.contract import load_stage
from shared.data.datasets import Form, load_dataset, place_of
from shared.machine import processes
from shared.training.checkpoints import load_checkpoint
from shared.training.settings import QUIET
from tests.shared.data.own_sets import FLAGS, SHAPES, flags, shapes
from tests.stages import USABLE_STAGES
from tests.studio_server import RunningStudio

OF_FLAGS = {"dataset": "flags.npz", "colour": True}
RUNS: dict[str, dict[str, Any]] = {
    "shapes": {"dataset": "shapes", "hidden": "5", "normalise": True},
    "flags": {**OF_FLAGS, "hidden": "none"},
    "lenet": {**OF_FLAGS, "model": "lenet5", "hidden": None, "activation": None},
}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder runs of a studio that was started in tmp_path, with three runs on two sets that lie beside it."""
    shapes(tmp_path / "shapes", train=6, test=4)
    flags(tmp_path / "flags.npz", train=16, test=12)
    monkeypatch.chdir(tmp_path)
    for name, settings in RUNS.items():
        given = {name: value for name, value in settings.items() if value is not None}
        given = {**given, "dataset": place_of(settings["dataset"]), "epochs": 1}
        asked = Training.of(new_settings("stage2_numpy", given), tmp_path / "runs" / name, False, False)
        run(load_stage("numpy"), asked, lambda network, data: QUIET, live=False)
    return tmp_path / "runs"


def drawing(name: str) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, 400 if name == "shapes" else 24 * 16)


@pytest.mark.parametrize("name", RUNS)
def test_every_floor_answers_a_drawing_of_the_set_s_shape(name: str, runs: Path, studio_server: RunningStudio) -> None:
    assert name in [each["name"] for each in studio_server.get("/api/digits/networks")["networks"]]
    network = studio_server.get(f"/api/digits/network?name={name}")
    assert network["shape"] == ([1, 20, 20] if name == "shapes" else [3, 24, 16])
    assert network["classes"] == list(SHAPES if name == "shapes" else FLAGS)
    pixels = drawing(name)
    floors = [number for number, stage in enumerate(USABLE_STAGES, 1) if stage]
    asked = {"network": name, "pixels": pixels.tolist()}
    answers = studio_server.post("/api/digits/answer", {**asked, "floors": floors})["answers"]
    assert [each["number"] for each in answers] == floors
    for answer in answers:
        np.testing.assert_allclose(answer["probabilities"], answers[0]["probabilities"], atol=1e-5)
    reasons = studio_server.post("/api/digits/reasons", asked)
    assert reasons["winner"] == int(np.argmax(answers[0]["scores"]))
    assert reasons["pull"]["shape"] == [len(pixels)]
    refused = studio_server.refused("/api/digits/answer", {**asked, "pixels": [1] * 784, "floors": [2]})
    assert refused.startswith(f"pixels: expected a list of {len(pixels)} numbers, {network['shape'][1]} rows of ")


def test_ink_is_in_every_channel_and_its_pull_is_their_sum(runs: Path, studio_server: RunningStudio) -> None:
    pixels = drawing("flags")
    asked = {"network": "flags", "pixels": pixels.tolist()}
    (answer,) = studio_server.post("/api/digits/answer", {**asked, "floors": [2]})["answers"]
    weights, bias = load_checkpoint(runs / "flags" / "best.safetensors").parameters
    x = np.tile(pixels / 255, 3)
    np.testing.assert_allclose(answer["scores"], x @ weights + bias, rtol=1e-4, atol=1e-5)
    reasons = studio_server.post("/api/digits/reasons", asked)
    pull = np.frombuffer(base64.b64decode(reasons["pull"]["base64"]), "<f4")
    difference = weights[:, reasons["winner"]] - weights[:, reasons["rival"]]
    np.testing.assert_allclose(pull, difference.reshape(3, -1).sum(axis=0), rtol=1e-4, atol=1e-6)


def test_a_drawing_for_a_set_on_white_paper_is_black_on_white() -> None:
    form = Form((1, 4, 4), ("a", "b"), on_white=True)
    ink = [0] * 15 + [255]
    white = [255 - each for each in ink]
    assert checked(white, form).tolist() == white
    for blank, of in (([255] * 16, form), ([0] * 16, Form((1, 4, 4), ("a", "b")))):
        with pytest.raises(ValueError, match="the drawing is empty"):
            checked(blank, of)
    checkpoint = load_checkpoint(networks.SHIPPED)
    notes = {"dataset": "mine", **Form((1, 28, 28), tuple("abcdefghij"), on_white=True).as_note()}
    trained = replace(
        networks.opened(networks.SHIPPED, "/shipped"), form=networks._form(checkpoint.architecture, notes)
    )
    assert embedded.network(trained)["onWhite"] is True
    assert embedded.network(networks.opened(networks.SHIPPED, "/shipped"))["onWhite"] is False


@pytest.mark.skipif(not shutil.which("node"), reason="needs node, to run the page's own code")
def test_the_page_turns_ink_over_where_the_set_has_white_paper(tmp_path: Path) -> None:
    script = tmp_path / "centre.mjs"
    script.write_bytes((Path(networks.__file__).parent / "static" / "centre.js").read_bytes())
    with script.open("a") as file:
        file.write(
            "const ink = new Uint8Array(1600).fill(200, 400, 900);"
            "console.log(JSON.stringify([false, true].map((white) => centred(ink, 40, [1, 20, 16], white))"
            ".map(({ pixels, ink }) => [[...pixels], [...ink]])));"
        )
    done = processes.run(["node", str(script)], 20)
    (plain, ink), (white, same) = json.loads(done.output)
    assert plain == ink == same
    assert white == [255 - each for each in ink]
    assert len(ink) == 320
    assert max(ink) == 200


@pytest.mark.parametrize("name", RUNS)
def test_the_page_runs_shows_what_its_images_are_taken_for(name: str, runs: Path, studio_server: RunningStudio) -> None:
    (shown,) = [each for each in studio_server.get("/api/runs/list")["runs"] if each["name"] == name]
    assert shown["dataset"] == ("shapes" if name == "shapes" else "flags.npz")
    until = time.monotonic() + 600
    while (answer := studio_server.get(f"/api/runs/mistakes?run={shown['code']}"))["state"] == "asking":
        assert time.monotonic() < until
        time.sleep(0.1)
    assert answer["state"] == "ready", answer
    assert answer["names"] == list(SHAPES if name == "shapes" else FLAGS)
    assert answer["shape"] == ([1, 20, 20] if name == "shapes" else [3, 24, 16])
    assert sum(map(sum, answer["counts"])) == answer["of"] == 12
    row = int(np.argmax(answer["counts"][0]))
    cell = studio_server.get(f"/api/runs/cell?run={shown['code']}&label=0&prediction={row}")
    image = cell["images"][0]
    test = load_dataset(place_of(RUNS[name]["dataset"]), colour=name != "shapes").test
    expected = np.rint(test.x[image["image"]] * 255).astype(np.uint8)
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(image["pixels"]), np.uint8), expected)


def test_data_outside_the_studio_s_folders_is_not_read(
    runs: Path, studio_server: RunningStudio, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (runs.parent / "shapes").rename(outside / "shapes")
    given = {"dataset": str(outside / "shapes"), "epochs": 1}
    asked = Training.of(new_settings("stage2_numpy", given), runs / "far", resume=False, overwrite=False)
    run(load_stage("numpy"), asked, lambda network, data: QUIET, live=False)
    (shown,) = [each for each in studio_server.get("/api/runs/list")["runs"] if each["name"] == "far"]
    studio_server.get(f"/api/runs/mistakes?run={shown['code']}")
    time.sleep(0.5)
    answer = studio_server.get(f"/api/runs/mistakes?run={shown['code']}")
    assert answer["state"] == "refused"
    assert "lies outside the folders that this studio was given" in answer["reason"]


def test_a_run_on_its_own_images_can_be_made_again_and_is_not_exported(runs: Path) -> None:
    notes = load_checkpoint(runs / "flags" / "last.safetensors").about_run["notes"]
    words = command("stage2_numpy", notes, "runs/again")
    assert f"--dataset {shlex.quote(str(runs.parent / 'flags.npz'))} --colour --hidden none" in words
    with pytest.raises(ValueError, match="takes images of 24 by 16 pixels, colour in 4 classes; an exported page"):
        embedded.data({"run": str(runs / "flags")})
