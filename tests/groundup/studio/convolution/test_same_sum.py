"""Every stage's own function gives the number that the page shows."""

from __future__ import annotations

import time

import pytest

from groundup.studio import prepared_stages
from groundup.studio.convolution.pixel import pixel
from groundup.studio.convolution.same_sum import StageSums, computed, function_of
from groundup.studio.floors import columns
from shared.contract import STAGES, StageUnavailable, load_stage
from tests.groundup.studio.convolution.made_networks import EVERY_KIND, made
from tests.groundup.studio.digits.made_runs import a_drawing
from tests.stages import REASONS

NETWORK = made(EVERY_KIND)
PASSED = NETWORK.passed(a_drawing(5).tobytes(), None)
PLACES = [
    ("1", 2, 0, 0),
    ("2", 1, 7, 9),
    ("3", 0, 5, 5),
    ("4", 3, 2, 4),
    ("5.5", 1, 3, 3),
    ("6", 2, 1, 1),
    ("7", 2, 3, 0),
]


def prepared(sums, dtype="float32"):
    sums.prepare(dtype)
    for _ in range(12_000):
        if sums._stages.is_prepared(dtype):
            return sums
        time.sleep(0.05)
    raise AssertionError("the stages were not prepared within ten minutes")


def test_all_stages_compute_the_number_of_the_map():
    sums = prepared(StageSums())
    for place in PLACES:
        found = pixel(NETWORK, PASSED, *place)
        answer = sums.sums(found, "float32")
        states = [each["state"] for each in answer["stages"]]
        assert states == ["absent" if REASONS[name] else "ready" for name in STAGES]
        for each in answer["stages"]:
            if each["state"] == "ready":
                assert abs(each["value"] - found.value) <= answer["allowed"], (place, each)
                assert each["seconds"] > 0
        assert answer["allowed"] < 1e-3 * max(1, abs(found.value))


def test_a_wrong_weight_is_beyond_what_rounding_explains():
    found = pixel(NETWORK, PASSED, "5.1", 1, 3, 3)
    allowed = StageSums().sums(found, "float32")["allowed"]
    weights = found.weights.copy()
    weights.ravel()[abs(found.inputs).argmax()] *= 1.01
    wrong = type(found)(
        *(getattr(found, name) for name in ("kind", "layer", "value", "slope", "corner", "inputs", "back")),
        weights,
        found.numbers,
    )
    assert abs(computed(load_stage("numpy"), wrong, "float32") - found.value) > allowed


def test_a_sum_of_two_ways_is_no_functions():
    assert StageSums().sums(pixel(NETWORK, PASSED, "5", 0, 0, 0), "float32")["stages"] == []


def test_the_page_floors_shows_each_function():
    for place in PLACES:
        room, name = function_of(pixel(NETWORK, PASSED, *place))
        stages = columns.function(room, name)["stages"]
        assert [each["name"] for each in stages] == list(STAGES)
        assert all(each["parts"] for each in stages)


def test_a_stage_that_is_missing_says_why_and_the_others_compute(monkeypatch):
    def without(name):
        if name == "stage3_c":
            raise StageUnavailable("stage 3 needs a C compiler")
        return load_stage("numpy")

    monkeypatch.setattr(prepared_stages, "load_stage", without)
    stages = prepared(StageSums()).sums(pixel(NETWORK, PASSED, *PLACES[0]), "float32")["stages"]
    assert [each["state"] for each in stages] == ["ready", "ready", "absent", "ready"]
    assert stages[2]["why"] == "stage 3 needs a C compiler"


@pytest.mark.parametrize("dtype", ["float64"])
def test_before_its_preparation_no_stage_is_asked(dtype):
    stages = StageSums().sums(pixel(NETWORK, PASSED, *PLACES[0]), dtype)["stages"]
    assert {each["state"] for each in stages} == {"warming"}
    assert all("value" not in each for each in stages)
