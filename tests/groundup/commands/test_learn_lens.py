"""`groundup learn lens`: the lens on the learner's own kernel, with the lines of the learner's own file."""

import json
import os
import sys
from pathlib import Path

import pytest

from groundup.commands.learn_output import show_verdict
from groundup.course.judging.verdict import Verdict
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from shared.machine import processes
from tests.groundup.commands.test_learn import run
from tests.groundup.course.course_helpers import write
from tests.wide import wide

KERNEL, TILED = course().task("9.1"), course().task("11.3")


def lens(learner: Workspace, task: str, *options: str) -> processes.Finished:
    """The command in a process of its own, which has not imported stage 4."""
    code = f"from groundup.cli import main; main({['learn', 'lens', task, *options]!r})"
    variables = processes.finding_our_packages(os.environ)
    return processes.run([sys.executable, "-c", code], 100, folder=learner.folder, variables=variables)


def line_with(learner: Workspace, file: str, text: str) -> int:
    return next(number for number, line in enumerate(learner.text(file).split("\n"), 1) if text in line)


@wide
def test_the_learners_kernel_is_shown_with_the_lines_of_the_learners_file(learner: Workspace) -> None:
    write(learner, KERNEL, "out[i] = a[i]", "out[i + 1] = a[i]")
    path = learner.folder / KERNEL.file
    path.write_text("# a line of mine\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    line = line_with(learner, KERNEL.file, "out[i + 1] = a[i]")
    done = lens(learner, "9.1", "--html", "page.html")
    printed = done.output
    assert done.code == 1, done.errors
    assert f"    {line} |         out[i + 1] = a[i]" in printed
    assert "out[256] is out of bounds" in " ".join(printed.split())
    assert ".groundup" not in printed
    assert "out[i + 1] = a[i]" in (learner.folder / "page.html").read_text(encoding="utf-8")


@wide
def test_a_race_is_shown_in_the_lines_of_both_the_learners_function_and_the_projects(learner: Workspace) -> None:
    write(learner, TILED, "cuda.syncthreads()  #", "pass  #")
    done = lens(learner, "11.3", "--json")
    assert done.code == 1, done.errors
    races = json.loads(done.output)["profiles"][0]["races"]
    sides = {(side["site"]["file"], side["site"]["line"]) for side in (races[0]["first"], races[0]["second"])}
    mine = str(learner.folder / TILED.file), line_with(learner, TILED.file, "total += tile_a[y, k] * tile_b[k, x]")
    assert mine in sides
    ((file, line),) = sides - {mine}
    assert "tile[y, x] = source[row + y, column + x]" in Path(file).read_text(encoding="utf-8").split("\n")[line - 1]


def test_what_is_no_kernel_or_not_written_yet_is_said_to_be(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("lens", "1.1") == 2
    assert "1.1 is no kernel; the lens shows how kernels use memory" in capsys.readouterr().err
    assert run("lens", "9.1") == 2
    assert "9.1 is not written yet; groundup learn hint 9.1 helps" in capsys.readouterr().err
    assert run("lens", "9.1", "--device", "none") == 2
    assert "none" in capsys.readouterr().err


def test_it_is_offered_where_a_check_of_memory_fails(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    show_verdict(Verdict(False, "memory", what="a race"), learner, KERNEL)
    assert "groundup learn lens 9.1 shows each access of your kernel" in capsys.readouterr().out
    show_verdict(Verdict(False, "values", what="wrong"), learner, KERNEL)
    show_verdict(Verdict(False, "memory", what="wrong"), learner, course().task("8.3"))
    assert "learn lens" not in capsys.readouterr().out
