"""A checkpoint names the function that is wrong, and those that are the project's because they were changed."""

from pathlib import Path

import pytest

from groundup.course.judging.judge import judge_checkpoint
from groundup.course.manifest import course
from groundup.course.rules.checkpoints import changed_functions
from tests.groundup.course.course_helpers import mark_passed, new_folder, write
from tests.wide import widely

FIRST = course().phase(1)


@pytest.mark.parametrize(
    ("task", "old", "new", "what"),
    widely(
        [
            ("3.1", "        self._x = x\n", "        self._x = self._x or x\n", "your Dense.forward (3.1) is wrong: "),
            ("2.1", "v <= 0.0", "v < 0.0", "your relu_backward (2.1) is wrong: relu_backward(grad_output, z, output)"),
            ("1.4", "_transpose(a)", "a", "your matmul_tn (1.4) is wrong: matmul_tn(a (3, 2), b (3, 2))"),
        ],
        0,
    ),
)
def test_a_function_that_has_passed_and_is_wrong_is_named(
    tmp_path: Path, task: str, old: str, new: str, what: str
) -> None:
    learner = new_folder(tmp_path / "learner")
    for each in (course().task(task), course().task("3.7")):
        write(learner, each, *((old, new) if each.id == task else ()))
        mark_passed(learner, each)
    verdict = judge_checkpoint(learner, FIRST)
    assert (verdict.passed, verdict.failed_check) == (False, "each function by itself")
    assert what in verdict.what, verdict
    assert verdict.cause


def test_a_function_that_was_changed_after_its_pass_is_named(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "learner")
    task, other = course().task("2.1"), course().task("2.2")
    for each in (task, other):
        write(learner, each)
        mark_passed(learner, each)
    assert changed_functions(learner, FIRST) == []
    write(learner, task, "v <= 0.0", "v < 0.0")
    assert changed_functions(learner, FIRST) == [task]
