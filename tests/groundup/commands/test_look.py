"""`groundup look`: the figures, the text and the JSON of a trained network, and one clear error for what is no run."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from groundup import look as looking
from groundup import trained
from groundup.commands import look as command
from groundup.train import DEFAULTS
from shared import contract
from shared.architectures import Architecture, named
from shared.charts.drawing.style import Chart
from shared.charts.drawing.words import NO_BREAK
from shared.charts.figures import inside as charts
from shared.data.datasets import CLOTHES, Dataset, Split, load_dataset
from shared.data.normalisation import Normalisation
from shared.layers import Activate, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Residual
from shared.training import loop
from shared.training.checkpoints import load_checkpoint, save_checkpoint
from shared.training.metrics import evaluate
from shared.training.settings import QUIET, Saving, TrainingSettings
from tests.shared.charts import chart_checks
from tests.wide import WIDE, wide, widely

FULL = load_dataset("mnist-subset")
SMALL = Dataset("mnist-subset", Split(FULL.train.x[:600], FULL.train.y[:600]), FULL.test, 10)
FEW = Dataset(
    "mnist-subset", Split(FULL.train.x[:300], FULL.train.y[:300]), Split(FULL.test.x[:200], FULL.test.y[:200]), 10
)
FIGURES = ["first_layer_weights", "confusion", "most_wrong", "activity", "learning_curves"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs as `groundup train` would leave them, on fewer images; `linear` has no hidden layer."""
    folder = tmp_path_factory.mktemp("runs")
    stage = contract.load_stage("numpy")
    for name, sizes in (("relu", [784, 12, 6, 10]), ("linear", [784, 10])):
        network = stage.network.Network(sizes, seed=3)
        loop.train(
            *(stage, network, stage.optimizers.SGD(0.2), SMALL.train, TrainingSettings(2, validation=0.1)),
            test_data=SMALL.test,
            saving=Saving(folder / name, notes=DEFAULTS),
            hooks=QUIET,
        )
    return folder


@pytest.fixture
def found(runs: Path) -> charts.Findings:
    checkpoint = load_checkpoint(runs / "relu" / "last.safetensors")
    return looking.findings(checkpoint, SMALL, looking._records(runs / "relu" / "metrics.jsonl"), 7)


def run(*arguments: object) -> None:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command.look)
    app(args=[str(each) for each in arguments], standalone_mode=False)


def said(text: str) -> str:
    return text.replace(NO_BREAK, " ")


# --- the command ---


