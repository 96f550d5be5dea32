"""`groundup export`: the file that others open, the sentence about it, and what happens if it would be wrong."""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundup.train import DEFAULTS
from shared.architectures import NAMED, named
from shared.contract import load_stage
from shared.data.datasets import Dataset, Split, load_dataset
from shared.data.normalisation import Normalisation
from shared.training import loop
from shared.training.checkpoints import build_network, load_checkpoint
from shared.training.settings import QUIET, Saving, TrainingSettings
from tests import program
from tests.wide import widely

needs_onnx = pytest.mark.skipif(
    find_spec("onnx") is None or find_spec("onnxruntime") is None,
    reason="needs the extra onnx: pip install -e '.[onnx]'",
)
FULL = load_dataset("mnist-subset")
FEW = Split(FULL.train.x[:96], FULL.train.y[:96])
STAGE = load_stage("numpy")


def trained(folder: Path, network: Any, notes: dict[str, Any], normalisation: Normalisation | None = None) -> Path:
    data = Dataset("mnist-subset", FEW, FEW, 10)
    data = data if normalisation is None else normalisation.dataset(data)
    notes = DEFAULTS | notes | ({} if normalisation is None else normalisation.as_note())
    settings = TrainingSettings(1, batch_size=32)
    optimizer = STAGE.optimizers.Adam(0.002)
    loop.train(STAGE, network, optimizer, data.train, settings, saving=Saving(folder, notes=notes), hooks=QUIET)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs as `groundup train` would leave them, on a few images."""
    folder = tmp_path_factory.mktemp("runs")
    network = STAGE.network.Network
    trained(folder / "dense", network([784, 12, 10], "tanh", seed=3), {}, Normalisation.of(FEW.x))
    trained(folder / "double", network([784, 10], seed=3, dtype="float64"), {"dtype": "float64"})
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "net.onnx"


run = partial(program.run, "export")


def answers(path: Path, x: np.ndarray) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["logits"], {"pixels": x})[0])


@needs_onnx
def test_the_file_takes_plain_pixels_and_gives_the_networks_logits(
    runs: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(runs / "dense", "--out", out) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{out}: 784-12-10 tanh, 1 epoch of mnist-subset by stage 2: NumPy; " + (
        f"{out.stat().st_size:,} bytes, opset 17"
    )
    assert lines[1].startswith(
        "pixels (batch, 784), float32 from 0 to 1 -> logits (batch, 10); the run's normalisation"
    )
    assert lines[2].startswith("a valid model, says onnx ")
    assert "gives 100 of 100 test images the class that stage 2 gives them; the largest difference" in lines[3]
    x = FULL.test.x[:7]
    checkpoint = load_checkpoint(runs / "dense" / "last.safetensors")
    normalisation = Normalisation.from_notes(checkpoint.about_run["notes"])
    assert normalisation is not None
    expected = build_network(STAGE, checkpoint).forward(normalisation.normalised(x))
    np.testing.assert_allclose(answers(out, x), expected, atol=1e-5 * np.abs(expected).max())


@needs_onnx
@pytest.mark.parametrize("name", widely(NAMED))
def test_a_known_network_takes_images(name: str, tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = STAGE.network.Network(named(name), seed=3)
    folder = trained(tmp_path / "run", network, {"model": name, "hidden": None, "activation": None})
    assert run(folder, "--out", out, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["network"] == f"{name}, 1 epoch of mnist-subset by stage 2: NumPy"
    assert document["input"] == {"name": "pixels", "shape": ["batch", 1, 28, 28]}
    assert document["compared"]["same_class"] == document["compared"]["images"] == 100
    assert 0 < document["compared"]["largest"] < document["compared"]["allowed"]
    assert answers(out, FULL.test.x[:3].reshape(3, 1, 28, 28)).shape == (3, 10)


@needs_onnx
def test_the_file_names_its_classes_run_data_and_version(runs: Path, out: Path) -> None:
    import onnx

    from groundup import __version__

    assert run(runs / "dense" / "last.safetensors", "--out", out) == 0
    about = {each.key: each.value for each in onnx.load(str(out)).metadata_props}
    assert json.loads(about.pop("classes")) == list("0123456789")
    assert about == {"run": "dense", "dataset": "mnist-subset", "version": __version__}


@needs_onnx
def test_float64_is_rounded_and_that_is_said(runs: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(runs / "double", "--out", out) == 0
    assert "its float64 numbers were rounded to float32\n" in capsys.readouterr().out
    assert answers(out, FULL.test.x[:1]).dtype == np.float32


@needs_onnx
@pytest.mark.parametrize("options", [(), ("--int8",)])
def test_wrong_answers_are_an_error_and_no_file(
    options: tuple[str, ...], runs: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from shared.export import onnx_graph

    monkeypatch.setitem(onnx_graph.ACTIVATIONS, "tanh", ("Softsign", {}))
    for before in ([], [b"an earlier one"]):
        for content in before:
            out.write_bytes(content)
        assert run(runs / "dense", "--out", out, *options) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"error: {out} was not written, because its answers are wrong: ")
        assert ("steps of eight bits away; 2 are allowed" if options else "tolerances apart (of 100 images)") in said
        assert [each.read_bytes() for each in out.parent.iterdir()] == before


@needs_onnx
def test_in_eight_bits_the_file_is_a_quarter_and_gives_the_same_classes(
    runs: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(runs / "dense", "--out", out, "--int8", "--calibrate", "50") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "in eight bits, with scales from 50 training images"
    assert "gives 1000 of 1000 test images the class that stage 2 gives them in eight bits, with its" in lines[4]
    assert lines[4].endswith("of a step of eight bits")
    small = out.stat().st_size
    assert run(runs / "dense", "--out", out) == 0
    assert small < 0.35 * out.stat().st_size  # 9,550 numbers: the nodes count, too
    capsys.readouterr()
    assert run(runs / "double", "--out", out, "--int8", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["calibrated_on"] == 200
    assert "calibrated on 200 training images" in document["metadata"]["eight_bits"]
    assert set(document["compared"]) == {"runtime", "images", "same_class", "steps"}


@needs_onnx
def test_without_onnx_runtime_the_file_is_written_and_says_that_nobody_compared(
    runs: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run(runs / "dense", "--out", out) == 0
    assert "ONNX Runtime is not installed, so no answers were compared; it comes with " in capsys.readouterr().out
    assert out.is_file()


def test_without_the_extra_one_sentence_gives_the_command(
    runs: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert run(runs / "dense", "--out", out) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "error: export needs onnx, which is not installed; install the extra onnx: python -m pip install -e '.[onnx]'"
    )
    assert not out.exists()


@needs_onnx
@pytest.mark.parametrize(
    ("run_dir", "file", "options", "sentence"),
    [
        ("dense", "net.pb", (), "--out: expected a file that ends in .onnx, got "),
        ("dense", "blocked/net.onnx", (), "blocked is a file, and no folder; choose another --out"),
        (".", "net.onnx", (), "holds no run: there is no last.safetensors in it."),
        ("dense", "net.onnx", ("--calibrate", 5), "--calibrate belongs to --int8"),
        ("dense", "net.onnx", ("--int8", "--calibrate", 7000), "expected a number of images from 1 to 6,000, got 7,0"),
    ],
)
def test_mistakes_are_one_sentence(
    run_dir: str, file: str, options: tuple[object, ...], sentence: str, runs: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "blocked").write_text("")
    assert run(runs / run_dir, "--out", tmp_path / file, *options) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["blocked"]
