"""The remark on style after a pass: only what is certain, and never on the project's own functions."""

import ast
from pathlib import Path

import pytest

from groundup.commands.learn_output import show_graded
from groundup.course.judging.verdict import Verdict
from groundup.course.learner.functions import dedented, is_c
from groundup.course.learner.project_files import solution
from groundup.course.manifest import Task, course
from groundup.course.rules.passing import Graded
from groundup.course.rules.style import _remarks, remark
from tests.groundup.course.course_helpers import new_folder, write

LISTS, ARRAYS, KERNEL = (course().task(name) for name in ("1.1", "5.4", "9.1"))


def remarks(task: Task, *lines: str) -> list[str]:
    text = "def f(a: Array, b: np.ndarray | None, out: Array, layers: Sequence[Array], n):\n" + "".join(
        f"    {line}\n" for line in lines
    )
    return [f"{line}: {said}" for line, said in _remarks(ast.parse(text).body[0], task)]


@pytest.mark.parametrize("task", [task for task in course().tasks if not is_c(task.file)], ids=lambda task: task.id)
def test_nothing_is_remarked_on_in_the_projects_own_functions(task: Task) -> None:
    assert [*_remarks(ast.parse(dedented(solution(task))).body[0], task)] == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("for i in range(n):", "    out[i] = a[i] * b[i] + 1"), "2: a loop over the elements of out: NumPy"),
        (("for i in range(n):", "    out[i] -= 0.1 * a[i]"), "2: a loop over the elements of out: NumPy"),
        (
            ("made = np.empty(n)", "for i in range(n):", "    made[i] = a[i]", "return made"),
            "3: a loop over the elements of",
        ),
        (("return (a + b).copy()",), "2: the result of arithmetic is a new array already"),
        (("return np.copy(a @ b)",), "2: the result of arithmetic is a new array already"),
        (("return list([x + 1 for x in a])",), "2: list(…) copies the list"),
        (("if a == None:", "    return b"), "2: None is compared by `is`"),
        (("if a != None:", "    return b"), "2: None is compared by `is not`"),
        (("total = a + b", "return a"), "2: total is never read"),
    ],
)
def test_a_habit_is_remarked_on_with_its_line(lines: tuple[str, ...], said: str) -> None:
    (found,) = remarks(ARRAYS, *lines)
    assert found.startswith(said)


@pytest.mark.parametrize(
    "lines",
    [
        ("for i in range(n):", "    out[i] = a[i - 1] * b[i]"),  # a running sum needs its order
        ("for i in range(n):", "    out[i] = f(a[i])"),  # f may be no function of arrays
        ("for i in range(n):", "    out[i] = a[i]", "    print(i)"),
        ("for i in range(n):", "    layers[i] -= 0.1 * a[i]"),  # a list of arrays
        ("class Kept:", "    total = 1", "return Kept"),
        ("return a.copy()",),
        ("return np.array(a + b)",),  # of two numbers it makes an array
        ("_ = a + b",),
        ("def g():", "    nonlocal n", "    n = 1", "return g"),
    ],
)
def test_what_may_be_meant_so_is_not_remarked_on(lines: tuple[str, ...]) -> None:
    assert remarks(ARRAYS, *lines) == []


def test_a_loop_over_elements_is_right_in_lists_and_in_kernels() -> None:
    loop = ("for i in range(n):", "    out[i] = a[i] * b[i]")
    assert remarks(LISTS, *loop) == remarks(KERNEL, *loop) == []


def test_a_pass_has_one_remark_unless_it_is_off_and_a_failure_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GROUNDUP_LEARN_STYLE", raising=False)
    learner = new_folder(tmp_path)
    write(learner, LISTS, "    c = [[0.0]", "    unused = 1\n    spare = 2\n    c = [[0.0]")
    line = learner.place(LISTS).first + 3
    assert remark(learner, LISTS) == f"line {line}: unused is never read"
    show_graded(Graded(Verdict(True), False, None), learner, LISTS)
    assert capsys.readouterr().out.count("style") == 1
    show_graded(Graded(Verdict(False, "values"), False, None), learner, LISTS)
    assert "style" not in capsys.readouterr().out
    monkeypatch.setenv("GROUNDUP_LEARN_STYLE", "off")
    assert remark(learner, LISTS) == ""
