"""The learner's folder: theirs to write in, never overwritten, and readable as plain text."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundup.course import manifest
from groundup.course.learner import record
from groundup.course.learner.finding import commit_first, locate, start
from groundup.course.learner.functions import FunctionMissing
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


def test_a_new_folder_is_under_git_unless_it_is_in_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "no-config"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "no-config"))
    learner = new_folder(tmp_path / "course")
    assert commit_first(learner.folder) == "under git, with a first commit"
    log = subprocess.run(["git", "log", "--format=%s"], cwd=learner.folder, capture_output=True, text=True, check=True)
    assert log.stdout.strip() == "The stubs, as they come"
    status = subprocess.run(["git", "status", "--short"], cwd=learner.folder, capture_output=True, text=True)
    assert status.stdout == ""
    assert commit_first(new_folder(learner.folder / "nested").folder) == ""


def test_without_git_the_folder_is_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_first(new_folder(tmp_path / "course").folder) == ""


entries = st.builds(
    record.TaskRecord,
    state=st.sampled_from(record.STATES),
    on=st.sampled_from(["", "2026-11-22"]),
    digest=st.sampled_from(["", "0123456789abcdef"]),
    hints=st.integers(0, 3),
    revealed=st.booleans(),
)


@given(st.dictionaries(st.sampled_from(["1.1", "1.2", "10.2", "checkpoint 1"]), entries))
def test_progress_comes_back_as_it_was_saved(saved: dict[str, record.TaskRecord]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "progress.toml"
        record.save(record.LearnersRecord("1.2", saved), path)
        back = record.load(path)
    assert back.current == "1.2"
    assert back.entries == {name: entry for name, entry in saved.items() if entry != record.TaskRecord()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("current = 1.1", "current is 1.1, expected a str"),
        ("current = ", "Invalid value"),
        ('current = "1.1"\n[tasks."1.1"]\nstate = "done"', "task 1.1: state is 'done', expected one of"),
        ('current = "1.1"\n[tasks."1.1"]\nhints = "2"', "task 1.1: hints is '2', expected an int"),
        ('current = "1.1"\ntasks = {"1.1" = 3}', "task 1.1: expected a table"),
        ('current = "1.1"\ntasks = 3', "tasks is 3, expected a dict"),
    ],
)
def test_a_progress_file_that_was_edited_wrongly_is_told_and_left_alone(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "progress.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as raised:
        record.load(path)
    assert str(path) in str(raised.value)
    assert path.read_text(encoding="utf-8") == text


def test_progress_is_readable_text(tmp_path: Path) -> None:
    path = tmp_path / "progress.toml"
    passed = record.TaskRecord("passed", "2026-11-22", "0123456789abcdef", 2)
    record.save(record.LearnersRecord("1.2", {"10.1": passed, "2.1": record.TaskRecord("skipped", "2026-11-22")}), path)
    assert path.read_text(encoding="utf-8") == record.HEADING + (
        'current = "1.2"\n\n[tasks."2.1"]\nstate = "skipped"\non = "2026-11-22"\n\n'
        '[tasks."10.1"]\nstate = "passed"\non = "2026-11-22"\ndigest = "0123456789abcdef"\nhints = 2\n'
    )


PHASE = '[[phases]]\nnumber = 1\ntitle = "t"\nseconds = 1\nmegabytes = 1\ncheckpoint = "c"\n'
WEEK = '[[phases.weeks]]\nnumber = 1\ntitle = "t"\nhours = [1, 2]\n'
TASK = (
    '[[phases.weeks.tasks]]\nid = "1.1"\ntitle = "t"\nfile = "stage1_pure_python/matmul.py"\n'
    'function = "index_loops"\nhints = ["a", "b", "c"]\n'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("phases = 3", "TypeError"),
        ("phases", "course.toml"),
        (PHASE.replace('checkpoint = "c"\n', "") + WEEK, "checkpoint"),
        (PHASE + WEEK.replace("number = 1", "number = 2"), r"expected weeks numbered from 1, got \[2\]"),
        (PHASE + WEEK + TASK.replace('"1.1"', '"1.2"'), "task 1.2 stands where 1.1 is expected"),
        (PHASE + WEEK + TASK.replace(', "c"', ""), "task 1.1: expected three hints, got 2"),
        (PHASE + WEEK + TASK + TASK.replace('"1.1"', '"1.2"'), "task 1.2: another task has"),
        (PHASE + WEEK + TASK + "colour = 3\n", "colour is not one of"),
        (PHASE + WEEK + TASK.replace('title = "t"', "title = 'a \"b\"'"), "no quotation mark"),
        (PHASE + WEEK + TASK + 'use = ["one"]\n', r"use is \['one'\], expected \[file, line\]"),
    ],
)
def test_a_manifest_that_does_not_hold_together_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "course.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        manifest.read(path)


def test_tasks_are_found_by_id_and_by_a_name_that_only_one_has() -> None:
    assert course().task("1.1") is course().task("index_loops") is FIRST
    with pytest.raises(ValueError, match="several tasks are called forward: choose one of"):
        course().task("forward")
    with pytest.raises(ValueError, match=r"there is no task '1.9'; week 1 has 1.1, 1.2, 1.3, 1.4"):
        course().task("1.9")
    with pytest.raises(ValueError, match="groundup learn status --all"):
        course().task("sideways")
    with pytest.raises(ValueError, match="there is no phase 7; expected 1 to 6"):
        course().phase(7)
