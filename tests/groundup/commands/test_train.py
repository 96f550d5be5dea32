"""`groundup train`: what it prints and writes, and one clear line for every mistake."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundup.recipes import RECIPES, described
from groundup.train import DEFAULTS, new_settings
from shared import contract
from shared.architectures import NAMED, mlp, named
from shared.data.augmentation import Augmentation
from shared.data.datasets import Dataset, Split
from shared.data.normalisation import Normalisation
from shared.training import loop
from shared.training.checkpoints import load_checkpoint
from shared.training.schedules import Schedule
from shared.training.settings import Saving, TrainingSettings
from tests import program

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 80)
SAMPLES = (0.3 * RNG.random((80, 5)) + 0.7 * np.eye(3, 5)[LABELS]).astype(np.float32)
SMALL = Dataset("mnist-subset", Split(SAMPLES[:60], LABELS[:60]), Split(SAMPLES[60:], LABELS[60:]), 3)
QUICK = ("--hidden", "4", "--epochs", "2", "--batch-size", "16")


@pytest.fixture(autouse=True)
def _small_data_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("groundup.train.load_dataset", lambda *_, **options: SMALL)


run = partial(program.run, "train")


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(*arguments) == 2
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    return shown


def test_training_prints_a_line_an_epoch_and_writes_its_run(
    stage: contract.Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(stage.name, *QUICK) == 0
    heading, columns, first, second, last = capsys.readouterr().out.splitlines()
    assert f"{stage.title}, 5-4-3 relu, softmax_cross_entropy, sgd" in heading
    assert "60 training and 20 test samples" in heading
    assert len(columns) == len(first) == len(second) <= 60
    assert columns.split()[:2] == ["epoch", "loss"]
    assert (first.split()[0], second.split()[0]) == ("1", "2")
    assert last.startswith("2 epochs done. Test accuracy ")
    names = {path.name for path in Path("runs", stage.name).iterdir()}
    assert names == {"last.safetensors", "best.safetensors", "metrics.jsonl", "steps.jsonl", "run.json"}


def test_json_is_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("numpy", *QUICK, "--json", "--validation", "0.2") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["stage"] == "stage2_numpy"
    assert [record["epoch"] for record in document["epochs"]] == [1, 2]
    assert document["test_accuracy"] == document["epochs"][-1]["test_accuracy"]
    assert document["monitor"] == "validation_loss"


def test_quiet_prints_the_last_line_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("numpy", *QUICK, "--quiet") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_options_reach_the_network_the_optimizer_and_the_loop() -> None:
    options = "--hidden 6,4 --activation tanh --loss hinge --initializer xavier --dtype float64 --optimizer sgd"
    options += " --learning-rate 0.02 --momentum 0.9 --nesterov --weight-decay 0.001 --epochs 2 --batch-size 10"
    options += " --schedule step --warmup-epochs 0.5 --step-epochs 1 --gamma 0.25 --dropout 0.1 --validation 0.25"
    options += " --patience 2 --monitor validation_accuracy --seed 7 --run-dir here"
    assert run("2", *options.split()) == 0

    stage = contract.load_stage("2")
    network = stage.network.Network(mlp([5, 6, 4, 3], "tanh", 0.1), "relu", "hinge", "xavier", 7, "float64")
    loop.train(
        *(stage, network, stage.optimizers.SGD(0.02, 0.9, True, 0.001), SMALL.train),
        TrainingSettings(
            epochs=2,
            batch_size=10,
            schedule=Schedule("step", warmup_epochs=0.5, step_epochs=1, gamma=0.25),
            validation=0.25,
            patience=2,
            monitor="validation_accuracy",
            seed=7,
        ),
    )
    checkpoint = load_checkpoint("here/last.safetensors")
    assert checkpoint.loss == "hinge"
    for got, expected in zip(checkpoint.parameters, network.parameters, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("optimizer", ["sgd", "rmsprop", "Adam"])
def test_every_optimizer_has_a_learning_rate_of_its_own(optimizer: str) -> None:
    assert run("numpy", *QUICK, "--optimizer", optimizer) == 0
    checkpoint = load_checkpoint("runs/stage2_numpy/last.safetensors")
    assert checkpoint.hyperparameters["learning_rate"] == (0.1 if optimizer == "sgd" else 0.001)


def test_no_hidden_layer_is_possible() -> None:
    assert run("numpy", *QUICK, "--hidden", "none") == 0
    assert load_checkpoint("runs/stage2_numpy/last.safetensors").architecture == mlp([5, 3])


def test_resume_takes_its_settings_from_the_run_and_says_when_it_is_finished(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("numpy", *QUICK, "--seed", "5", "--run-dir", "a") == 0
    assert run("numpy", "--resume", "a") == 0
    assert "finished already: 2 epochs of 2; a larger --epochs" in capsys.readouterr().out
    assert run("numpy", "--resume", "a", "--epochs", "4") == 0
    assert run("numpy", *QUICK, "--seed", "5", "--epochs", "4", "--run-dir", "b") == 0
    a, b = load_checkpoint("a/last.safetensors"), load_checkpoint("b/last.safetensors")
    for got, expected in zip(a.parameters, b.parameters, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert "4 epochs done" in capsys.readouterr().out


def test_ctrl_c_says_how_to_resume(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("numpy", *QUICK, "--run-dir", "my run") == 0
    capsys.readouterr()

    def interrupted(*arguments: object, **options: object) -> None:
        raise loop.TrainingInterrupted(Path("my run/last.safetensors"), 2, 3)

    monkeypatch.setattr(loop, "train", interrupted)
    message = error_of(capsys, "numpy", "--resume", "my run")
    assert "saved epoch 2, step 3; resume with: groundup train stage2_numpy --resume 'my run'" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["fortran"], "unknown stage 'fortran'; choose one of stage1_pure_python"),
        (["2", "--optimizer", "adam", "--momentum", "0.9"], "--momentum and --nesterov belong to sgd, not to adam"),
        (["2", "--hidden", "-5"], "--hidden: expected sizes of at least 1, like 128,64, or none, got '-5'"),
        (["2", "--patience", "3"], "patience and a validation monitor need a validation split"),
        (["2", "--resume", "nowhere"], "no checkpoint at nowhere/last.safetensors: there is no such file"),
        (["2", "--resume", "a", "--run-dir", "b"], "--resume goes on in its own folder"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = error_of(capsys, *options)
    assert shown.startswith("error: ")
    assert message in shown
    assert not Path("runs").exists()


def test_a_new_run_never_replaces_an_old_one_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("numpy", *QUICK) == 0
    before = Path("runs/stage2_numpy/last.safetensors").read_bytes()
    assert "holds a run already; go on with --resume, or replace it" in error_of(capsys, "numpy", *QUICK, "--quiet")
    assert Path("runs/stage2_numpy/last.safetensors").read_bytes() == before
    assert run("numpy", *QUICK, "--overwrite", "--seed", "9") == 0
    assert Path("runs/stage2_numpy/last.safetensors").read_bytes() != before


def test_resuming_with_another_setting_names_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("numpy", *QUICK, "--run-dir", "a") == 0
    told = error_of(capsys, "numpy", "--resume", "a", "--batch-size", "8")
    assert "its --batch-size is 16, not 8; leave --batch-size out" in told


def test_resuming_what_another_program_trained_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    stage = contract.load_stage("2")
    network = stage.network.Network([5, 3])
    loop.train(stage, network, stage.optimizers.SGD(0.1), SMALL.train, TrainingSettings(1), saving=Saving("a"))
    assert "was not written by groundup train" in error_of(capsys, "2", "--resume", "a")


def test_an_unwritable_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("in the way", encoding="utf-8")
    assert "cannot write file/run/run.lock" in error_of(capsys, "2", *QUICK, "--quiet", "--run-dir", "file/run")


# --- a known network ---


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """40 random images of the size of MNIST's, which the command finds as its data set."""
    labels = RNG.integers(0, 10, 40)
    images = Split((255 * RNG.random((40, 784))).astype(np.float32) / 255, labels)
    made = Dataset("mnist-subset", images, images.first(10), 10)
    monkeypatch.setattr("groundup.train.load_dataset", lambda *_, **options: made)
    return made


