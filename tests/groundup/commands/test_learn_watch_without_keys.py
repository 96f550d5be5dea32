"""`groundup learn watch` without a terminal, and --stay and --once."""

from collections.abc import Callable

import pytest

from groundup.course.learner.learners_folder import locate
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from groundup.course.rules import watching
from tests.groundup.commands.test_learn import run
from tests.groundup.course.course_helpers import mark_passed, write

FIRST = course().task("1.1")


def test_watch_grades_on_every_save_and_goes_on_after_a_pass(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watched(monkeypatch, lambda: write(learner, FIRST, "+=", "-="), lambda: None, lambda: write(learner, FIRST))
    shown = capsys.readouterr().out
    assert shown.index("not written yet") < shown.index("failed") < shown.index("passed") < shown.index("1.2 ")
    assert shown.count("failed") == 1
    assert shown.rstrip().endswith("not watching any more")


def watched(monkeypatch: pytest.MonkeyPatch, *saves: Callable[[], object], arguments: tuple[str, ...] = ()) -> None:
    """Watch without a terminal while the learner saves these, one between two looks."""
    acts = iter([*saves, None])

    def pause() -> None:
        act = next(acts)
        if act is None:
            raise KeyboardInterrupt
        act()

    monkeypatch.setattr(watching, "pause", pause)
    assert run("watch", *arguments) == 0


def test_an_earlier_task_that_breaks_is_shown_and_the_watch_stays_where_it_is(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(learner, FIRST)
    mark_passed(learner, FIRST)
    watched(monkeypatch, lambda: write(learner, FIRST, "+=", "-="), arguments=("2.2",))
    shown = capsys.readouterr().out
    assert "1.1 had passed before this change\nwatching your files, now for 2.2; Ctrl-C ends it" in shown
    assert locate(None, course()).record.current == "2.2"


def test_a_watch_that_stays_grades_its_task_alone_and_does_not_go_on(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = lambda: write(learner, course().task("2.2"))  # noqa: E731
    watched(monkeypatch, other, lambda: write(learner, FIRST), lambda: None, arguments=("1.1", "--stay"))
    shown = capsys.readouterr().out
    assert "2.2 " not in shown
    assert "passed" in shown
    assert shown.count("matmul.py:22, now for 1.1; Ctrl-C ends it") == 2
    assert locate(None, course()).record.current == "1.1"


def test_watch_waits_for_a_file_that_an_editor_has_moved_away(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = learner.folder / FIRST.file
    text = path.read_text(encoding="utf-8")
    stub = f'raise NotImplementedError("{FIRST.message}")'
    back = lambda: path.write_text(text.replace(stub, stub + " #"), encoding="utf-8")  # noqa: E731
    watched(monkeypatch, path.unlink, lambda: None, back)
    shown = capsys.readouterr().out
    assert shown.count("is not there any more") == 1
    assert shown.count("not written yet") == 2


def test_watch_once_is_check(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("watch", "--once") == 1
    write(learner, FIRST)
    assert run("watch", "1.1", "--once") == 0
