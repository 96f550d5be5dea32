"""Every exercise: its stub fails, the project's solution passes every check, and wrong answers are recognised."""

import ast
import importlib
from collections import Counter
from typing import Any

import pytest

from groundup.course import grading
from groundup.course.judging.judge import judge
from groundup.course.judging.verdict import Verdict
from groundup.course.learner.functions import dedented, find, function_text, is_c, replaced
from groundup.course.learner.learners_folder import start
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course
from tests.groundup.course.course_mutants import Mutant, RightAnswer
from tests.groundup.course.course_mutants.right_kernels import RIGHT
from tests.stages import REASONS
from tests.wide import widely, widened

WEEKS = [
    importlib.import_module(f"tests.groundup.course.course_mutants.week{week.number:02}") for week in course().weeks
]
MUTANTS: list[Mutant] = [mutant for week in WEEKS for mutant in week.MUTANTS]
ANSWERS: list[RightAnswer] = [answer for week in WEEKS for answer in getattr(week, "RIGHT_ANSWERS", ())]


def label(task: Task, what: str) -> str:
    return f"p{course().phase_of(task).number}-t{task.id.replace('.', '_')}-{what}"


def of_task(task: Task, value: object, what: str) -> Any:
    reason = REASONS.get(task.stage)
    return pytest.param(value, id=label(task, what), marks=[pytest.mark.skip(reason=reason)] if reason else [])


def is_first_of_its_kind(task: Task) -> bool:
    """Whether `make test` grades the task: the first one of a week, and of the weeks in C and in kernels, which take
    seconds to compile, only the first one of a phase."""
    if task.stage not in ("stage3_c", "stage4_numba_cuda"):
        return task.number == 1
    tasks = (each for week in course().phase_of(task).weeks for each in week.tasks)
    return task is next(each for each in tasks if each.stage == task.stage)


def of_tasks(what: str) -> list[Any]:
    """Every task; wide are all but the first of their kind."""
    cases = ((task, of_task(task, task, what)) for task in course().tasks)
    return [case if is_first_of_its_kind(task) else widened(case) for task, case in cases]


def of_mutants() -> list[Any]:
    """Every wrong answer; all but the first to a task that `make test` grades are wide."""
    seen: set[Task] = set()
    made = []
    for number, mutant in enumerate(MUTANTS):
        task = course().task(mutant.task)
        case = of_task(task, mutant, f"mutant{number}")
        made.append(widened(case) if task in seen or not is_first_of_its_kind(task) else case)
        seen.add(task)
    return made


def of_right_answers() -> list[Any]:
    """Right answers of another form; all but the first two are wide."""
    cases = ((course().task(each.task), each) for each in ANSWERS)
    return widely((of_task(task, each, f"right{i}") for i, (task, each) in enumerate(cases)), 2)


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


@pytest.mark.parametrize("task", of_tasks("stub"))
def test_a_stub_fails_and_says_which_task_it_is(learner: Workspace, task: Task) -> None:
    verdict = judge(learner, task)
    assert not verdict.passed
    assert verdict.passed_checks == ()
    assert task.message in verdict.what


@pytest.mark.parametrize("task", of_tasks("solution"))
def test_the_projects_own_function_passes_every_check(learner: Workspace, task: Task) -> None:
    verdict = graded(learner, task, solution(task))
    assert verdict.passed, verdict
    assert verdict.printed == ""  # what a learner reads there has to be their own, and no warning of the grader's
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
    assert mutant.says in f"{verdict.what} {verdict.cause} {verdict.more}", verdict


@pytest.mark.parametrize("answer", of_right_answers())
def test_a_right_answer_written_in_another_way_passes(learner: Workspace, answer: RightAnswer) -> None:
    task = course().task(answer.task)
    right = solution(task)
    assert answer.old in right, f"{answer.old!r} is not in the solution any more"
    verdict = graded(learner, task, right.replace(answer.old, answer.new))
    assert verdict.passed, verdict


def test_what_a_wrong_or_a_right_answer_replaces_is_in_the_solution_still() -> None:
    """Here for all of them, since most are graded in the wide tests alone: a solution may have moved elsewhere."""
    changes = [(each.task, each.old) for each in (*MUTANTS, *ANSWERS)]
    changes += [(task, old) for task, _, replaced_there in RIGHT for old, _ in replaced_there]
    solutions = {task.id: solution(task) for task in course().tasks}
    assert [(task, old) for task, old in changes if old not in solutions[task]] == []


@pytest.mark.parametrize(
    "task", [task for task in course().tasks if task.keep and not is_c(task.file)], ids=lambda task: task.id
)
def test_what_a_stub_keeps_computes_nothing_of_the_answer(task: Task) -> None:
    """Checks of arguments and names for them; no loop, and nothing written into what the object or the caller has."""
    kept = ast.parse(dedented(solution(task))).body[0]
    assert isinstance(kept, ast.FunctionDef)
    statements = kept.body[ast.get_docstring(kept) is not None :][: task.keep]
    for node in (node for statement in statements for node in ast.walk(statement)):
        assert not isinstance(node, ast.For | ast.While)
        assert not (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store))
        assert not (isinstance(node, ast.keyword) and node.arg == "out" and isinstance(node.value, ast.Attribute))


def test_every_exercise_has_at_least_two_wrong_answers() -> None:
    counts = Counter(mutant.task for mutant in MUTANTS)
    assert [task.id for task in course().tasks if counts[task.id] < 2] == []


def test_a_task_that_no_week_grades_is_named() -> None:
    with pytest.raises(KeyError, match=r"no file of week 1 grades task 1\.99"):
        grading.task_checks("1.99")


def test_there_are_at_least_forty_exercises_and_every_week_has_some() -> None:
    assert len(course().tasks) >= 40
    assert [week.number for week in course().weeks if not week.tasks] == []


def test_the_solution_in_the_learners_file_is_the_projects_file(learner: Workspace) -> None:
    """Stub and solution stand in one place: with every solution put in, the learner's file is the project's."""
    for task in course().tasks:
        text = learner.text(task.file)
        place = find(text, task.function, task.file)
        assert function_text(text, place) != solution(task)