def test_a_model_trains_with_its_recipe(digits: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("numpy", "--model", "lenet5", "--epochs", "1", "--run-dir", "a") == 0
    heading = capsys.readouterr().out.splitlines()[0]
    assert "stage 2: NumPy, lenet5 (61,706 parameters), softmax_cross_entropy, adam; mnist-subset: 40" in heading
    checkpoint = load_checkpoint("a/last.safetensors")
    assert checkpoint.architecture == named("lenet5")
    notes = checkpoint.about_run["notes"]
    recipe = RECIPES["lenet5"] | {"epochs": 1}
    assert {name: notes[name] for name in recipe} == recipe
    assert checkpoint.about_run["settings"]["augmentation"]["shift"] == recipe["augment_shift"]
    assert Normalisation.from_notes(notes) == Normalisation.of(digits.train.x)


def test_a_model_s_recipe_is_what_the_loop_computes_with(digits: Dataset) -> None:
    options = ("--epochs", "1", "--batch-size", "16", "--augment-shift", "2", "--augment-rotation", "7")
    assert run("2", "--model", "lenet5", *options, "--dtype", "float64", "--seed", "4", "--run-dir", "a") == 0
    stage = contract.load_stage("2")
    network = stage.network.Network(named("lenet5"), seed=4, dtype="float64")
    normalisation = Normalisation.of(digits.train.x)
    black = float((np.float32(0) - np.float32(normalisation.mean)) / np.float32(normalisation.deviation))
    settings = TrainingSettings(1, 16, 4, schedule=Schedule("cosine"), augmentation=Augmentation(2, 7.0, black))
    loop.train(stage, network, stage.optimizers.Adam(0.002), normalisation.dataset(digits).train, settings)
    for got, expected in zip(load_checkpoint("a/last.safetensors").parameters, network.parameters, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_model_s_run_goes_on_with_the_normalisation_of_its_beginning(
    digits: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    steady = ("--model", "lenet5", "--schedule", "constant", "--optimizer", "sgd")
    assert run("numpy", *steady, "--epochs", "1", "--run-dir", "a") == 0
    assert run("numpy", "--resume", "a", "--epochs", "2") == 0
    assert run("numpy", *steady, "--epochs", "2", "--run-dir", "b") == 0
    a, b = load_checkpoint("a/last.safetensors"), load_checkpoint("b/last.safetensors")
    for got, expected in zip(a.parameters, b.parameters, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert a.about_run["notes"]["normalisation"] == b.about_run["notes"]["normalisation"]
    assert "its --model is lenet5, not fashion_cnn" in error_of(capsys, "2", "--resume", "a", "--model", "fashion_cnn")


def test_another_optimizer_leaves_the_recipe_s_learning_rate_and_momentum_out() -> None:
    chosen = new_settings("stage2_numpy", {"model": "residual_cnn", "optimizer": "sgd"})
    assert (chosen["optimizer"], chosen["learning_rate"], chosen["momentum"]) == ("sgd", None, 0.0)
    assert chosen["epochs"] == RECIPES["residual_cnn"]["epochs"]
    assert new_settings("stage1_pure_python", {"model": "lenet5"})["epochs"] == 1


def test_every_model_has_a_recipe_of_known_settings() -> None:
    assert RECIPES.keys() == NAMED.keys()
    for name, recipe in RECIPES.items():
        assert recipe.keys() <= DEFAULTS.keys()
        assert described(name).startswith(f"{recipe['optimizer']} {recipe['learning_rate']:g}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "alexnet"], "unknown model 'alexnet'; choose one of lenet5, fashion_cnn, residual_cnn"),
        (["--model", "lenet5", "--hidden", "8"], "--hidden is for a stack of dense layers; --model lenet5 has its own"),
        (["--model", "lenet5", "--dropout", "0.2"], "dropout: a rate of 0.2 is for the hidden layers of a stack"),
        (["--augment-rotation", "400"], "augment_rotation: expected an angle from 0 to 180 degrees, got 400"),
    ],
)
def test_a_mistake_about_a_model_is_one_line(
    digits: Dataset, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in error_of(capsys, "2", *options)
    assert not Path("runs").exists()


def test_data_of_another_shape_than_the_model_s_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--model lenet5 for images of 1 by 5 pixels in 3 classes: layer 3, MaxPool(2): input is 1 x 5" in error_of(
        capsys, "2", "--model", "lenet5", "--no-normalise", "--augment-shift", "0", "--augment-rotation", "0"
    )
