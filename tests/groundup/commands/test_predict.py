"""`groundup predict`: the network's answer to a picture, and what was done to the picture before."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from groundup.evidence_picture import evidence_picture, evidence_words
from groundup.inside_layers import Layered
from groundup.trained import as_learned, beliefs
from shared.data.datasets import load_dataset
from shared.training.checkpoints import load_checkpoint
from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_run
from tests.program import run
from tests.shared.data.own_sets import flags, shapes
from tests.stages import without_announcement

FULL = load_dataset("mnist-subset")
DIGIT = (FULL.test.x[0].reshape(28, 28) * 255).round().astype(np.uint8)
THEIRS = "its border is light and that of the network's own images dark"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: of MNIST, normalised; of grey pictures; and of colours, by another loss."""
    folder = tmp_path_factory.mktemp("made")
    shapes(folder / "shapes", train=8, test=4)
    flags(folder / "flags.npz", train=24, test=12)
    common = ["--epochs", "1", "--quiet", "--run-dir"]
    train("--hidden", "8", "--normalise", *common, folder / "mnist")
    train("--dataset", folder / "shapes", "--hidden", "6", *common, folder / "grey")
    hinge = ("--colour", "--loss", "hinge", "--model", "lenet5")
    train("--dataset", folder / "flags.npz", *hinge, *common, folder / "colour")
    return folder


