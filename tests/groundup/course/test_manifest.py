"""course.toml: what does not hold together is refused, and tasks are found by their names."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

from groundup.course import manifest
from groundup.course.learner.functions import is_c, stub
from groundup.course.learner.project_files import solution_file
from groundup.course.manifest import ROOT, Task, Week, course

FIRST, SECOND = course().task("1.1"), course().task("1.2")


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
    with pytest.raises(ValueError, match=r"several tasks are called naive: choose one of 9\.4, 23\.1$"):
        course().task("naive")
    with pytest.raises(ValueError, match=r"there is no task 'dense_forwad'; did you mean "):
        course().task("dense_forwad")
    with pytest.raises(ValueError, match=r"there is no task 'tanspose_once'; did you mean 1.3, transpose_once\?"):
        course().task("tanspose_once")
    with pytest.raises(ValueError, match=r"there is no task '1.9'; week 1 has 1.1, 1.2, 1.3, 1.4"):
        course().task("1.9")
    with pytest.raises(ValueError, match="groundup learn status --all"):
        course().task("sideways")
    with pytest.raises(ValueError, match="there is no phase 8; expected 1 to 7"):
        course().phase(8)


@pytest.mark.parametrize("task", [task for task in course().tasks if not is_c(task.file)], ids=lambda task: task.id)
def test_every_stub_says_in_its_docstring_what_it_has_to_do(task: Task) -> None:
    made = stub(solution_file(task.file), task.function, task.file, task.message, task.keep)
    (function,) = ast.parse(textwrap.dedent(made)).body
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function)


NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight")


@pytest.mark.parametrize("week", course().weeks, ids=lambda week: str(week.number))
def test_a_weeks_page_counts_the_functions_that_the_week_has(week: Week) -> None:
    page = (ROOT / "docs" / "weeks" / f"week{week.number:02}.md").read_text(encoding="utf-8")
    said = re.search(rf"your ({'|'.join(NUMBERS)})\s+(?:functions|kernels)\s+pass", page)
    assert said is None or NUMBERS.index(said[1]) + 2 == len(week.tasks)
