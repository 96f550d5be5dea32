"""The main job in small: every stage on the same few images, agreement to the last image, files, errors, interrupts."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from groundup import race, race_ladders, race_results
from groundup.commands import race as command
from shared import contract
from shared.charts.figures import curves
from shared.data.datasets import Dataset, Split, load_dataset
from shared.machine.environment import busy
from shared.machine.environment import environment as command_environment
from tests.stages import USABLE_STAGES
from tests.wide import WIDE, wide

RACED = [name for name in USABLE_STAGES if WIDE or not contract.is_emulated(name)]
"""Without the emulator, whose kernels take seconds to compile; with it in the wide tests."""

SETTINGS = race.Settings(hidden=5, epochs=2, batch_size=7)


def small_data() -> Dataset:
    """Three classes of 6 x 6 "images": noise with a bright row that tells the class."""
    random = np.random.default_rng(3)

    def split(count: int) -> Split:
        labels = random.integers(0, 3, count)
        images = random.random((count, 6, 6)) * 0.5
        images[np.arange(count), 2 * labels] += 0.5
        return Split(images.reshape(count, 36).astype(np.float32), labels)

    return Dataset("rows", split(60), split(20), 3)


@pytest.fixture(scope="module")
def laps() -> list[race.Lap]:
    return [race.run_lap(contract.load_stage(name), small_data(), SETTINGS) for name in RACED]


STEPS = 2 * 9  # epochs x batches of 7 in 60


def test_all_stages_agree_on_every_prediction_and_parameter(laps: list[race.Lap]) -> None:
    found = race.agreements(laps, SETTINGS, STEPS)
    assert list(found) == RACED
    for agreement in found.values():
        assert agreement.ok
        assert agreement.other_predictions == 0
        assert agreement.worst.tolerances <= 1
    assert found[laps[0].stage.name].worst.tolerances == 0


def test_laps_learn_and_record_every_epoch(laps: list[race.Lap]) -> None:
    for lap in laps:
        assert [record.epoch for record in lap.epochs] == [1, 2]
        assert lap.epochs[1].train_loss < lap.epochs[0].train_loss
        assert lap.test_accuracy == np.mean(lap.predictions == small_data().test.y)
        assert lap.seconds_per_epoch > 0
        assert lap.samples_per_second * lap.seconds_per_epoch == pytest.approx(60)


def test_seconds_an_epoch_and_samples_a_second_are_one_measurement(laps: list[race.Lap]) -> None:
    """The median of two epochs' seconds and the median of their rates are of different epochs."""
    first, second = laps[0].epochs
    slow = replace(first, seconds=11.0, samples_per_second=60 / 11.0)
    fast = replace(second, seconds=0.5, samples_per_second=120.0)
    lap = changed(laps[0], epochs=[slow, fast])
    assert lap.seconds_per_epoch == 5.75
    assert lap.samples_per_second == pytest.approx(60 / 5.75)


def test_what_a_stage_does_once_is_in_no_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = contract.load_stage("stage2_numpy")
    real, batches = stage.network.Network.train_step, []

    def first_is_slow(self: Any, x: Any, *rest: Any, **more: Any) -> Any:
        if len(x) not in batches:
            time.sleep(0.5)  # as if it were compiled for this batch size
        batches.append(len(x))
        return real(self, x, *rest, **more)

    monkeypatch.setattr(stage.network.Network, "train_step", first_is_slow)
    lap = race.run_lap(stage, small_data(), SETTINGS)
    assert set(batches) == {7, 60 % 7}
    assert lap.warm_up > 1
    assert max(record.seconds for record in lap.epochs) < 0.5


def test_float32_agrees_within_its_own_tolerance() -> None:
    settings = race.Settings(hidden=5, epochs=2, batch_size=7, dtype="float32")
    stages = [contract.load_stage(name) for name in RACED]
    laps = [race.run_lap(stage, small_data(), settings) for stage in stages]
    assert all(agreement.ok for agreement in race.agreements(laps, settings, STEPS).values())


def changed(lap: race.Lap, **fields: Any) -> race.Lap:
    values = {name: getattr(lap, name) for name in race.Lap.__dataclass_fields__}
    return race.Lap(**{**values, **fields})


@pytest.mark.parametrize(("dtype", "ok"), [("float64", False), ("float32", True)])
def test_another_prediction_is_counted_and_fails_only_float64(laps: list[race.Lap], dtype: str, ok: bool) -> None:
    other = laps[-1].predictions.copy()
    other[[2, 5]] = (other[[2, 5]] + 1) % 3
    settings = race.Settings(hidden=5, epochs=2, batch_size=7, dtype=dtype)
    found = race.agreements([laps[0], changed(laps[-1], predictions=other)], settings, STEPS)
    agreement = found[laps[-1].stage.name]
    assert (agreement.other_predictions, agreement.ok) == (2, ok)


