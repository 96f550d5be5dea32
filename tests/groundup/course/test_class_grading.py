"""`groundup learn grade`: many folders, one table; nothing in them changes, and progress.toml proves nothing."""

import csv
import json
from pathlib import Path

import pytest

from groundup.cli import main
from groundup.course.manifest import course
from groundup.course.rules.class_grading import Grades, as_csv, names_of
from tests.groundup.course.course_helpers import mark_passed, new_folder, write


def texts(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_learners_are_graded_into_one_table_and_their_folders_stay_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ada = new_folder(tmp_path / "ada" / "groundup-course")
    write(ada, course().task("1.1"))
    write(ada, course().task("1.2"), "strict=True", "strict=False")
    grace = new_folder(tmp_path / "grace" / "groundup-course")
    write(grace, course().task("1.1"), "range(k_size)", "range(k_size - 1)")
    mark_passed(grace, course().task("1.1"))  # she says that it has passed
    grace.record.of("1.1").hints, grace.record.of("1.1").revealed = 2, True
    grace.save()
    before = texts(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["learn", "grade", "--weeks", "1", "--out", str(tmp_path / "out"), str(ada.folder), str(grace.folder),
              str(tmp_path / "nobody")])  # fmt: skip
    assert ended.value.code == 1
    assert {name: text for name, text in texts(tmp_path).items() if not name.startswith("out")} == before
    told = capsys.readouterr().out
    assert "grace: 0 of 1 begun task pass" in told
    assert "nobody is no course folder: it has none of the files with exercises" in told
    with (tmp_path / "out" / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["learner"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["ada", "grace", "nobody"]
    assert [rows["ada"][task] for task in ("1.1", "1.3", "1.4")] == ["passed", "", ""]
    assert [rows["grace"][name] for name in ("1.1", "passed", "hints", "solutions seen")] == ["failed", "0", "2", "1"]
    assert rows["nobody"]["error"]
    learners = json.loads((tmp_path / "out" / "grades.json").read_text(encoding="utf-8"))["learners"]
    verdict = learners[1]["tasks"]["1.1"]["verdict"]
    assert verdict["what"].startswith("index_loops(a (2, 3), b (3, 2)): wrong at index [0, 0]")
    assert learners[0]["tasks"]["1.4"] == {"state": "", "hints": 0, "solution_seen": False, "verdict": None}


def test_folders_of_the_usual_name_are_called_by_their_parents_and_equal_ones_by_their_paths(tmp_path: Path) -> None:
    assert names_of([tmp_path / "ada" / "groundup-course", tmp_path / "grace"]) == ["ada", "grace"]
    same = [tmp_path / "a" / "work", tmp_path / "b" / "work"]
    assert names_of(same) == [str(path) for path in same]


def test_a_name_that_a_spreadsheet_takes_for_a_formula_is_quoted() -> None:
    assert as_csv([Grades("=1+1", Path("x"))], []).splitlines()[1].startswith("'=1+1,")


@pytest.mark.parametrize("weeks", ["0", "3-2", "1-99", "one"])
def test_weeks_that_are_none_are_refused(weeks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["learn", "grade", "--weeks", weeks, "--out", str(tmp_path / "out"), str(tmp_path)])
    said = " ".join(capsys.readouterr().err.split())
    assert f"expected --weeks as a number or a range from 1 to {len(course().weeks)}, such as 1-3, got {weeks}" in said
