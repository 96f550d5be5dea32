"""Questions and actions: plain dictionaries in and out, errors as sentences."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from groundup.studio import app as studio_app
from groundup.studio.answers import HANDLERS, Refused, action, question
from shared.contract import StageUnavailable
from tests.studio_server import running


def asked(request):
    kind = request.query_params["kind"]
    if kind == "value":
        error = ValueError("a value is wrong")
        error.add_note("a note")
        raise error
    raise {
        "type": TypeError("a type is wrong"),
        "file": FileNotFoundError("there is no such file"),
        "stage": StageUnavailable("stage 3 needs a compiler"),
        "gone": Refused("it is gone", 404),
        "bug": ZeroDivisionError("<img onerror=alert(1)>"),
        "half a character": ValueError("a\udcffb"),
        "long": ValueError("9" * 1_000_000),
        "long bug": ZeroDivisionError("9" * 1_000_000),
    }[kind]


@pytest.fixture
def server(tmp_path, monkeypatch):
    def application(studio):
        routes = [
            Route("/ask", question(asked)),
            Route("/do", action(lambda request, body: {"got": body}), methods=["POST"]),
        ]
        app = Starlette(routes=routes, exception_handlers=HANDLERS)
        app.state.studio = studio
        return app

    monkeypatch.setattr("groundup.studio.server.application", application)
    assert studio_app.application is not application
    with running(tmp_path) as server:
        yield server


@pytest.mark.parametrize(
    ("kind", "status", "sentence"),
    [
        ("value", 400, "a value is wrong\na note"),
        ("type", 400, "a type is wrong"),
        ("file", 400, "there is no such file"),
        ("stage", 400, "stage 3 needs a compiler"),
        ("gone", 404, "it is gone"),
        ("half%20a%20character", 400, "a\udcffb"),
    ],
)
def test_a_users_mistake_is_a_sentence(server, kind, status, sentence):
    answer = server.ask("GET", f"/ask?kind={kind}")
    assert (answer.status, answer.json) == (status, {"error": sentence})


def test_a_mistake_of_ours_asks_for_a_report(server):
    answer = server.ask("GET", "/ask?kind=bug")
    assert answer.status == 500
    assert answer.json["error"].startswith("groundup made a mistake (ZeroDivisionError: ")
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("kind", ["long", "long%20bug"])
def test_a_sentence_that_repeats_what_was_sent_is_cut(server, kind):
    answer = server.ask("GET", f"/ask?kind={kind}")
    assert len(answer.json["error"]) < 3000
    assert "999…" in answer.json["error"]


def test_an_action_gets_the_object_that_was_sent(server):
    assert server.post("/do", {"a": [1, None]}) == {"got": {"a": [1, None]}}
    assert server.ask("POST", "/do", b"").json == {"got": {}}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "the body of the request is no JSON"),
        (b"\xff\xfe", "the body of the request is no JSON"),
        (b"[" * 200_000, "the body of the request is no JSON"),
        (b"[1]", "the body of the request should be a JSON object, and is list"),
    ],
)
def test_a_body_that_is_no_object_is_refused(server, body, sentence):
    answer = server.ask("POST", "/do", body)
    assert answer.status == 400
    assert answer.json["error"].startswith(sentence)