@pytest.fixture(autouse=True)
def _there(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train(*arguments: object) -> None:
    assert run("train", "numpy", *arguments) == 0


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert run("predict", *arguments, "--json") == 0
    document: dict[str, Any] = json.loads(without_announcement(capsys.readouterr().out))
    return document


def test_a_picture_of_the_data_sets_form_gets_the_networks_probabilities(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.fromarray(DIGIT).save("digit.png")
    document = answer(capsys, made / "mnist", "digit.png", "--top", "10")
    checkpoint = load_checkpoint(made / "mnist" / "last.safetensors")
    (expected,) = beliefs(checkpoint, as_learned(checkpoint, FULL).test.x[:1])
    (picture,) = document["pictures"]
    assert picture["done"] == []
    assert [each["label"] for each in picture["top"]] == np.argsort(-expected).tolist()
    np.testing.assert_allclose([each["probability"] for each in picture["top"]], np.sort(expected)[::-1], rtol=1e-5)
    assert document["network"] == "784-8-10 relu, 1 epoch of mnist-subset by stage 2: NumPy"
    assert document["are_probabilities"] is True


def test_what_was_done_is_said_in_order(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exif = Image.Exif()
    exif[274] = 6  # the camera was turned by a quarter
    large = Image.fromarray(np.repeat(np.repeat(255 - DIGIT, 4, 0), 2, 1)).convert("RGB")
    large.save("photograph.jpg", exif=exif)
    assert run("predict", made / "mnist", "photograph.jpg", "--top", "1") == 0
    head, classes, done = capsys.readouterr().out.splitlines()
    assert head.endswith(f"by stage 2: NumPy ({made / 'mnist' / 'last.safetensors'})")
    assert classes.startswith("photograph.jpg: ")
    assert classes.endswith(" %)")
    assert classes.count("%") == 1
    assert done == (
        "    turned upright; made grey; resized from 112 by 56 to 28 by 28 pixels, which changes its proportions; "
        f"inverted, because {THEIRS}"
    )


@pytest.mark.parametrize(("option", "done"), [("--invert", ["inverted"]), ("--no-invert", [])])
def test_inverting_is_the_users_choice(
    option: str, done: list[str], made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for picture in (DIGIT, 255 - DIGIT):
        Image.fromarray(picture).save("digit.png")
        (shown,) = answer(capsys, made / "mnist", "digit.png", option)["pictures"]
        assert shown["done"] == done


def test_a_grey_picture_for_a_set_of_ones_own_is_never_inverted_unasked(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dark = made / "shapes" / "test" / "bar" / "0.png"
    Image.fromarray(255 - np.asarray(Image.open(dark))).save("light.png")
    first, second = answer(capsys, made / "grey", dark, "light.png")["pictures"]
    assert first["done"] == []
    assert second["done"] == [f"not inverted, though {THEIRS} (--invert inverts it)"]
    assert {each["class"] for each in first["top"]} == {"bar", "cross", "ring"}
    (turned,) = answer(capsys, made / "grey", "light.png", "--invert")["pictures"]
    assert turned["top"] == first["top"]


def test_colours_stay_where_the_network_learned_from_them(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with np.load(made / "flags.npz") as arrays:
        Image.fromarray(arrays["x_test"][3]).save("flag.png")
    Image.fromarray(DIGIT).resize((16, 24)).save("grey.png")
    document = answer(capsys, made / "colour", "flag.png", "grey.png", "--top", "99")
    assert [each["done"] for each in document["pictures"]] == [[], []]
    assert len(document["pictures"][0]["top"]) == 4
    checkpoint = load_checkpoint(made / "colour" / "last.safetensors")
    learned = as_learned(checkpoint, load_dataset(str(made / "flags.npz"), colour=True))
    (expected,) = beliefs(checkpoint, learned.test.x[3:4])
    assert document["pictures"][0]["top"][0]["probability"] == pytest.approx(expected.max())


def test_another_loss_gives_no_probabilities(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(DIGIT).convert("RGB").resize((16, 24)).save("flag.png")
    assert run("predict", made / "colour", "flag.png") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "trained with hinge: the numbers rank the classes, and are no probabilities"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.png"], "there is no picture missing.png"),
        (["digit.png", "text.png"], "text.png: expected a PNG picture"),
        (["folder.png"], "folder.png: expected a PNG picture (folder.png is a folder, expected a regular file)"),
        (["clear.png"], "clear.png: expected a picture without transparent places; lay it on a background first"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], sentence: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.fromarray(DIGIT).save("digit.png")
    Image.new("RGBA", (28, 28)).save("clear.png")
    Path("folder.png").mkdir()
    for name in ("text.png", "text.txt"):
        Path(name).write_text("a text")
    capsys.readouterr()
    assert run("predict", made / "mnist", *arguments) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_explain_writes_where_the_answer_comes_from(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with np.load(made / "flags.npz") as arrays:
        Image.fromarray(arrays["x_test"][3]).save("flag.png")
        image = arrays["x_test"][3]
    (picture,) = answer(capsys, made / "colour", "flag.png", "--explain", "--out", "why")["pictures"]
    name = picture["top"][0]["class"]
    checkpoint = load_checkpoint(made / "colour" / "last.safetensors")
    x = image.transpose(2, 0, 1).reshape(1, -1).astype(np.float32) / 255
    network = Layered(checkpoint, checkpoint.architecture)
    places = network.evidence(x, np.array([picture["top"][0]["label"]]))
    assert places is not None
    words = f"{'what' if places.any() else 'nothing in the last maps'} speaks for {name}"
    file = str(Path("why", "flag-gradcam.png"))
    assert picture["explained"] == {"file": file, "words": words, "evidence": bool(places.any())}
    expected = Image.open(io.BytesIO(evidence_picture(image.transpose(2, 0, 1), places[0], name)))
    np.testing.assert_allclose(np.asarray(Image.open(file)).astype(int), np.asarray(expected).astype(int), atol=1)
    assert run("predict", made / "colour", "flag.png", "--explain") == 0
    assert f"    flag-gradcam.png: {words}\n" in capsys.readouterr().out


def test_no_evidence_is_said_and_leaves_the_image_as_it_is() -> None:
    image, none = np.arange(12, dtype=np.uint8).reshape(1, 3, 4) * 20, np.zeros((2, 2))
    assert evidence_words(none, "7") == "nothing in the last maps speaks for 7"
    pixels = np.asarray(Image.open(io.BytesIO(evidence_picture(image, none, "7"))))
    left, right = pixels[12:180, 12:236], pixels[12:180, 248:472]
    np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(left[::56, ::56, 0], image[0])
    some = np.array([[1.0, 0.0], [0.0, 0.0]])
    covered = np.asarray(Image.open(io.BytesIO(evidence_picture(image, some, "sieben ☃"))))[12:180, 248:472]
    assert (covered[0, 0] > left[0, 0] + 100).tolist() == [True, False, False]
    np.testing.assert_array_equal(covered[-1, -1], left[-1, -1])


def test_a_dense_network_cannot_explain_itself(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(DIGIT).save("digit.png")
    assert run("predict", made / "mnist", "digit.png", "--explain") == 2
    said = (
        "Grad-CAM needs a convolution, whose maps have places; 784-8-10 relu, 1 epoch of mnist-subset by stage 2: NumPy"
    )
    assert said in capsys.readouterr().err
    assert list(Path().iterdir()) == [Path("digit.png")]


@pytest.mark.parametrize("arguments", [(), ("--explain",)])
def test_a_network_that_diverged_gives_no_answer(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.fromarray(DIGIT).save("digit.png")
    a_run(tmp_path / "run", SMALL_CNN, {"dataset": "mnist-subset", "data_dir": None}, scale=1e30)
    assert run("predict", "run", "digit.png", *arguments) == 2
    said = "the network's numbers grow beyond all limits (infinity or NaN), so there is no answer for digit.png"
    assert capsys.readouterr().err.replace("\n", "").endswith(said)
    assert not Path("digit-gradcam.png").exists()


def test_no_figures_and_no_onnx_are_imported(made: Path) -> None:
    Image.fromarray(DIGIT).save("digit.png")
    code = "import sys; from groundup.cli import program; program(['predict'])(sys.argv[1:], standalone_mode=False)\n"
    code += "print(*sys.modules)"
    words = [sys.executable, "-c", code, "predict", str(made / "mnist"), "digit.png"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    absent = {"onnx", "onnxruntime", "shared.export", "matplotlib", "numba"}
    assert absent & set(done.stdout.split()) == set()
