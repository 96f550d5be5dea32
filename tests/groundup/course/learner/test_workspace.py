"""The learner's folder: theirs to write in, never overwritten, and readable as plain text."""

import subprocess
from pathlib import Path

import pytest

from groundup.course.learner import record
from groundup.course.learner.functions import FunctionMissing
from groundup.course.learner.learners_folder import commit_first, locate, start
from groundup.course.learner.project_files import files, solution
from groundup.course.manifest import course
from tests.groundup.course.course_helpers import mark_passed, new_folder, write

FIRST, SECOND = course().task("1.1"), course().task("1.2")


def test_a_new_folder_has_every_file_with_stubs_and_starts_at_the_first_task(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    for file in files(course()):
        assert (learner.folder / file).is_file()
    assert all(learner.is_stub(task) for task in course().tasks)
    assert learner.record.current == "1.1"


def test_starting_again_brings_back_what_is_missing_and_touches_nothing_else(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    write(learner, FIRST)
    (learner.folder / "stage2_numpy/dense.py").unlink()
    before = learner.text(FIRST.file)
    _, written = start(learner.folder, course())
    assert written == ["stage2_numpy/dense.py"]
    assert learner.text(FIRST.file) == before


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="has other things in it"):
        start(tmp_path, course())
    with pytest.raises(ValueError, match="is a file; name a folder"):
        start(tmp_path / "thesis.tex", course())
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_the_folder_is_found_from_inside_it_and_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = new_folder(tmp_path / "groundup-course")
    for here in (learner.folder / "stage3_c" / "csrc", learner.folder, tmp_path):
        monkeypatch.chdir(here)
        assert locate(None, course()).folder == learner.folder
    monkeypatch.chdir("/")
    monkeypatch.setenv("GROUNDUP_COURSE", str(learner.folder))
    assert locate(None, course()).folder == learner.folder


def test_without_a_folder_the_command_that_makes_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="there is no course folder here; groundup learn start makes one"):
        locate(None, course())
    with pytest.raises(ValueError, match=r"has no progress\.toml"):
        locate(tmp_path, course())


def test_reset_puts_the_stub_back_and_keeps_what_was_there(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    write(learner, FIRST)
    write(learner, SECOND)
    mark_passed(learner, FIRST)
    mark_passed(learner, SECOND)
    before = learner.text(FIRST.file)
    kept = learner.reset(FIRST)
    assert kept.read_text(encoding="utf-8") == before
    assert learner.is_stub(FIRST)
    assert learner.function(SECOND) == solution(SECOND)
    assert not learner.passed(FIRST)
    assert learner.passed(SECOND)


def test_a_file_that_cannot_be_parsed_can_be_reset_whole(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    (learner.folder / FIRST.file).write_text("def (", encoding="utf-8")
    with pytest.raises(FunctionMissing, match="SyntaxError"):
        learner.reset(FIRST)
    kept = learner.reset(FIRST, whole_file=True)
    assert kept.read_text(encoding="utf-8") == "def ("
    assert learner.is_stub(FIRST)
    assert learner.is_stub(SECOND)


def test_two_resets_in_one_second_keep_both_files(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    kept = []
    for sign in ("+=", "-="):
        write(learner, FIRST, "+=", sign)
        kept.append(learner.reset(FIRST))
    assert len(set(kept)) == 2
    assert all(path and sign in path.read_text() for path, sign in zip(kept, ("+= a", "-= a"), strict=True))
    (learner.folder / FIRST.file).unlink()
    assert learner.reset(FIRST, whole_file=True) is None


def test_undoing_a_reset_leaves_what_was_written_elsewhere_since(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    write(learner, FIRST, "+=", "-=")
    learner.reset(FIRST)
    learner.reset(SECOND)  # a newer copy, but none of this task
    write(learner, FIRST)
    write(learner, SECOND)
    learner.undo_reset(FIRST)
    assert "-= a" in learner.function(FIRST)
    assert learner.function(SECOND) == solution(SECOND)
    learner.undo_reset(FIRST)
    assert learner.function(FIRST) == solution(FIRST), "what was written after the reset is not lost either"


def test_the_reset_of_a_whole_file_or_program_is_undone_whole(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    case = course().task("9.d")
    for task, whole in ((FIRST, True), (case, False)):
        path = learner.folder / task.file
        path.write_bytes(b"mine (\r\n")
        learner.reset(task, whole_file=whole)
        assert path.read_bytes() != b"mine (\r\n"
        learner.undo_reset(task)
        assert path.read_bytes() == b"mine (\r\n"


def test_a_mark_at_the_beginning_of_a_file_is_no_matter(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    path = learner.folder / FIRST.file
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert learner.is_stub(FIRST)
    state = learner.folder / "progress.toml"
    state.write_bytes(b"\xef\xbb\xbf" + state.read_bytes())
    assert record.load(state).current == "1.1"


def test_a_pass_holds_only_for_the_function_that_passed(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    write(learner, FIRST)
    mark_passed(learner, FIRST)
    assert learner.passed(FIRST)
    write(learner, FIRST, "+=", "-=")
    assert not learner.passed(FIRST)
    (learner.folder / FIRST.file).unlink()
    assert not learner.passed(FIRST)


def test_a_file_that_is_gone_or_no_text_is_told(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    (learner.folder / FIRST.file).write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        learner.text(FIRST.file)
    (learner.folder / FIRST.file).unlink()
    with pytest.raises(ValueError, match="is not there any more; groundup learn start brings back"):
        learner.text(FIRST.file)


def test_a_new_folder_is_under_git_of_its_own_also_in_a_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))  # as in a hook of the other repository
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "no-config"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "no-config"))
    learner = new_folder(tmp_path / "course")
    assert commit_first(learner.folder) == "under git, with a first commit"
    assert commit_first(learner.folder) == "", "once"
    monkeypatch.delenv("GIT_DIR")
    log = subprocess.run(["git", "log", "--format=%s"], cwd=learner.folder, capture_output=True, text=True, check=True)
    assert log.stdout.strip() == "The stubs, as they come"
    status = subprocess.run(["git", "status", "--short"], cwd=learner.folder, capture_output=True, text=True)
    assert status.stdout == ""
    outer = subprocess.run(["git", "log"], cwd=tmp_path, capture_output=True, text=True)
    assert "does not have any commits" in outer.stderr


def test_without_git_the_folder_is_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_first(new_folder(tmp_path / "course").folder) == ""