def test_a_parameter_that_is_off_fails_with_its_place(laps: list[race.Lap]) -> None:
    lap = laps[-1]
    parameters = [np.array(lap.stage.arrays.to_host(array)) for array in lap.network.parameters]
    parameters[2][3, 1] += 1e-6
    network = lap.stage.network.Network.from_parameters(parameters, dtype="float64")
    found = race.agreements([laps[0], changed(lap, network=network)], SETTINGS, STEPS)[lap.stage.name]
    assert not found.ok
    assert (found.worst.layer, found.worst.index) == ("3", (3, 1))


def test_the_first_samples_of_the_bundled_subset_hold_every_class() -> None:
    assert set(load_dataset().train.y[:200]) == set(range(10))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Invoke the command on the small data, with a ladder of 4 x 4; results go to tmp_path. The charts, which take
    seconds, are drawn where `draws` asks for them."""
    monkeypatch.setattr(race_results, "draw", lambda *_: [])
    return _invoking(monkeypatch, tmp_path)


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """The same, with charts."""
    return _invoking(monkeypatch, tmp_path)


def _invoking(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.setattr(command, "load_dataset", lambda *_: small_data())
    monkeypatch.setattr(command, "LADDER_SIZE", 4)
    # The other tests that run now would keep the machine busy, and each race would start a process more.
    monkeypatch.setattr(command, "busy", lambda facts: None)
    app = typer.Typer()
    app.command()(command.race)
    settings = ["--hidden", "5", "--epochs", "2", "--batch-size", "7", "--stages", "1,2"]
    return lambda *arguments: CliRunner().invoke(app, [*settings, "--out", str(tmp_path / "out"), *arguments])


def test_the_command_leaves_charts_and_results(draws: Callable[..., Any], tmp_path: Path) -> None:
    result = draws()
    assert result.exit_code == 0, result.output
    names = ("training_curves", "time_per_stage", "ladder_share")
    charts = {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"results.json", *charts}
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (document["schema"], document["agree"], document["network"]) == (1, True, [36, 5, 3])
    assert set(document["charts"]) == charts
    first, second = document["stages"]
    assert first["test_accuracy"] == second["test_accuracy"]
    assert first["speed"] == 1
    assert second["speed"] == pytest.approx(first["seconds_per_epoch"] / second["seconds_per_epoch"])
    assert len(second["epochs"]) == 2
    assert {row["stage"] for row in document["ladders"]} == {"stage1_pure_python", "stage2_numpy"}
    assert "one thread" not in result.stdout
    assert "ladder_threads" not in document["environment"]


@wide
def test_the_summary_fits_on_one_screen(run: Callable[..., Any]) -> None:
    lines = run().stdout.splitlines()
    assert len(lines) <= 24
    text = "\n".join(lines)
    for wanted in ("stage 1: pure Python", "stage 2: NumPy", "36-5-3", "the same prediction for every test image"):
        assert wanted in text
    table = [line for line in lines if line.startswith("stage ")]
    assert all(len(line) <= 80 for line in table)


def test_where_another_program_computes_the_ladders_are_measured_on_one_thread(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    facts = command.environment() | {"load_average": 3.0, "cores": 8}
    monkeypatch.setattr(command, "environment", lambda: dict(facts))
    monkeypatch.setattr(command, "busy", busy)
    out = run("--stages", "2").stdout
    assert "measured on one thread" in out
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["stage"] for row in document["ladders"]} == {"stage2_numpy"}
    assert {row["threads"] for row in document["ladders"]} == {1}  # at_operator has all cores on an idle machine
    assert {row["shape"][0] for row in document["ladders"]} == {4}
    assert {library for row in document["ladders"] for library in row["against"]} == {"numpy"}  # as on an idle machine
    assert document["environment"]["ladder_threads"] == 1


def test_where_the_ladders_cannot_be_measured_all_else_is_kept(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "busy", lambda facts: "busy")
    monkeypatch.setattr(race_ladders, "CODE", "raise SystemExit('no room')")
    result = run("--stages", "2")
    assert result.exit_code == 0
    assert (
        "warning: the matmul ladders were not measured: ChildProcessError: its process ended with exit code 1: no room"
        in result.stderr.splitlines()
    )
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (len(document["stages"]), document["ladders"]) == (1, [])


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("no ink")


def test_a_figure_that_cannot_be_drawn_costs_that_figure_and_a_sentence(
    draws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(curves, "training_curves", broken)
    result = draws("--stages", "1,2")
    assert result.exit_code == 0
    assert "warning: the figure training_curves was not drawn: RuntimeError: no ink" in result.stderr.splitlines()
    charts = json.loads((tmp_path / "out" / "results.json").read_text())["charts"]
    assert {name.partition(".")[0] for name in charts} == {"time_per_stage", "ladder_share"}
    assert "stage 2: NumPy" in result.stdout


@pytest.mark.parametrize("where", ["_ladders", "draw"])
def test_ctrl_c_after_the_stages_keeps_what_they_did(
    where: str, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command if where == "_ladders" else command.race_results, where, interrupt)
    result = run("--stages", "2")
    results = tmp_path / "out" / "results.json"
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"interrupted: {results} has what the stages did, without all charts"
    assert json.loads(results.read_text())["stages"][0]["stage"] == "stage2_numpy"


@wide
def test_json_on_stdout_is_the_document_in_the_file(run: Callable[..., Any], tmp_path: Path) -> None:
    assert json.loads(run("--json").stdout) == json.loads((tmp_path / "out" / "results.json").read_text())


def test_stages_that_disagree_exit_1_with_a_report(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    activations = contract.load_stage("2").activations
    right = activations.relu_backward

    def wrong_sign(*args: Any, **options: Any) -> np.ndarray:
        result = right(*args, **options)
        return np.negative(result, out=result)

    monkeypatch.setattr(activations, "relu_backward", wrong_sign)
    result = run()
    assert result.exit_code == 1
    assert "The stages disagree (reference: stage1_pure_python):" in result.stderr
    assert "stage 2: NumPy: " in result.stderr
    assert "layer " in result.stderr
    assert "tolerances apart" in result.stderr
    assert "agree:" not in result.stdout


def test_ctrl_c_is_one_line_and_exit_2(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.racing, "run_lap", interrupt)
    result = run()
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "interrupted: the race was not finished and nothing was written; start it again to race"
    ]
    assert list((tmp_path / "out").iterdir()) == []


def test_an_unwritable_folder_is_refused_before_training(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command.racing, "run_lap", lambda *_: pytest.fail("trained first"))
    (tmp_path / "file").write_text("in the way")
    result = run("--out", str(tmp_path / "file"))
    assert isinstance(result.exception, OSError)
    assert "cannot write results into" in str(result.exception)


def test_the_defaults_reach_92_percent_for_several_seeds() -> None:
    """The main job's promise, by NumPy alone, which agrees with the other stages to the image."""
    stage = contract.load_stage("stage2_numpy")
    data = load_dataset()
    for seed in range(3 if WIDE else 1):
        assert race.run_lap(stage, data, race.Settings(seed=seed)).test_accuracy >= 0.92


