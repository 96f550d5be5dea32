"""The grading of kernels: right answers that do not look like the project's own."""

import re
from pathlib import Path

import pytest

from groundup.course.judging.judge import judge
from groundup.course.judging.verdict import Verdict
from groundup.course.learner.functions import replaced
from groundup.course.learner.learners_folder import start
from groundup.course.learner.project_files import solution
from groundup.course.manifest import course
from shared.contract import STAGES
from tests.groundup.course.course_helpers import new_folder
from tests.groundup.course.course_mutants.right_kernels import RIGHT, Changes
from tests.stages import REASONS
from tests.wide import wide, widely

pytestmark = pytest.mark.skipif(REASONS.get(STAGES[3]) is not None, reason=str(REASONS.get(STAGES[3])))


@wide
@pytest.mark.parametrize(
    ("task", "instead"),
    widely(
        [
            ("13.4", {"z": "logits", "output": "out"}),
            ("9.1", {"a": "x", "mask": "y", "out": "o"}),
        ]
    ),
)
def test_parameters_may_have_names_of_the_learners_own(tmp_path, task: str, instead: dict[str, str]) -> None:
    learner, _ = start(tmp_path / "learner", course())
    entry = course().task(task)
    text = solution(entry)
    for old, new in instead.items():
        text = re.sub(rf"\b{old}\b", new, text)
    text = text.replace("x.size", "len(x)")  # of an array, it reads nothing
    path = learner.folder / entry.file
    path.write_text(replaced(path.read_text(encoding="utf-8"), learner.place(entry), text), encoding="utf-8")
    verdict = judge(learner, entry)
    assert verdict.passed, verdict


@pytest.mark.parametrize(("task", "what", "changes"), widely(RIGHT))
def test_a_right_answer_may_be_written_otherwise(tmp_path, task: str, what: str, changes: Changes) -> None:
    verdict = graded(tmp_path, task, changes)
    assert verdict.passed, (what, verdict)


def graded(folder: Path, task: str, changes: Changes) -> Verdict:
    """The verdict on the solution with these texts replaced."""
    learner, entry = new_folder(folder / "learner"), course().task(task)
    text = solution(entry)
    for old, new in changes:
        assert old in text, f"{old!r} is not in the solution any more"
        text = text.replace(old, new)
    path = learner.folder / entry.file
    path.write_text(replaced(path.read_text(encoding="utf-8"), learner.place(entry), text), encoding="utf-8")
    return judge(learner, entry)


GROWS = (("half = BLOCK // 2", "half = 1"), ("while half > 0", "while half < BLOCK"), ("half //= 2", "half *= 2"))


@wide
@pytest.mark.parametrize(
    ("changes", "said"),
    widely(
        [
            ((*GROWS, ("if thread < half:", "if thread % (2 * half) == 0:")), ["a part of the lanes is idle"]),
            (
                (
                    *GROWS,
                    ("if thread < half:", "i = 2 * half * thread\n        if i < BLOCK:"),
                    ("partial[thread] += partial[thread + half]", "partial[i] += partial[i + half]"),
                ),
                ["lie in the same banks"],
            ),
            ((), []),
        ]
    ),
)
def test_a_tree_of_neighbours_passes_with_a_remark(tmp_path: Path, changes: Changes, said: list[str]) -> None:
    verdict = graded(tmp_path, "13.2", changes)
    assert verdict.passed, verdict
    assert len(verdict.notes) == len(said)
    assert all(each in note for each, note in zip(said, verdict.notes, strict=True)), verdict.notes


def test_a_shuffle_that_lanes_do_not_reach_is_told_at_the_learners_own_line(tmp_path: Path) -> None:
    call = "largest = warp_largest(largest)"
    verdict = graded(tmp_path, "13.4", ((f"        {call}\n", f"        if lane < columns:\n            {call}\n"),))
    assert verdict.source == call
    assert "keeps them from the shuffle" in verdict.cause
