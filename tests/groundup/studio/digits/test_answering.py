"""Every stage's answer to a drawing is the answer of the library's own network."""

from __future__ import annotations

import time

import numpy as np
import pytest

from groundup.studio.digits.answering import Answers
from groundup.studio.digits.networks import DEFAULT
from shared.architectures import named
from shared.contract import STAGES, load_stage
from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_drawing, a_run
from tests.stages import REASONS
from tests.wide import wide, widened


def ready(answers, name):
    """The stages, when none is being prepared any more."""
    for _ in range(6000):
        floors = answers.floors(name)
        if all(each["state"] != "warming" for each in floors):
            return floors
        time.sleep(0.1)
    raise AssertionError("the stages were not prepared within a minute")


@wide
@pytest.mark.parametrize("layers", [[784, 4, 10], widened(pytest.param(SMALL_CNN, id="convolutional"))])
def test_all_floors_answer_as_stage_2_does(tmp_path, layers):
    a_run(tmp_path / "runs" / "one", layers, {"normalisation": {"mean": 0.1, "deviation": 0.3}})
    answers = Answers(tmp_path / "runs")
    floors = ready(answers, "one")
    assert [each["number"] for each in floors] == [1, 2, 3, 4]
    assert [each["state"] for each in floors] == ["absent" if REASONS[name] else "ready" for name in STAGES]
    stage, drawing = load_stage("numpy"), a_drawing(5)
    network = stage.network.Network(layers, seed=3)
    scores = network.forward(((drawing[np.newaxis] / np.float32(255)) - np.float32(0.1)) / np.float32(0.3))
    for floor in floors:
        if floor["state"] == "ready":
            answer = answers.answer("one", floor["number"], drawing)
            np.testing.assert_allclose(answer["scores"], scores[0], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(answer["probabilities"], stage.activations.softmax(scores)[0], atol=1e-5)
            assert answer["seconds"] > 0


def test_a_floor_that_is_missing_says_why_and_the_others_answer(tmp_path, monkeypatch):
    from groundup.studio.digits import answering
    from shared.contract import StageUnavailable

    def without(name):
        if name == "stage3_c":
            raise StageUnavailable("stage 3 needs a C compiler")
        return load_stage("numpy")

    monkeypatch.setattr(answering, "load_stage", without)
    answers = Answers(tmp_path / "runs")
    floors = ready(answers, DEFAULT)
    assert [each["state"] for each in floors] == ["ready", "ready", "absent", "ready"]
    assert floors[2]["why"] == "stage 3 needs a C compiler"
    with pytest.raises(StageUnavailable, match="stage 3 needs a C compiler"):
        answers.answer(DEFAULT, 3, a_drawing())


def test_pythons_loops_are_not_asked_for_a_large_network(tmp_path, monkeypatch):
    from groundup.studio.digits import answering

    monkeypatch.setattr(answering, "load_stage", lambda name: load_stage("numpy"))
    a_run(tmp_path / "runs" / "large", named("residual_cnn", (1, 28, 28), 10))
    floors = ready(Answers(tmp_path / "runs"), "large")
    assert floors[0]["state"] == "absent"
    assert floors[0]["why"] == "one image takes 33,142,528 multiply-adds, too many for Python's loops"
    assert [each["state"] for each in floors[1:]] == ["ready"] * 3


def test_a_run_that_goes_on_training_answers_with_its_newest_parameters(tmp_path, monkeypatch):
    from groundup.studio.digits import answering

    monkeypatch.setattr(answering, "load_stage", lambda name: load_stage("numpy"))
    answers = Answers(tmp_path / "runs")
    a_run(tmp_path / "runs" / "one", [784, 4, 10])
    before = answers.answer("one", 2, a_drawing())
    a_run(tmp_path / "runs" / "one", [784, 6, 10])
    after = answers.answer("one", 2, a_drawing())
    assert before["scores"] != after["scores"]


@pytest.mark.parametrize("number", [0, 5, True, "2", None, 2.0])
def test_a_floor_that_is_none_is_refused(tmp_path, number):
    with pytest.raises(ValueError, match="floor: expected a number from 1 to 4, got"):
        Answers(tmp_path / "runs").answer(DEFAULT, number, a_drawing())
