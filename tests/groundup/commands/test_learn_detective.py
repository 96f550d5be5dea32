"""`groundup learn answer`, `cases`, and what the other commands do with a detective exercise."""

import json

import pytest

from groundup.course.faults import KINDS
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from tests.groundup.commands.test_learn import run
from tests.stages import REASONS
from tests.wide import wide

DOT = course().case("8.d")


@wide
@pytest.mark.skipif(REASONS.get("stage3_c") is not None, reason=str(REASONS.get("stage3_c")))
def test_a_case_from_its_program_to_the_pass(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "8.d") == 1
    shown = capsys.readouterr().out
    assert "dot of 5 numbers: wrong" in shown
    assert "likely" not in shown, "the cause would name the kind"
    assert run("answer", "8.d", "25", "wrong", "reduction") == 0
    assert "the last loop overwrites sum0" in capsys.readouterr().out.replace("The last", "the last")
    (learner.folder / DOT.file).write_text(solution(DOT))
    assert run("check", "8.d") == 0
    assert "8.d has passed: found and mended" in capsys.readouterr().out
    assert run("cases", "--json") == 0
    assert json.loads(capsys.readouterr().out)["cases"]["8.d"] == "passed"
    assert run("solution", "8.d") == 0
    assert "letter for letter" in capsys.readouterr().out
    assert run("check", "--all") == 0
    assert "1 of 1 written tasks pass" in capsys.readouterr().out
    assert run("status", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["current"], "8.d" in document["tasks"]) == ("1.1", False)


def test_a_wrong_answer_says_which_part_is_wrong_and_exits_with_1(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("answer", "8.d", "19", "wrong-reduction") == 1
    shown = capsys.readouterr().out
    assert "the line is not right: sum0 += a[i] * b[i];" in shown
    assert "the kind is right" in shown
    assert "25" not in shown
    assert run("answer", "8.d", "25", "race") == 1
    shown = capsys.readouterr().out
    assert "the line is right" in shown
    assert f"race means that {KINDS['race'][:20]}" in shown
    assert "wrong-reduction" not in shown


def test_an_unknown_kind_or_task_is_one_line_with_what_there_is(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("answer", "8.d", "25", "colour") == 2
    told = capsys.readouterr().err
    assert all(kind in told for kind in KINDS)
    assert run("answer", "1.1", "25", "race") == 2
    assert "1.1 is no detective exercise" in capsys.readouterr().err


def test_hints_skip_and_reset_take_a_case_and_leave_the_current_task(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("hint", "8.d") == 0
    assert "8.d, hint 1 of 3" in capsys.readouterr().out
    assert run("skip", "8.d") == 0
    assert run("cases") == 0
    assert "skipped" in capsys.readouterr().out
    (learner.folder / DOT.file).write_text("broken beyond repair")
    assert run("reset", "8.d") == 0
    assert "the program is as it came again; the file as it was: " in capsys.readouterr().out
    assert "sum0 = a[i] * b[i];" in learner.text(DOT.file)
    assert run("next") == 0
    assert "now: 1.1" in capsys.readouterr().out
