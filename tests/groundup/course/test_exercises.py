"""Every exercise: its stub fails, the project's solution passes every check, and wrong answers are recognised."""

import importlib
import os
from collections import Counter

import pytest

from groundup.course.functions import find, function_text, replaced
from groundup.course.judge import Verdict, judge
from groundup.course.manifest import Task, course
from groundup.course.workspace import Workspace, solution, start
from shared.contract import STAGES
from tests.groundup.course.course_mutants import Mutant
from tests.stages import REASONS

MUTANTS: list[Mutant] = [
    mutant
    for week in course().weeks
    for mutant in importlib.import_module(f"tests.groundup.course.course_mutants.week{week.number:02}").MUTANTS
]


EVERY = os.environ.get("GROUNDUP_EVERY_KERNEL") == "1"


def label(task: Task, what: str) -> str:
    return f"p{course().phase_of(task).number}-t{task.id.replace('.', '_')}-{what}"


def of_task(task: Task, value: object, what: str, further: bool = False) -> object:
    """A parameter. further: one that CI leaves out, which has to be quick."""
    reason = REASONS.get(task.stage)
    if further and not EVERY:
        reason = reason or "GROUNDUP_EVERY_KERNEL=1 has more than two or three wrong answers of each graded"
    return pytest.param(value, id=label(task, what), marks=[pytest.mark.skip(reason=reason)] if reason else [])


def of_mutants() -> list[object]:
    """Every wrong answer; CI takes two of each kernel's and three of the others', GROUNDUP_EVERY_KERNEL=1 all."""
    seen: Counter[str] = Counter()
    made = []
    for number, mutant in enumerate(MUTANTS):
        task = course().task(mutant.task)
        seen[mutant.task] += 1
        further = seen[mutant.task] > (2 if task.stage == STAGES[3] else 3)
        made.append(of_task(task, mutant, f"mutant{number}", further))
    return made


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made, _ = start(tmp_path_factory.mktemp("course") / "learner", course())
    return made


def graded(learner: Workspace, task: Task, function: str) -> Verdict:
    """The verdict on a text in the place of the task's function; the stub is put back."""
    path = learner.folder / task.file
    before = path.read_text(encoding="utf-8")
    path.write_text(replaced(before, learner.place(task), function), encoding="utf-8")
    try:
        return judge(learner, task)
    finally:
        path.write_text(before, encoding="utf-8")


@pytest.mark.parametrize("task", [of_task(task, task, "stub") for task in course().tasks])
def test_a_stub_fails_and_says_which_task_it_is(learner: Workspace, task: Task) -> None:
    verdict = judge(learner, task)
    assert not verdict.passed
    assert verdict.passed_checks == ()
    assert task.message in verdict.what


@pytest.mark.parametrize("task", [of_task(task, task, "solution") for task in course().tasks])
def test_the_projects_own_function_passes_every_check(learner: Workspace, task: Task) -> None:
    verdict = graded(learner, task, solution(task))
    assert verdict.passed, verdict
    assert len(verdict.passed_checks) >= 3
    assert all(count > 0 for _, count in verdict.passed_checks)


@pytest.mark.parametrize("mutant", of_mutants())
def test_a_wrong_answer_fails_its_check_with_the_likely_cause(learner: Workspace, mutant: Mutant) -> None:
    task = course().task(mutant.task)
    right = solution(task)
    assert right.count(mutant.old) >= 1, f"{mutant.old!r} is not in the solution any more"
    verdict = graded(learner, task, right.replace(mutant.old, mutant.new))
    assert not verdict.passed, "the wrong answer passed"
    assert verdict.failed_check == mutant.check, verdict
    assert mutant.says in f"{verdict.what} {verdict.likely} {verdict.more}", verdict


def test_every_exercise_has_at_least_two_wrong_answers() -> None:
    counts = Counter(mutant.task for mutant in MUTANTS)
    assert [task.id for task in course().tasks if counts[task.id] < 2] == []


def test_there_are_at_least_forty_exercises_and_every_week_has_some() -> None:
    assert len(course().tasks) >= 40
    assert [week.number for week in course().weeks if not week.tasks] == []


def test_the_solution_in_the_learners_file_is_the_projects_file(learner: Workspace) -> None:
    """Stub and solution stand in one place: with every solution put in, the learner's file is the project's."""
    for task in course().tasks:
        text = learner.text(task.file)
        place = find(text, task.function, task.file)
        assert function_text(text, place) != solution(task)