def test_an_emulated_stage_is_marked_in_json_table_and_charts(
    draws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Stage 2 stands in for stage 4: nothing but the marking is looked at here.
    facts = {"backend": "emulator", "device": "no GPU", "emulated": True}
    monkeypatch.setattr(contract, "stage_facts", lambda name: facts if name == "stage2_numpy" else {})
    monkeypatch.setattr(command, "environment", lambda: command_environment() | {"stage4_numba_cuda": facts})
    output = draws().stdout
    assert "stage 2 (emulated)" in output
    assert "emulated: stage 4's CUDA kernels were emulated on the CPU: its times say nothing about a GPU" in output
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [stage["emulated"] for stage in document["stages"]] == [False, True]
    assert document["stages"][1]["title"] == "stage 2: NumPy, emulated on the CPU"
    assert {row["stage"] for row in document["ladders"]} == {"stage1_pure_python"}
    assert "emulated" in (tmp_path / "out" / "time_per_stage.svg").read_text()


# --- a known network ---


def digits() -> Dataset:
    """Few images of the bundled subset, so that stage 1 takes seconds."""
    data = load_dataset()
    return Dataset("mnist-subset", data.train.first(9), data.test.first(4), 10)


MODEL = race.settings_of({"model": "lenet5", "epochs": 1})


@wide
def test_all_stages_train_a_model_to_the_same_numbers() -> None:
    laps = [race.run_lap(stage, digits(), MODEL) for stage in map(contract.load_stage, USABLE_STAGES)]
    found = race.agreements(laps, MODEL, steps=2)
    assert len(found) >= 2
    for agreement in found.values():
        assert agreement.ok
        assert agreement.other_predictions == 0
    assert {lap.network_name for lap in laps} == {"lenet5"}


def test_a_model_has_defaults_of_its_own_which_options_replace() -> None:
    settings = race.settings_of({"model": "lenet5", "epochs": 3})
    assert (settings.hidden, settings.epochs, settings.limit) == (None, 3, race.OF_MODEL["limit"])
    assert race.settings_of({}) == race.Settings()


def test_settings_that_a_model_has_no_place_for_are_refused() -> None:
    with pytest.raises(ValueError, match="--hidden is for a stack of dense layers; --model lenet5 has its own"):
        race.settings_of({"model": "lenet5", "hidden": 5})


@pytest.fixture
def model_race(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Invoke the command for LeNet-5 on few images, without charts."""
    monkeypatch.setattr(race_results, "draw", lambda *_: [])
    monkeypatch.setattr(command, "load_dataset", lambda *_: digits())
    monkeypatch.setattr(command, "LADDER_SIZE", 4)
    app = typer.Typer()
    app.command()(command.race)
    settings = ["--model", "lenet5", "--epochs", "1", "--out", str(tmp_path / "out")]
    return lambda *arguments: CliRunner().invoke(app, [*settings, *arguments])


def test_the_summary_names_the_model_and_how_many_images_all_stages_got(
    model_race: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "busy", lambda facts: "the machine was not idle")
    result = model_race("--stages", "2")
    assert result.exit_code == 0, result.output
    assert "lenet5 on the first 800 images of mnist-subset" in result.stdout.replace("\n", " ")
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (document["settings"]["model"], document["network"]) == ("lenet5", [784, 10])
    assert (document["ladders"], document["environment"].get("ladder_threads")) == ([], None)
