"""The grading of kernels: right answers that do not look like the project's own."""

import re

import pytest

from groundup.course.judging.judge import judge
from groundup.course.learner.finding import start
from groundup.course.learner.functions import replaced
from groundup.course.learner.project_files import solution
from groundup.course.manifest import course
from shared.contract import STAGES
from tests.stages import REASONS

pytestmark = pytest.mark.skipif(REASONS.get(STAGES[3]) is not None, reason=str(REASONS.get(STAGES[3])))


@pytest.mark.parametrize(
    ("task", "instead"),
    [
        ("9.1", {"a": "x", "mask": "y", "out": "o"}),
        ("13.4", {"z": "logits", "output": "out"}),
    ],
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
