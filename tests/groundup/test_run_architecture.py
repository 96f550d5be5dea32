"""The network of a run as it is drawn: with the times of its profile, or the reason why there are none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from groundup.commands import look as command
from groundup.run_architecture import PROFILE, NetworkForm, as_svg, of_run
from shared.architectures import Architecture, mlp, named
from shared.charts.figures.architecture import drawing, rows_of
from shared.contract import load_stage
from shared.machine.processes import ROOT
from shared.training.checkpoints import save_checkpoint
from tests.shared.charts import chart_checks

RECORDED = ROOT / "docs" / "benchmarks" / "profile-lenet5" / PROFILE


def a_run(folder: Path, architecture: Architecture, stage: str = "stage3_c") -> Path:
    own = load_stage(stage)
    notes = {"model": "lenet5"} if architecture == named("lenet5") else {}
    save_checkpoint(folder / "last.safetensors", own, own.network.Network(architecture), None, {"notes": notes})
    return folder


@pytest.fixture
def profiled(tmp_path: Path) -> Path:
    """A run of LeNet-5 on stage 3, with the profile of that network and stage."""
    folder = a_run(tmp_path / "lenet", named("lenet5"))
    shutil.copyfile(RECORDED, folder / PROFILE)
    return folder


def recorded(layer: str) -> float:
    (profile,) = json.loads(RECORDED.read_bytes())["profiles"]
    return sum(each["seconds"]["median"] for each in profile["operations"] if each["layer"] == layer)


def test_the_times_of_a_step_stand_at_their_layers(profiled: Path) -> None:
    form = of_run(profiled)
    assert form.title == "LeNet-5"
    assert form.measured == "a training step of 64 images by stage 3: C"
    # Layers 2 and 3, relu and max pool, are one operation of stage 3: it counts for the pool.
    expected = {"1": "1", "3": "2, 3", "4": "4", "6": "5, 6", "7": "7", "8": "8, 9", "10": "10, 11", "12": "12"}
    assert dict(form.seconds) == pytest.approx(
        {number: recorded(layer) + (recorded(number) if layer != number else 0) for number, layer in expected.items()}
    )
    rows, _ = rows_of(form.architecture, form.seconds)
    assert sum(row.seconds for row in rows) == pytest.approx(sum(form.seconds.values()))
    assert form.as_text().splitlines()[0].split() == ["layer", "output", "parameters", "multiply-adds", "time"]
    assert form.as_text().splitlines()[2].split()[-3:] == ["117,600", "403", "µs"]
    assert form.as_text().splitlines()[-1] == "time: a training step of 64 images by stage 3: C"


def test_the_figure_with_times_can_be_read(profiled: Path) -> None:
    form = of_run(profiled)
    chart = drawing(form.architecture, form.title, form.seconds, form.measured)
    chart_checks.assert_sound(chart.figure)
    assert "Conv(6, 5, padding=2): 6\u00d728\u00d728, 156\u00a0parameters, 403\u00a0µs" in chart.alt
    drawn = as_svg(form)
    assert drawn["alt"] == chart.alt
    assert drawn["note"] == ""


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (RECORDED.read_bytes(), "without times: the profile is of another network, 'lenet5'"),
        (b"{", "is not JSON"),
    ],
)
def test_a_profile_that_is_none_of_this_network_is_left_out_and_said(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    folder = a_run(tmp_path, named("lenet5", classes=4), "stage2_numpy")
    (folder / PROFILE).write_bytes(content)
    form = of_run(folder)
    assert sentence in form.note
    assert not form.seconds
    assert form.as_text() == f"{form.architecture.drawing()}\n{form.note}"


def test_a_run_without_a_profile_is_drawn_without_times(tmp_path: Path) -> None:
    form = of_run(a_run(tmp_path, mlp([784, 12, 10], "tanh"), "stage1_pure_python"))
    assert form == NetworkForm(mlp([784, 12, 10], "tanh"), "784-12-10 tanh")
    assert form.as_text() == form.architecture.drawing()


def test_look_draws_the_architecture_of_a_run(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.look(architecture=str(profiled), out=profiled / "figures")
    text = capsys.readouterr().out
    assert text.startswith(of_run(profiled).as_text())
    assert "architecture.png, architecture.svg" in text.splitlines()[-1]
    assert "prefers-color-scheme:dark" in (profiled / "figures" / "architecture.svg").read_text(encoding="utf-8")
    command.look(architecture=str(profiled / "last.safetensors"), json=True)
    assert Architecture.from_json(json.loads(capsys.readouterr().out)) == named("lenet5")
    with pytest.raises(ValueError, match="holds no run: there is no last"):
        command.look(architecture=str(profiled / "figures"))
    with pytest.raises(ValueError, match=r"unknown architecture 'nothing'; .* or name the folder of a run"):
        command.look(architecture="nothing")
