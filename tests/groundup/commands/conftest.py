"""A learner's folder for the tests of `groundup learn`."""

from pathlib import Path

import pytest

from groundup.course.learner.workspace import Workspace
from tests.groundup.course.course_helpers import new_folder


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A new course, beside which one stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GROUNDUP_COURSE", raising=False)
    return new_folder(tmp_path / "groundup-course")