@wide
def test_looking_into_a_run_draws_its_figures_and_says_what_they_show(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(runs / "linear", tmp_path / "linear")
    run(copy, "--count", "2", "--png")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("784-10 relu, 2 epochs of mnist-subset by stage 2: NumPy (")
    assert shown[1].startswith("test accuracy ")
    assert shown[1].endswith("of 1,000 images wrong")
    assert shown[-1].startswith(f"figures in {copy / 'look'}, each as .png, .svg, -dark.png and -dark.svg: first_layer")
    drawn = {path.name for path in (copy / "look").iterdir()}
    names = [name for name in FIGURES if name != "activity"]  # there is no hidden layer
    assert drawn == {f"{name}{dark}.{kind}" for name in names for dark in ("", "-dark") for kind in ("png", "svg")}


def test_looking_writes_one_page_with_every_figure_and_its_words(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(runs / "linear", tmp_path / "linear")
    run(copy, "--count", "2")
    shown = capsys.readouterr().out.splitlines()
    path = copy / "look" / "look.html"
    assert shown[-1] == f"all figures: {path}"
    assert [each.name for each in path.parent.iterdir()] == ["look.html"]
    text = path.read_text(encoding="utf-8")
    assert text.count("<figure ") == text.count("<figcaption>") == len(FIGURES) - 1  # there is no hidden layer
    assert text.count('role="img"') == text.count("aria-label=") - 1  # the list of figures has one, too
    assert "of 1,000 images wrong" in text
    assert re.search(r'<image [^>]*href="data:image/png;base64,', text), "the weights are images in the page"
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_json_is_one_document_that_agrees_with_the_stage_s_own_evaluation(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "write_page", lambda *_: None)
    run(runs / "relu", "--json", "--count", "3", "--out", tmp_path)
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    stage = contract.load_stage("numpy")
    network = looking.build_network(stage, load_checkpoint(runs / "relu" / "last.safetensors"))
    loss, accuracy, predictions = evaluate(stage, network, FULL.test)
    assert (document["test_loss"], document["test_accuracy"]) == (pytest.approx(loss), pytest.approx(accuracy))
    confusion = np.array(document["confusion"])
    assert confusion[4, 9] == np.sum((FULL.test.y == 4) & (predictions == 9))
    assert confusion.sum() == document["test_images"] == 1000
    assert [layer["units"] for layer in document["dead_units"]] == [12, 6]
    assert len(document["most_wrong"]) == 3
    beliefs = stage.activations.softmax(network.forward(FULL.test.x))
    for mistake in document["most_wrong"]:
        assert mistake["confidence"] == pytest.approx(beliefs[mistake["image"]].max(), rel=1e-5)
        assert mistake["label"] == FULL.test.y[mistake["image"]] != mistake["predicted"]
        assert mistake["predicted"] == predictions[mistake["image"]]
    assert (document["folder"], document["files"]) == (str(tmp_path), ["look.html"])


def test_a_checkpoint_can_be_named_itself(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "write_page", lambda *_: None)
    best = load_checkpoint(runs / "relu" / "best.safetensors").about_run["record"]["epoch"]
    alone = shutil.copy(runs / "relu" / "best.safetensors", tmp_path)  # without its metrics.jsonl
    run(alone)
    assert f"{best} epoch" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("position", "text"),
    [
        ({"epoch": 0, "step": 0}, "no epoch"),
        ({"epoch": 2, "step": 31}, "2 epochs and 31 steps"),
        ({"epoch": 0, "step": 1}, "1 step"),
    ],
)
def test_an_interrupted_run_says_how_far_it_came(runs: Path, position: dict[str, int], text: str) -> None:
    checkpoint = load_checkpoint(runs / "relu" / "last.safetensors")
    assert trained.how_long(replace(checkpoint, about_run={"position": position})) == text


@pytest.mark.parametrize("name", widely(["lenet5", "residual_cnn"]))
def test_an_architecture_is_drawn_without_a_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--architecture", name)
    assert capsys.readouterr().out == f"{named(name).drawing()}\n"
    run("--architecture", name, "--out", tmp_path)
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"figure in {tmp_path}: {name}.png, {name}.svg, ")
    assert (tmp_path / f"{name}.svg").is_file()
    run("--architecture", name, "--json")
    assert Architecture.from_json(json.loads(capsys.readouterr().out)) == named(name)


def test_a_run_or_an_architecture_is_needed_and_not_both(runs: Path) -> None:
    for arguments in ((), (runs / "relu", "--architecture", "lenet5")):
        with pytest.raises(ValueError, match=r"name the folder of a run, or --architecture .*; one of the two"):
            run(*arguments)
    with pytest.raises(ValueError, match="unknown architecture 'lenet6'; choose one of lenet5, fashion_cnn, residual"):
        run("--architecture", "lenet6")


def saved(folder: Path, sizes: list[int], progress: dict[str, Any]) -> Path:
    stage = contract.load_stage("numpy")
    save_checkpoint(folder / "last.safetensors", stage, stage.network.Network(sizes), None, progress)
    return folder


