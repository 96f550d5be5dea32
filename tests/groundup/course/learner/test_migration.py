"""A learner's folder of commit d0c3bb7: every file stays, and the tasks that moved are named with their command."""

import tarfile
from pathlib import Path

import pytest

from groundup.cli import main
from groundup.course.assembly import assemble
from groundup.course.learner.learners_folder import locate
from groundup.course.learner.migration import ADDED, MOVED, OUTGROWN
from groundup.course.learner.project_files import solution_file, stubbed
from groundup.course.manifest import ROOT, course
from tests.groundup.course.course_helpers import new_folder

ARCHIVE = ROOT / "tests" / "fixtures" / "d0c3bb7" / "course.tar.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11 has it from 3.11.4 on
        archive.extractall(tmp_path)
    return tmp_path / "course"


def contents(folder: Path) -> dict[str, bytes]:
    """The learner's files; not what groundup builds and writes itself."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "progress.toml")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if ".groundup" not in path.parts}


def learn(folder: Path, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["learn", "--folder", str(folder), *arguments])
    return int(ended.value.code or 0)


def test_every_file_stays_and_one_sentence_names_the_tasks_that_moved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(folder)
    assert learn(folder, "status", "--all") == 0
    assert learn(folder, "check", "3.4") == 1
    assert contents(folder) == before
    shown = capsys.readouterr()
    assert "groundup learn reset 3.4 --file brings back every stub of the file, and keeps a copy" in shown.out
    assert set(shown.err.splitlines()) == {
        f"{folder} was made by an earlier version of groundup, and nothing in it was changed, but 3.4, 3.5, 3.7, 5.3, "
        "8.4, 15.3 and 20.7 ask for other functions now: groundup learn reset 3.4 --file fetches the new stubs of its "
        "file and keeps a copy of yours, and the same with 5.3, 8.4 and 15.3"
    }


def test_the_command_fetches_the_new_stubs_of_one_file_and_keeps_a_copy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(folder)
    for name in ("3.4", "5.3", "8.4"):
        assert learn(folder, "reset", name, "--file") == 0
    capsys.readouterr()
    assert learn(folder, "status") == 0
    assert "15.3 asks for another function now: groundup learn reset 15.3 --file" in capsys.readouterr().err
    assert learn(folder, "reset", "15.3", "--file") == 0
    capsys.readouterr()
    assert learn(folder, "status") == 0
    assert capsys.readouterr().err == ""
    after = contents(folder)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == set(MOVED), "no other file was written"
    assert all(after[name].decode() == stubbed(name, course()) for name in changed)
    for name in changed & before.keys():
        (copy,) = (folder / ".groundup" / "old").glob(f"*/{name}")
        assert copy.read_bytes() == before[name]


@pytest.mark.parametrize("name", ["5.4", "18.3"])
def test_of_a_file_that_does_not_fit_any_more_the_function_is_taken(name: str, folder: Path, tmp_path: Path) -> None:
    learner, task = locate(folder, course()), course().task(name)
    assembled = assemble(learner, [task], tmp_path / "check")
    (path,) = assembled.modules.values()
    text = Path(path).read_text(encoding="utf-8")
    own = learner.function(task)
    assert own in text
    assert OUTGROWN[task.file] not in text
    first = text[: text.index(own)].count("\n") + 1
    assert assembled.place(path, first) == (str(folder / task.file), learner.place(task).first)
    assert assembled.projects_line(path, 1) == 1


def test_the_texts_of_the_earlier_version_are_in_no_file_of_today(folder: Path) -> None:
    for file, (earlier, text) in MOVED.items():
        assert text in (folder / earlier).read_text(encoding="utf-8")
        assert text not in solution_file(file)
    for file, text in OUTGROWN.items():
        assert text in (folder / file).read_text(encoding="utf-8")
        assert text not in solution_file(file)


def test_a_folder_of_today_is_told_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_folder(tmp_path / "course")
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "course" / ".groundup").exists()


def test_a_folder_from_before_a_task_came_works_and_is_told_how_to_get_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = new_folder(tmp_path / "course")
    later = [task for task in course().tasks if task.file in ADDED]
    assert sorted({task.file for task in later}) == sorted(ADDED)
    for file in ADDED:
        (learner.folder / file).unlink()
    assert learn(learner.folder, "status", "--all") == 0
    assert "not written yet" not in capsys.readouterr().out
    assert learn(learner.folder, "check", "1.1") == 1
    assert "not written yet; groundup learn hint 1.1 helps" in capsys.readouterr().out
    for task in later:
        assert learn(learner.folder, "check", task.id) == 2
        assert "a folder of an earlier version does not have it; groundup learn start" in capsys.readouterr().err
    learner.record.current = later[0].id
    learner.save()
    assert learn(learner.folder) == 0
    assert learn(learner.folder, "start") == 0
    capsys.readouterr()
    for task in later:
        assert learn(learner.folder, "check", task.id) == 1
        assert f"not written yet; groundup learn hint {task.id} helps" in capsys.readouterr().out
