"""The results of a race are read again, and any other document is refused with a sentence that names what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from groundup.race_file import results_of, schema
from shared.numbers import duration

ROOT = Path(__file__).resolve().parents[2]
RACES = [ROOT / "docs/benchmarks/race-2-cores/results.json", ROOT / "tests/fixtures/aa8f7fd/race.json"]


def race() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RACES[0].read_text(encoding="utf-8"))
    return found


STAGE = race()["stages"][0]
EPOCH = STAGE["epochs"][0]


@pytest.mark.parametrize("path", RACES, ids=["today's", "an earlier version's"])
def test_a_race_is_read_as_rows_and_curves(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema()).validate(document)
    found = results_of(document, "race.json")
    epochs = {row.stage: row for row in found.rows if row.kind == "epoch"}
    assert len(found.rows) == len(document["ladders"]) + len(document["stages"])
    for stage in document["stages"]:
        row = epochs[stage["stage"]]
        assert row.seconds == pytest.approx(stage["seconds_per_epoch"])
        assert row.accuracy == stage["test_accuracy"]
        curve = next(each for each in found.curves if each.stage == stage["stage"])
        assert list(curve.accuracy) == [each["test_accuracy"] for each in stage["epochs"]]
        assert curve.seconds[-1] == pytest.approx(sum(each["seconds"] for each in stage["epochs"]))
        assert duration(curve.seconds[-1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "groundup bench"}, 'race.json is no results file of `groundup race`: .* got "groundup bench"'),
        ({"schema": 2}, "race.json: schema: expected 1, got 2"),
        ({"stages": [{"stage": "stage9"}]}, r"race.json: stages\[0\].emulated: is missing"),
        ({"stages": [STAGE | {"epochs": []}]}, r"race.json: stages\[0\].epochs: expected at least one epoch"),
        ({"stages": [STAGE | {"epochs": [EPOCH | {"seconds": 1e-320}]}]}, r"epochs: expected 1e-13 to 1e\+09 seconds"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        results_of({**race(), **change}, "race.json")
