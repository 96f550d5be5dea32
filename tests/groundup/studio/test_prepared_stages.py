"""Stages are prepared in the background for what was asked for last; one that cannot be used says why."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from groundup.studio import prepared_stages
from groundup.studio.prepared_stages import PreparedStages
from shared.contract import STAGES, StageUnavailable


@pytest.fixture(autouse=True)
def _named_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_stages, "load_stage", lambda name: SimpleNamespace(name=name))


def ready(stages: PreparedStages, key: str) -> None:
    for _ in range(6000):
        if stages.is_prepared(key):
            return
        time.sleep(0.01)
    raise AssertionError(f"{key} was not prepared within a minute")


def test_a_stage_answers_when_it_is_prepared_and_not_before() -> None:
    go = threading.Event()
    stages = PreparedStages("test", lambda stage, key: go.wait(1))
    stages.prepare("a")
    assert stages.answer(STAGES[0], "a", lambda stage: {"value": 1})["state"] == "warming"
    go.set()
    ready(stages, "a")
    answer = stages.answer(STAGES[0], "a", lambda stage: {"value": stage.name})
    assert answer == {"title": "stage 1: pure Python", "state": "ready", "value": STAGES[0]}
    assert stages.answer(STAGES[0], "b", lambda stage: {})["state"] == "warming"


def test_the_newest_wish_goes_first() -> None:
    go, seen = threading.Event(), []

    def warm(stage: Any, key: str) -> None:
        go.wait(20)
        seen.append((stage.name, key))

    stages = PreparedStages("test", warm)
    for key in ("old", "older", "new"):
        stages.prepare(key)
    go.set()
    ready(stages, "new")
    assert seen[-4:] == [(stage, "new") for stage in STAGES]
    assert [key for _, key in seen[:-4]] in ([], ["old"])
    assert not stages.is_prepared("older")


def test_a_stage_that_cannot_be_used_says_why() -> None:
    def warm(stage: Any, key: str) -> None:
        if stage.name == "stage3_c":
            raise StageUnavailable("stage 3 needs a C compiler")

    stages = PreparedStages("test", warm)
    stages.prepare("a")
    ready(stages, "a")
    answers = [stages.answer(stage, "a", lambda stage: {}) for stage in STAGES]
    assert [each["state"] for each in answers] == ["ready", "ready", "absent", "ready"]
    assert answers[2]["why"] == "stage 3 needs a C compiler"


def test_a_stage_that_is_wrong_says_so_and_the_others_answer() -> None:
    def warm(stage: Any, key: str) -> None:
        if stage.name == "stage1_pure_python":
            raise IndexError("list index out of range")

    def call(stage: Any) -> dict[str, Any]:
        if stage.name == "stage2_numpy":
            raise TypeError("relu() takes no arguments")
        return {"value": 1}

    stages = PreparedStages("test", warm)
    stages.prepare("a")
    ready(stages, "a")
    answers = [stages.answer(stage, "a", call) for stage in STAGES]
    assert [each["state"] for each in answers] == ["absent", "absent", "ready", "ready"]
    assert answers[0]["why"] == "IndexError: list index out of range"
    assert answers[1]["why"] == "TypeError: relu() takes no arguments"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_after_an_exit_it_can_be_asked_again() -> None:
    mistakes = [SystemExit("ours")]

    def warm(stage: Any, key: str) -> None:
        if mistakes:
            raise mistakes.pop()

    stages = PreparedStages("test", warm)
    stages.prepare("a")
    for _ in range(6000):
        if stages.is_prepared("a"):
            break
        time.sleep(0.01)
        stages.prepare("a")
    assert stages.is_prepared("a")
