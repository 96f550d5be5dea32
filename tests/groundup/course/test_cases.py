"""The detective exercises: each program shows its fault, the project's mend passes, and wrong mends are recognised."""

import os
import re
from pathlib import Path

import pytest

from groundup.course.faults import KINDS, places
from groundup.course.judging.judge import judge
from groundup.course.judging.verdict import Verdict
from groundup.course.learner.project_files import program, solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course
from tests.docs.docs_runner import command, in_a_process
from tests.groundup.course.case_mends import RIGHT, WRONG, Mend
from tests.groundup.course.course_helpers import new_folder
from tests.stages import REASONS
from tests.wide import wide, widely

CASES = list(course().cases)

SHOWN = {
    "7.d": "depends on what lies outside the arrays",
    "8.d": "dot of 5 numbers: wrong",
    "9.d": "values[10] is out of bounds",
    "10.d": "sectors a request, 4 would do",
    "11.d": "race: write after read of tile[0]",
    "12.d": "float64",
    "13.d": "totals [nan nan nan]",
    "14.d": "was reached by 128 of the 256 live threads",
    "15.d": "of total[0], line 38 and line 38",
    "16.d": "meets a bank up to 32 times",
    "17.d": "means [0.5 0. 0.5]",
    "21.d": "depends on what lies outside the arrays",
    "23.d": "12 of 192 numbers are NaN, at [[0, 0], [0, 7], [0, 8]",
    "23.e": "was reached by 32 of the 64 live threads",
}
"""What the command of each program prints."""


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return new_folder(tmp_path_factory.mktemp("course") / "learner")


def skipped(case: Task) -> None:
    stage = "stage3_c" if case.file.endswith(".c") else "stage4_numba_cuda"
    if REASONS.get(stage):
        pytest.skip(REASONS[stage])


def graded(learner: Workspace, case: Task, text: str) -> Verdict:
    """The verdict on a text in the place of the program; the program is put back."""
    path = learner.folder / case.file
    path.write_text(text, encoding="utf-8")
    try:
        return judge(learner, case)
    finally:
        path.write_text(program(case), encoding="utf-8")


def changed(mend: Mend) -> str:
    text = program(course().case(mend.case))
    for old, new in mend.replaced:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the program of {mend.case}"
        text = text.replace(old, new)
    return text


def test_there_are_at_least_eight_of_many_kinds_over_weeks_7_to_24() -> None:
    assert len(CASES) >= 8
    assert {case.week for case in CASES} <= set(range(7, 25))
    assert len({case.fault.kind for case in CASES if case.fault}) >= len(KINDS) - 1
    assert {mend.case for mend in WRONG} == {case.id for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_program_names_its_case_and_the_command_that_shows_the_fault(case: Task) -> None:
    assert case.fault is not None
    text = program(case)
    assert f"{case.id}  Find the fault, name it, mend it." in text
    assert f"    {case.fault.shows}  " in text
    assert f"groundup learn answer {case.id} LINE KIND" in text
    assert places(program(case), case.fault)
    lines = text.split("\n")
    lines += [line.strip() for line in lines if line != line.strip()]
    assert [line for line in (*case.fault.also, *case.fault.seen_at) if lines.count(line) != 1] == []
    assert case.fault.near.keys() <= KINDS.keys() - {case.fault.kind}
    assert len(case.hints) == 3
    told = re.sub(r"\s+", " ", case.hints[0])
    assert case.fault.kind not in told, "the first hint gives the kind away"


@pytest.mark.parametrize("case", widely(CASES, first=3), ids=lambda case: case.id)
def test_the_command_shows_the_fault(case: Task, learner: Workspace, tmp_path: Path) -> None:
    skipped(case)
    assert case.fault is not None
    ran = in_a_process(command, learner.folder, {**os.environ, "COLUMNS": "200"}, case.fault.shows.split())
    assert SHOWN[case.id] in " ".join(ran.output.split()), ran.output
    Path(f"{learner.folder}.log").unlink()


@pytest.mark.parametrize("case", widely(CASES, first=3), ids=lambda case: case.id)
def test_the_projects_mend_passes_every_check(case: Task, learner: Workspace) -> None:
    skipped(case)
    verdict = graded(learner, case, solution(case))
    assert verdict.passed, verdict
    assert len(verdict.passed_checks) >= 3


@wide
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_program_that_only_got_a_comment_fails(case: Task, learner: Workspace) -> None:
    skipped(case)
    comment = "\n// a comment\n" if case.file.endswith(".c") else "\n# a comment\n"
    verdict = graded(learner, case, program(case) + comment)
    assert not verdict.passed
    assert not verdict.stub


@pytest.mark.parametrize("mend", widely(WRONG, first=1), ids=lambda mend: mend.case)
def test_a_wrong_mend_fails_its_check(mend: Mend, learner: Workspace) -> None:
    case = course().case(mend.case)
    skipped(case)
    verdict = graded(learner, case, changed(mend))
    assert not verdict.passed, "the wrong mend passed"
    assert verdict.failed_check == mend.check, verdict
    assert mend.says in f"{verdict.what} {verdict.expected} {verdict.got} {verdict.cause} {verdict.more}", verdict


@wide
@pytest.mark.parametrize("mend", RIGHT, ids=lambda mend: mend.case)
def test_another_right_mend_passes(mend: Mend, learner: Workspace) -> None:
    case = course().case(mend.case)
    skipped(case)
    verdict = graded(learner, case, changed(mend))
    assert verdict.passed, verdict


def test_an_untouched_program_says_which_command_shows_the_fault(learner: Workspace) -> None:
    verdict = judge(learner, course().case("9.d"))
    assert verdict.stub
    assert "groundup run detective/week09_smooth.py shows what goes wrong" in verdict.what


def test_c_that_does_not_compile_is_told_with_the_learners_line(learner: Workspace) -> None:
    case = course().case("8.d")
    skipped(case)
    verdict = graded(learner, case, program(case).replace("sum0 = a[i] * b[i];", "sum0 = a[i] * b[i]"))
    assert verdict.failed_check == "compile"
    assert "week08_dot.c:25" in f"{verdict.what} {verdict.more}"
