"""An exported race: the speeds of a recorded one, and networks that are stage 2's after as many images."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundup.studio.export import document
from groundup.studio.race import embedded
from groundup.studio.race.racing import Lane
from shared.data.datasets import load_dataset
from shared.machine.processes import ROOT
from tests.wide import wide

RACE = ROOT / "docs" / "benchmarks" / "race-2-cores"


def test_the_race_that_ships_is_the_recorded_one() -> None:
    recorded = json.loads(embedded.RECORDED.read_bytes())
    assert recorded == embedded.record(RACE) == embedded.record(RACE / "results.json")
    results = json.loads((RACE / "results.json").read_bytes())
    assert [lane["speed"] for lane in recorded["lanes"]] == [each["samples_per_second"] for each in results["stages"]]
    assert [lane["emulated"] for lane in recorded["lanes"]] == [False, False, False, True]
    assert results["environment"]["date"][:10] in recorded["machine"]
    assert recorded["apart"] < 1e-12


def test_a_race_on_a_gpu_names_it(tmp_path: Path) -> None:
    results = json.loads((RACE / "results.json").read_bytes())
    results["environment"]["stage4_numba_cuda"] = {"backend": "gpu", "device": "NVIDIA H200", "emulated": False}
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert "2 cores, NVIDIA H200, 2026" in embedded.record(tmp_path)["machine"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("hidden", 64, "got {'hidden': 64}"), ("limit", 200, "got {'limit': 200}"), (None, None, "no results file of")],
)
def test_another_race_is_refused(tmp_path: Path, name: str | None, value: object, says: str) -> None:
    results = json.loads((RACE / "results.json").read_bytes())
    if name is None:
        results["kind"] = "groundup bench"
    else:
        results["settings"][name] = value
    (tmp_path / "results.json").write_text(json.dumps(results))
    with pytest.raises(ValueError, match="results.json.*" + says.replace("{", "\\{").replace("}", "\\}")):
        embedded.data({"run": tmp_path})
    with pytest.raises(OSError, match=r"gone"):
        embedded.data({"run": tmp_path / "gone"})


def _without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda results: results["stages"][1].pop(name)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda results: results.update(agree=False), "its stages did not agree"),
        (lambda results: results.update(stages=results["stages"][3:]), "two stages or more .* got stage4_numba_cuda"),
        (lambda results: results.update(stages=[]), "two stages or more that are not emulated, got none"),
        (
            lambda results: results["stages"][1].update(samples_per_second=0),
            "stage2_numpy: expected more than 0 images",
        ),
        (lambda results: results["stages"][1]["worst"].update(got=None), "cannot show this race: TypeError"),
        (_without("samples_per_second"), "cannot show this race: KeyError: 'samples_per_second'"),
    ],
)
def test_a_race_without_what_the_page_compares_is_refused(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], object], says: str
) -> None:
    results = json.loads((RACE / "results.json").read_bytes())
    spoil(results)
    (tmp_path / "results.json").write_text(json.dumps(results))
    with pytest.raises(ValueError, match="results.json: .*" + says):
        embedded.record(tmp_path)


@wide
def test_the_networks_are_stage_2s_and_the_file_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    text = document("race", {})
    assert len(text) < 2_000_000
    monkeypatch.setattr(embedded, "STEPS", (0, 3, 188, 190))
    data = embedded.data({})
    assert [each["seen"] for each in data["networks"]] == [0, 96, 6000, 6064]
    lane = Lane("stage2_numpy", load_dataset())
    lane.prepare()
    for _ in range(190):
        lane.turn(0)
    for packed, expected in zip(data["networks"][-1]["parameters"], lane.parameters(), strict=True):
        numbers = packed["scale"] * np.frombuffer(base64.b64decode(packed["base64"]), "<i2")
        np.testing.assert_allclose(numbers, expected.ravel(), rtol=0, atol=packed["scale"] / 2 * 1.001)
    assert data["networks"][-1]["loss"] == lane.loss
