"""The playground through a running studio: a training for each tab, and strict answers to wrong requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groundup.studio.playground.model import Playground
from groundup.studio.playground.settings import Settings
from tests.studio_server import RunningStudio


def post(server: RunningStudio, name: str, **body: Any) -> Any:
    answer = server.ask("POST", f"/api/playground/{name}", json.dumps(body).encode())
    return answer.json


def test_a_tab_trains_as_the_library_does(studio_server: RunningStudio) -> None:
    opened = post(studio_server, "open", settings={"data": "spirals", "seed": 3})
    stepped = post(studio_server, "step", session=opened["session"], count=7)
    playground = Playground(Settings(data="spirals", seed=3))
    playground.step(7)
    assert stepped["step"] == 7
    assert stepped["weights"][1] == pytest.approx(playground.state().parameters[2], abs=1e-4)


def test_two_tabs_have_trainings_of_their_own(studio_server: RunningStudio) -> None:
    first, second = (post(studio_server, "open", settings={})["session"] for _ in range(2))
    post(studio_server, "step", session=first, count=5)
    assert post(studio_server, "step", session=second, count=1)["step"] == 1
    post(studio_server, "run", session=first)
    studio_server.studio.sessions.close(first)
    assert "session has ended" in post(studio_server, "step", session=first)["error"]
    assert post(studio_server, "step", session=second, count=1)["step"] == 2


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("open", {"settings": {"data": "<img onerror=x>"}}, "data: unknown '<img onerror=x>'"),
        ("open", {"settings": []}, "settings: expected a JSON object, got list"),
        ("open", {"settings": {"stage": "9"}}, "unknown stage '9'"),
        ("step", {"session": "nobody's"}, "this tab's session has ended"),
        ("step", {"session": {"a": 1}}, "this tab's session has ended"),
    ],
)
def test_a_wrong_request_is_answered_with_a_sentence(
    studio_server: RunningStudio, name: str, body: dict[str, Any], says: str
) -> None:
    assert says in post(studio_server, name, **body)["error"]


def test_a_wrong_count_is_refused(studio_server: RunningStudio) -> None:
    session = post(studio_server, "open")["session"]
    assert post(studio_server, "step", session=session, count="many")["error"].startswith("count: expected a whole")
    assert post(studio_server, "change", session=session, settings={"layers": [0]})["error"].startswith(
        "layers: number 1"
    )
    assert post(studio_server, "step", session=session)["step"] == 1


def test_a_training_that_diverged_is_sent_as_strict_json(studio_server: RunningStudio) -> None:
    settings = {
        "activation": "identity", "loss": "mean_squared_error", "optimizer": "SGD", "learning_rate": 10.0,
        "mistake": "large_rate", "samples": 40,
    }  # fmt: skip
    session = post(studio_server, "open", settings=settings)["session"]
    body = json.dumps({"session": session, "count": 200}).encode()
    text = studio_server.ask("POST", "/api/playground/step", body).body.decode()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["loss"] == [None, None]