def test_what_is_no_run_is_one_clear_error(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no .*nowhere; name the folder of a run, such as runs/stage2_numpy"):
        run(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"holds no run: there is no last\.safetensors in it\. `groundup train numpy "):
        run(tmp_path)
    (tmp_path / "text").write_text("no checkpoint", encoding="utf-8")
    with pytest.raises(ValueError, match="text is no safetensors file, or is truncated or damaged"):
        run(tmp_path / "text")
    with pytest.raises(ValueError, match="was not written by groundup train: it does not say which images"):
        run(saved(tmp_path, [784, 10], {}))
    with pytest.raises(
        ValueError, match="holds a network from 5 inputs to 3 outputs, but mnist-subset has images of 28"
    ):
        run(saved(tmp_path, [5, 3], {"notes": DEFAULTS}))
    with pytest.raises(ValueError, match="--count: expected at least 1, got 0"):
        run(runs / "relu", "--count", "0")


@pytest.fixture(scope="module")
def layered(tmp_path_factory: pytest.TempPathFactory) -> charts.Findings:
    """What there is to see of a small residual network after a few steps on normalised images."""
    folder = tmp_path_factory.mktemp("layered")
    stage = contract.load_stage("numpy")
    normal: tuple[Any, ...] = (Conv(4, 3, stride=2), BatchNorm())
    block = Residual((Conv(4, 3, padding=1), BatchNorm()))
    head = (MaxPool(2), Activate("relu"), Flatten(), Dropout(0.25), Dense(12), Activate("relu"), Dense(10))
    network = stage.network.Network(Architecture((1, 28, 28), (*normal, block, *head)), seed=1)
    normalisation = Normalisation.of(FEW.train.x)
    loop.train(
        *(stage, network, stage.optimizers.SGD(0.1), normalisation.dataset(FEW).train, TrainingSettings(1)),
        saving=Saving(folder, notes=DEFAULTS | normalisation.as_note()),
        hooks=QUIET,
    )
    checkpoint = load_checkpoint(folder / "last.safetensors")
    return looking.findings(checkpoint, FEW, [], 3, looking.as_learned(checkpoint, FEW))


def test_a_convolutional_network_is_asked_about_normalised_images_and_shown_with_plain_ones(
    layered: charts.Findings,
) -> None:
    assert (layered.network, layered.what, layered.unit_images.shape) == ("10 layers", "filter", (4, 3, 3))
    assert layered.tested == len(FEW.test)
    assert [len(shares) for shares in layered.activity] == [4, 12]
    np.testing.assert_array_equal(layered.images[0].ravel(), FEW.test.x[layered.wrong[0]])
    words = [each.words for each in layered.maps]
    assert words[:3] == ["the image", "Conv(4, 3, stride=2) · batch norm", "residual block of 1 convolution"]
    assert words[3:5] == ["MaxPool(2) · relu", "Dense(12) · relu"]
    assert re.fullmatch(r"Grad-CAM: (what|nothing) in the last maps speaks for \d", words[5])
    assert layered.maps[5].output.shape == (1, *layered.maps[2].output.shape[1:])
    assert words[6:] == ["Dense(10)"]
    assert layered.maps[3].output.shape == (4, 6, 6)
    label, beliefs = layered.mapped
    assert label == layered.labels[0]
    assert np.argmax(beliefs) == layered.predictions[0]


@pytest.mark.parametrize("figure", [charts.first_layer, charts.layers, charts.activity], ids=lambda each: each.__name__)
def test_every_text_of_a_convolutional_network_s_figures_can_be_read(layered: charts.Findings, figure: Any) -> None:
    chart_checks.assert_sound(figure(layered).figure)


def test_the_figures_do_not_follow_a_link_that_the_run_s_maker_has_put_there(runs: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "linear", run)
    shutil.rmtree(run / "look", ignore_errors=True)
    (tmp_path / "elsewhere").mkdir()
    (run / "look").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"look is a link to .*elsewhere: name the folder of the figures with --out"):
        looking.look(run, None, 3, None)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_damaged_metrics_are_named(runs: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(runs / "relu", tmp_path / "copy")
    (copy / "metrics.jsonl").write_text('{"epoch": 1}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"metrics\.jsonl is damaged: it does not hold one epoch a line"):
        run(copy)


# --- the figures ---


def shown(chart: Chart | None) -> Chart:
    assert chart is not None
    return chart


@pytest.mark.parametrize("figure", charts.FIGURES, ids=lambda each: each.__name__)
def test_every_text_of_every_figure_can_be_read(found: charts.Findings, figure: Any) -> None:
    clothes = replace(found, names=CLOTHES, dataset="fashion-mnist")
    for each in (clothes, found) if WIDE else (clothes,):  # the longer names
        if figure is charts.layers:
            assert figure(each) is None  # of dense layers there are no images
        else:
            chart_checks.assert_sound(shown(figure(each)).figure)


def test_the_confusion_figure_writes_every_count_where_it_belongs(found: charts.Findings) -> None:
    axes = charts.confusion(found).figure.axes[0]
    written = {text.get_position(): text.get_text() for text in axes.texts if text.get_gid() == "inside"}
    expected = {(column, row): f"{n:,}" for (row, column), n in np.ndenumerate(found.confusion) if n}
    assert written == expected
    row, column, number = charts.confused(found.confusion, 1)[0]
    assert said(charts.confusion(found).title) == f"Most often confused: {row} taken for {column}, {number} times"


def test_the_commonest_mistakes_come_first_and_what_is_right_is_none() -> None:
    counts = np.array([[90, 3, 0], [7, 80, 0], [1, 0, 99]])
    assert charts.confused(counts, 5) == [(1, 0, 7), (0, 1, 3), (2, 0, 1)]
    assert charts.confused(np.diag([4, 5, 6]), 5) == []


def test_a_dead_unit_is_framed_and_counted(found: charts.Findings) -> None:
    some = replace(found, activity=[np.array([0.0, *[0.5] * 10, 0.0]), np.ones(6)])
    chart = charts.first_layer(some)
    assert len(chart.figure.axes[0].patches) == 2
    assert "Two of them, framed, are dead" in chart.alt
    activity = shown(charts.activity(some))
    assert activity.title == "2 of 18 hidden units never say anything"
    assert "in layer 1 2 of 12 and in layer 2 0 of 6" in activity.alt


def test_the_pull_under_a_mistake_is_towards_the_wrong_answer(found: charts.Findings, runs: Path) -> None:
    parameters = load_checkpoint(runs / "relu" / "last.safetensors").parameters
    image, pull = found.images[0].ravel(), found.pull[0].ravel()
    wrong, right = found.predictions[0], found.labels[0]

    def lead(x: np.ndarray) -> float:
        result = looking.inside.scores(parameters, "relu", x[None].astype(np.float32))[0]
        return float(result[wrong] - result[right])

    step = 1e-3 * pull / np.abs(pull).max()
    assert lead(image + step) > lead(image) > lead(image - step)


def test_what_there_is_nothing_to_draw_of_is_left_out(found: charts.Findings) -> None:
    right = replace(found, wrong=found.wrong[:0], confusion=np.diag([100] * 10), activity=[], records=[])
    assert [charts.most_wrong(right), charts.activity(right), charts.learning(right)] == [None, None, None]
    assert charts.confusion(right).title == "Nothing is taken for anything else"


def test_the_learning_curves_are_the_run_s_records(found: charts.Findings) -> None:
    chart = shown(charts.learning(found))
    loss, accuracy = chart.figure.axes
    assert [line.get_label() for line in loss.lines] == ["train", "validation", "test"]
    np.testing.assert_allclose(loss.lines[0].get_ydata(), [record.train_loss for record in found.records])
    expected = [100 * (record.test_accuracy or 0) for record in found.records]
    np.testing.assert_allclose(accuracy.lines[2].get_ydata(), expected)
    assert said(chart.title) == f"{expected[-1]:.1f} % right after 2 epochs"


def test_a_confidence_is_never_rounded_up_to_certainty_and_other_losses_have_none(found: charts.Findings) -> None:
    sure = replace(found, confidence=np.full_like(found.confidence, 0.99999), loss="hinge")
    chart = shown(charts.most_wrong(sure))
    assert said(chart.title).endswith("with 99.9 %")
    assert "The scores of hinge are no beliefs" in chart.caption
    assert "no beliefs" not in shown(charts.most_wrong(found)).caption
