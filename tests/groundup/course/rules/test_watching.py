"""Which tasks a save has changed, and which one is watched afterwards."""

import os
from pathlib import Path

import pytest

from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from groundup.course.rules.watching import Saves, followed, passed_before
from tests.groundup.course.course_helpers import mark_passed, new_folder, write

FIRST, SECOND, OTHER, CASE = (course().task(name) for name in ("1.1", "1.2", "2.2", "9.d"))


@pytest.fixture
def learner(tmp_path: Path) -> Workspace:
    return new_folder(tmp_path)


def append(learner: Workspace, file: str, text: str) -> None:
    path = learner.folder / file
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_a_save_has_changed_the_tasks_whose_functions_differ_in_whichever_file(learner: Workspace) -> None:
    saves = Saves(learner)
    assert saves.look(FIRST) == []
    write(learner, OTHER)
    write(learner, SECOND)
    assert saves.look(FIRST) == [SECOND, OTHER]
    assert saves.look(FIRST) == []
    append(learner, CASE.file, "# a note\n")
    assert saves.look(FIRST) == [CASE]


def test_a_file_that_is_saved_as_it_was_has_changed_nothing(learner: Workspace) -> None:
    saves = Saves(learner)
    path = learner.folder / FIRST.file
    new = path.with_suffix(".new")
    new.write_bytes(path.read_bytes())
    new.replace(path)  # as many editors save
    assert saves.look(FIRST) == []


def test_a_change_around_the_functions_concerns_all_that_are_begun_and_the_watched_one(learner: Workspace) -> None:
    write(learner, SECOND)
    saves = Saves(learner)
    append(learner, FIRST.file, "\n\ndef helper():\n    return 1\n")
    assert saves.look(FIRST) == [FIRST, SECOND]
    append(learner, FIRST.file, "\n")
    assert saves.look(OTHER) == [SECOND]


def test_a_file_that_cannot_be_parsed_is_shown_once_and_then_compared_with_what_it_was(learner: Workspace) -> None:
    write(learner, SECOND)
    saves = Saves(learner)
    path = learner.folder / FIRST.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "def (", encoding="utf-8")
    assert saves.look(OTHER) == [SECOND]
    path.write_text(text, encoding="utf-8")
    assert saves.look(OTHER) == []
    write(learner, FIRST)
    assert saves.look(OTHER) == [FIRST]


def test_a_missing_file_waits_unless_the_watched_task_is_in_it(learner: Workspace) -> None:
    saves = Saves(learner)
    path = learner.folder / FIRST.file
    away = path.rename(path.with_suffix(".away"))
    assert saves.look(OTHER) == []
    with pytest.raises(ValueError, match="is not there any more"):
        saves.look(FIRST)
    away.rename(path)
    os.utime(path)
    assert saves.look(FIRST) == []


def test_a_watch_that_stays_looks_at_its_own_file_alone(learner: Workspace) -> None:
    saves = Saves(learner, stay=True)
    write(learner, OTHER)
    assert saves.look(FIRST) == []
    write(learner, SECOND)
    assert saves.look(FIRST) == [FIRST]


def test_the_watch_goes_to_what_was_begun_and_stays_where_a_passed_task_breaks(learner: Workspace) -> None:
    write(learner, FIRST)
    mark_passed(learner, FIRST)
    write(learner, FIRST, "+=", "-=")
    before = passed_before(learner, [FIRST, OTHER])
    assert before == [FIRST]
    assert followed(learner, SECOND, [FIRST], before) == (SECOND, "1.1 had passed before this change")
    assert followed(learner, SECOND, [FIRST, OTHER], before) == (OTHER, "1.1 had passed before this change")
    assert learner.record.current == "2.2"
    assert followed(learner, SECOND, [OTHER], [], stay=True) == (SECOND, "")


def test_the_watch_goes_on_to_the_current_task_when_all_pass(learner: Workspace) -> None:
    write(learner, FIRST)
    mark_passed(learner, FIRST)
    learner.record.current = "1.2"
    assert followed(learner, FIRST, [FIRST], []) == (SECOND, "")
    write(learner, OTHER)
    mark_passed(learner, OTHER)
    learner.record.current = "2.3"
    assert followed(learner, FIRST, [FIRST, OTHER], [])[0] == SECOND, "after the watched one, not after the last"
    learner.record.current = "2.3"
    assert followed(learner, SECOND, [OTHER], [])[0].id == "2.3"
    assert followed(learner, CASE, [CASE], []) == (CASE, ""), "a detective exercise is mended and named first"
