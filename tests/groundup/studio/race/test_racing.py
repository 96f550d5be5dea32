"""The live race: each lane takes the library's steps, gets its share of the time, and reads a drawing at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from groundup.race import run_lap
from groundup.studio.digits.pixels import as_input
from groundup.studio.race import racing
from groundup.studio.race.racing import SETTINGS, Lane, Race
from shared.contract import StageUnavailable, load_stage
from shared.data.datasets import Dataset, limited, load_dataset
from tests.groundup.studio.digits.made_runs import a_drawing
from tests.studio_server import RunningStudio
from tests.wide import wide, widely

STEPS = 21
IMAGES = 650
"""Twenty whole batches and a part of one: a mark of its own before the end of the lap."""
THREE = a_drawing(3)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return limited(load_dataset(), IMAGES)


@pytest.fixture
def states() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def race(data: Dataset, states: list[dict[str, Any]]) -> Iterator[Race]:
    """A race whose lanes are ready, watched by somebody."""
    made = Race(states.append, data)
    made.watched(1)
    until(lambda: all(lane["ready"] for lane in made.state()["lanes"]))
    yield made
    made.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "race"]


def until(true: Any) -> None:
    for _ in range(30_000):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("not true after ten minutes")


@pytest.mark.parametrize("name", widely(["stage2_numpy", "stage3_c", "stage1_pure_python", "stage4_numba_cuda"], 2))
def test_a_lane_takes_the_steps_of_groundup_race(data: Dataset, name: str) -> None:
    losses: list[float] = []
    lap = run_lap(load_stage(name), data, replace(SETTINGS, epochs=1), lambda epoch, step, loss: losses.append(loss))
    lane = Lane(name, data)
    lane.prepare()
    taken = []
    while lane.seen < IMAGES:
        lane.turn(0)
        taken.append(lane.loss)
    assert taken == losses
    assert len(taken) == STEPS
    for got, expected in zip(lane.parameters(), lap.network.parameters, strict=True):
        np.testing.assert_array_equal(got, lap.stage.arrays.to_host(expected))
    lane.look(0)
    assert lane.accuracy == lap.test_accuracy


@wide
def test_the_lane_with_the_smallest_clock_has_its_turn_until_the_slowest_has_its_first_lap(
    race: Race, states: list[dict[str, Any]]
) -> None:
    states.clear()
    before = race.state()
    race.run(True)
    until(lambda: race.finished)
    until(lambda: states[-1]["finished"])
    assert len(states) > STEPS
    for state in states:
        (moved,) = (i for i in range(4) if state["lanes"][i]["seen"] != before["lanes"][i]["seen"])
        assert before["lanes"][moved]["clock"] == min(lane["clock"] for lane in before["lanes"])
        before = state
    assert min(lane["seen"] for lane in before["lanes"]) == IMAGES
    assert max(lane["seen"] for lane in before["lanes"]) > 10 * IMAGES
    assert [mark["seen"] for mark in before["agreed"]] == [640, IMAGES]
    for mark in before["agreed"]:
        assert mark["apart"] < 1e-12
        assert mark["losses"] == pytest.approx([mark["losses"][0]] * 4, abs=1e-12)
    assert not race.run(True)["running"], "a finished race stays so"
    again = race.begin()
    assert [lane["seen"] for lane in again["lanes"]] == [0] * 4
    assert (again["finished"], again["agreed"]) == (False, [])
    fresh = race.lanes[0].stage.network.Network([784, 32, 10], seed=SETTINGS.seed, dtype=SETTINGS.dtype)
    np.testing.assert_array_equal(race.lanes[0].parameters()[0], fresh.parameters[0])


def test_a_drawing_is_read_by_every_stage_while_they_train_and_when_they_rest(race: Race) -> None:
    before = [lane["answered"] for lane in race.draw(THREE.tolist())["lanes"]]
    race.run(True)
    until(lambda: race.lanes[0].seen >= 64)
    moving = race.draw(THREE.tolist())
    assert moving["running"]
    assert all(sum(lane["answered"]) == pytest.approx(1) for lane in moving["lanes"])
    assert [lane["answered"] for lane in moving["lanes"]] != before
    until(lambda: race.lanes[0].answered != before[0])
    race.run(False)
    resting = race.draw(THREE.tolist())
    seen = [lane["seen"] for lane in resting["lanes"]]
    for lane, shown in zip(race.lanes, resting["lanes"], strict=True):
        x = lane.stage.arrays.asarray(as_input(THREE), SETTINGS.dtype)
        scores = lane.network.forward(x)
        expected = np.asarray(lane.stage.arrays.to_host(lane.stage.activations.softmax(scores)))[0]
        np.testing.assert_array_equal(shown["answered"], expected)
        assert np.argmax(shown["answered"]) == np.asarray(lane.stage.arrays.to_host(lane.network.predict(x)))[0]
    assert race.draw(None)["lanes"][0]["answered"] is None
    assert [lane.seen for lane in race.lanes] == seen


def test_a_race_that_is_paused_or_not_watched_rests(race: Race, states: list[dict[str, Any]]) -> None:
    for rest, go_on in ((lambda: race.run(False), lambda: race.run(True)), (lambda: race.watched(-1), None)):
        race.run(True)
        seen = race.lanes[2].seen
        until(lambda seen=seen: race.lanes[2].seen > seen)
        rest()
        with race.lanes[0].lock, race.lanes[1].lock, race.lanes[2].lock, race.lanes[3].lock:
            published = len(states)
        time.sleep(0.3)
        assert len(states) <= published + 1
        if go_on:
            go_on()


def test_a_stage_that_the_machine_lacks_is_named_and_the_others_race(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> Any:
        if name in ("stage1_pure_python", "stage4_numba_cuda"):
            raise StageUnavailable("no such stage here")
        return load_stage(name)

    monkeypatch.setattr(racing, "load_stage", load)
    race = Race(lambda state: None, data)
    race.watched(1)
    race.run(True)
    until(lambda: race.finished)
    race.close()
    lanes = race.state()["lanes"]
    assert [lane["why"] for lane in lanes] == ["no such stage here", "", "", "no such stage here"]
    assert min(lanes[i]["seen"] for i in (1, 2)) >= IMAGES


def test_the_others_race_without_a_stage_that_breaks_while_it_is_prepared(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> Any:
        if name in ("stage1_pure_python", "stage4_numba_cuda"):
            raise ImportError("Numba needs NumPy 2.3 or less")
        return load_stage(name)

    states: list[dict[str, Any]] = []
    monkeypatch.setattr(racing, "load_stage", load)
    race = Race(states.append, data)
    race.watched(1)
    race.run(True)
    until(lambda: race.finished)
    race.close()
    assert [lane["why"] for lane in race.state()["lanes"]][3] == "ImportError: Numba needs NumPy 2.3 or less"
    assert not [state for state in states if "error" in state]


def test_an_error_of_a_stage_is_a_sentence_and_a_pause(
    race: Race, states: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def turn(self: Lane) -> None:
        raise FloatingPointError("the loss is nan")

    monkeypatch.setattr(Lane, "turn", turn)
    race.run(True)
    until(lambda: {"error": "FloatingPointError: the loss is nan"} in states)
    assert not race.running


@wide
def test_every_tab_has_a_race_that_ends_with_its_session(studio_server: RunningStudio) -> None:
    first, second = (studio_server.post("/api/race/open") for _ in range(2))
    assert (first["lap"], len(first["samples"]), len(first["state"]["lanes"])) == (6000, 10, 4)
    asked = {"session": first["session"]}
    until(lambda: all(lane["ready"] for lane in studio_server.post("/api/race/pause", asked)["lanes"]))
    assert studio_server.post("/api/race/run", asked)["running"]
    events = studio_server.events(f"/api/race/watch?session={first['session']}", 8)
    assert events[-1]["lanes"][2]["seen"] > 0
    drawn = studio_server.post("/api/race/draw", {**asked, "pixels": first["samples"][3]})
    assert all(len(lane["answered"]) == 10 for lane in drawn["lanes"])
    assert "pixels: expected a list of 784" in studio_server.refused("/api/race/draw", {**asked, "pixels": [1]})
    assert not studio_server.post("/api/race/begin", asked)["running"]
    studio_server.studio.sessions.close(first["session"])
    assert "session has ended" in studio_server.refused("/api/race/run", asked)
    assert studio_server.post("/api/race/pause", {"session": second["session"]})["lanes"][1]["seen"] == 0
    studio_server.studio.sessions.close(second["session"])
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "race"])
