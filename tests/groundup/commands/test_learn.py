"""`groundup learn`, as a learner types it."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from groundup.course.judging.judge import run_limited
from groundup.course.judging.surroundings import variables
from groundup.course.judging.verdict import Verdict
from groundup.course.learner.learners_folder import locate
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import ROOT, Task, course
from groundup.course.rules import passing
from groundup.course.rules.order import next_task
from tests import program
from tests.groundup.course.course_helpers import mark_passed, write
from tests.stages import STAGE_PARAMS
from tests.wide import wide, widely

FIRST, SECOND = course().task("1.1"), course().task("1.2")


run = partial(program.run, "learn")


def test_start_makes_the_folder_and_says_what_to_do_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("start") == 0
    shown = capsys.readouterr().out
    assert "> 1.1" in shown
    assert "groundup-course/stage1_pure_python/matmul.py:" in shown.replace("\\", "/")
    assert "groundup learn check" in shown
    assert run("start") == 0
    assert "nothing was missing" in capsys.readouterr().out


def test_the_first_exercise_from_stub_to_pass(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check") == 1
    assert "not written yet; groundup learn hint 1.1 helps" in capsys.readouterr().out
    write(learner, FIRST, "c[i][j] +=", "c[i][j] =")
    assert run("check") == 1
    shown = capsys.readouterr().out
    assert "failed  values" in shown
    assert "expected  " in shown
    assert "got       " in shown
    assert "ok      shape      2 comparisons" in shown
    assert "\n\n  likely: only the last product is kept" in shown
    assert "\n\n\n" not in shown, "one empty line between two parts"
    assert shown.count("failed") == 1
    write(learner, FIRST)
    assert run("check") == 0
    shown = capsys.readouterr().out
    assert "passed" in shown
    assert "next: 1.2" in shown
    assert locate(None, course()).record.current == "1.2"
    assert run("status") == 0
    assert "1 of 4" in capsys.readouterr().out


@pytest.mark.parametrize(("columns", "longest"), [(60, 60), (200, 100)])
def test_a_hint_is_broken_into_lines_for_the_width_of_the_terminal(
    learner: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, longest: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run("hint", FIRST.id) == 0
    lines = capsys.readouterr().out.partition(":\n\n")[2].partition("\n\n")[0].split("\n")
    words = [line.split() for line in lines]
    assert all(len(line) <= longest for line in lines)
    assert all(len(f"{line} {after[0]}") > longest for line, after in zip(lines, words[1:], strict=False))


def test_hints_come_one_after_the_other_and_are_counted(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    for level, name in ((1, "an idea"), (2, "a plan"), (3, "nearly the code"), (3, "nearly the code")):
        assert run("hint") == 0
        shown = capsys.readouterr().out
        assert f"1.1, hint {level} of 3, {name}:" in shown
        assert FIRST.hints[level - 1].split() == shown.partition(":\n\n")[2].partition("\n\n")[0].split()
    assert locate(None, course()).record.of("1.1").hints == 3


def test_the_solution_opens_on_a_pass_or_when_revealed(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("solution") == 1
    assert "has not passed yet" in capsys.readouterr().out
    assert run("solution", "--reveal") == 0
    shown = capsys.readouterr().out
    assert "-    raise NotImplementedError" in shown
    assert "+    return c" in shown
    assert locate(None, course()).record.of("1.1").revealed
    write(learner, FIRST)
    mark_passed(locate(None, course()), FIRST)
    assert run("solution", "1.1") == 0
    assert "letter for letter" in capsys.readouterr().out
    assert run("status") == 0
    assert "passed, solution seen" in capsys.readouterr().out


def test_skip_and_next_go_on_and_check_comes_back(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("skip") == 0
    assert "now: 1.2" in capsys.readouterr().out
    assert run("next") == 0
    assert "now: 1.2" in capsys.readouterr().out, "it has not been done"
    write(learner, SECOND)
    mark_passed(locate(None, course()), SECOND)
    assert run("next") == 0
    assert "now: 1.3" in capsys.readouterr().out
    last = course().tasks[-1]
    assert next_task(locate(None, course()), last) == course().task("1.3"), (
        "after the last comes the first that is left"
    )
    write(learner, FIRST)
    assert run("check", "index_loops") == 0
    assert locate(None, course()).record.of("1.1").state == "passed"
    capsys.readouterr()
    assert run("skip", "1.1") == 0
    assert "nothing to skip" in capsys.readouterr().out


def test_when_nothing_is_left_it_says_so(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    for task in course().tasks:
        learner.record.of(task.id).state = "skipped"
    learner.save()
    assert run("next") == 0
    assert "every task has passed or was skipped" in capsys.readouterr().out


def test_a_function_changed_since_it_passed_is_said_to_be(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    write(learner, FIRST)
    mark_passed(learner, FIRST)
    write(learner, FIRST, "+=", "-=")
    assert run("status") == 0
    assert "changed since it passed" in capsys.readouterr().out
    program.run("train", "1", "--mine")
    assert "1.1 changed since they passed" in capsys.readouterr().err


def test_a_reset_is_undone_and_done_again(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reset", "1.1", "--undo") == 2
    assert "1.1 was not reset here; copies of files that were lie in " in capsys.readouterr().err
    write(learner, FIRST)
    assert run("reset", "1.1") == 0
    assert "groundup learn reset 1.1 --undo brings yours back" in capsys.readouterr().out
    assert run("reset", "1.1", "--undo") == 0
    assert "is as it was before the reset; the file as it was: " in capsys.readouterr().out
    assert learner.function(FIRST) == solution(FIRST)
    assert run("reset", "1.1", "--undo") == 0
    assert learner.is_stub(FIRST)
    path = learner.folder / FIRST.file
    path.write_text("def (", encoding="utf-8")
    assert run("reset", "1.1", "--undo") == 2
    assert "groundup learn reset 1.1 --undo --file brings back all of the file" in capsys.readouterr().err
    assert run("reset", "1.1", "--undo", "--file") == 0
    assert learner.function(FIRST) == solution(FIRST)


@wide
def test_check_all_grades_what_is_written(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "--all") == 0
    assert "no task has been written yet" in capsys.readouterr().out
    write(learner, FIRST)
    write(learner, SECOND, "+=", "-=")
    assert run("check", "--all") == 1
    assert "1 of 2 written tasks pass" in capsys.readouterr().out
    assert run("check", "--all", "1.1") == 2
    assert "not both" in capsys.readouterr().err


@wide
def test_json_of_check_and_status(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    write(learner, FIRST)
    assert run("check", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    verdict = document["verdicts"]["1.1"]
    assert verdict["passed"] is True
    assert (verdict["rung"], verdict["rungs"][0], verdict["likely"]) == ("", ["shape", 2], ""), (
        "these keys are a format that programs read"
    )
    assert run("status", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tasks"]["1.1"] == "passed"
    assert document["current"] == "1.2"
    assert list(document["tasks"]) == [task.id for task in course().tasks]


@wide
def test_the_remark_on_style_can_be_left_out(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDUP_LEARN_STYLE", "")
    write(learner, FIRST, "    return c", "    unused = 1\n    return c")
    assert run("check", "1.1") == 0
    assert ": unused is never read" in capsys.readouterr().out
    assert run("check", "1.1", "--no-style") == 0
    assert "unused" not in capsys.readouterr().out


def test_several_tasks_are_checked_by_one_command(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "1.1", "2.2") == 1
    assert capsys.readouterr().out.count("not written yet") == 2


@wide
def test_a_function_saved_while_it_is_graded_does_not_get_the_pass(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(learner, FIRST)
    judged = passing.judge

    def slow(workspace: Workspace, task: Task, report: Path | None) -> Verdict:
        verdict = judged(workspace, task, report)
        write(learner, FIRST, "+=", "-=")
        return verdict

    monkeypatch.setattr(passing, "judge", slow)
    assert run("check") == 0
    assert "saved again while it was graded" in capsys.readouterr().out
    assert locate(None, course()).record.of("1.1").state == ""


@wide
def test_a_pass_is_taken_back_when_what_it_leans_on_breaks(
    learner: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    write(learner, FIRST, "return c", "return helped(c)")
    path = learner.folder / FIRST.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\n\ndef helped(c):\n    return c\n", encoding="utf-8")
    assert run("check") == 0
    path.write_text(text + "\n\ndef helped(c):\n    return None\n", encoding="utf-8")
    assert run("check", "1.1") == 1
    assert locate(None, course()).record.of("1.1").state == ""


@wide
def test_what_another_terminal_writes_meanwhile_is_kept(learner: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    write(learner, FIRST)
    judged = passing.judge

    def slow(workspace: Workspace, task: Task, report: Path | None) -> Verdict:
        run("skip", "1.3")
        return judged(workspace, task, report)

    monkeypatch.setattr(passing, "judge", slow)
    assert run("check", "1.1") == 0
    record = locate(None, course()).record
    assert (record.of("1.1").state, record.of("1.3").state) == ("passed", "skipped")


def test_start_inside_the_folder_brings_back_what_is_missing(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(learner.folder / "stage2_numpy")
    (learner.folder / FIRST.file).unlink()
    (learner.folder / "progress.toml").unlink()
    monkeypatch.chdir(learner.folder.parent)
    assert run("start") == 0
    assert learner.is_stub(FIRST)
    (learner.folder / FIRST.file).unlink()
    monkeypatch.chdir(learner.folder / "stage2_numpy")
    assert run("start") == 0
    assert learner.is_stub(FIRST)
    assert not (learner.folder / "stage2_numpy" / "groundup-course").exists()


@wide
def test_start_in_a_folder_without_its_record_grades_again_what_is_written(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(learner, FIRST)
    write(learner, SECOND, "+=", "-=")
    (learner.folder / "progress.toml").unlink()
    monkeypatch.chdir(learner.folder / "stage2_numpy")
    assert run("check") == 2
    assert "has your files, but no progress.toml; groundup learn start makes it again" in capsys.readouterr().err
    assert run("start") == 0
    shown = capsys.readouterr().out
    assert "  1.1   passes\n  1.2   does not pass\n" in shown
    assert "now: 1.2" in shown
    assert not (learner.folder / "stage2_numpy" / "groundup-course").exists()
    assert locate(None, course()).passed(FIRST)


@pytest.mark.parametrize("damage", ["current = ", '[tasks."1.1"]\nstate = "done"'])
def test_start_makes_a_damaged_record_anew_and_keeps_the_old_one(
    learner: Workspace, damage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = learner.folder / "progress.toml"
    state.write_text(damage, encoding="utf-8")
    monkeypatch.chdir(learner.folder)
    assert run("status") == 2
    assert "or run groundup learn start: it makes the file anew" in capsys.readouterr().err
    assert run("start") == 0
    assert "it was made anew, and the old one is" in capsys.readouterr().out
    (kept,) = (learner.folder / ".groundup" / "old").rglob("progress.toml")
    assert kept.read_text(encoding="utf-8") == damage
    assert locate(None, course()).record.current == "1.1"
    assert not (learner.folder / "groundup-course").exists()


def test_start_makes_no_course_in_a_course_nor_in_the_project_itself(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(learner.folder)
    assert run("start", "another") == 2
    assert f"another would lie in your course folder, {learner.folder}" in capsys.readouterr().err
    assert run("start", str(ROOT)) == 2
    assert f"{ROOT} is the project itself; name a folder that is empty" in capsys.readouterr().err
    assert not (ROOT / "progress.toml").exists()


def test_the_stubs_line_left_behind_is_pointed_at(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    path = learner.folder / FIRST.file
    text = path.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if FIRST.message in line)
    path.write_text(
        text.replace(line, "    c = []\n    for row in a:\n        c.append(row)\n" + line), encoding="utf-8"
    )
    assert run("check") == 1
    assert "raise NotImplementedError is still there: take it out" in capsys.readouterr().out
    path.write_text(text.replace(line, f"    # {line.strip()}\n    return []"), encoding="utf-8")
    assert run("check") == 1
    assert "failed" in capsys.readouterr().out


@wide
def test_an_error_of_the_learners_own_in_training_is_one_line(
    learner: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    task = course().task("5.4")
    write(learner, task, "p -= np.multiply(slope", "raise KeyError('mine')  # p -= (slope")
    mark_passed(learner, task)
    code, printed = trained(learner, "stage2_numpy")
    assert code == 1
    assert "error: KeyError: 'mine', at" in printed
    assert f"{learner.folder / task.file}:" in printed
    assert "Traceback" not in printed


def test_a_mistake_in_the_command_is_one_line(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "99.1") == 2
    assert capsys.readouterr().err == "error: there is no task '99.1'; `groundup learn status --all` lists them\n"
    assert run("sideways") == 2
    assert "groundup learn --help" in capsys.readouterr().err


SPOILT = {
    "stage1_pure_python": ("3.6", "p[i] -= self.learning_rate * slope", "raise RuntimeError('the learner was here')"),
    "stage2_numpy": ("5.4", "p -= np.multiply(slope", "raise RuntimeError('the learner was here')  # p -= (slope"),
    "stage3_c": ("7.4", "p[i] -= rate * slope_of(g[i], p[i], decay);", "(void)rate, (void)decay;"),
    "stage4_numba_cuda": ("15.2", "parameters[i] = p - numbers[RATE] * change", "parameters[i] = p"),
}
"""An answer that training would not survive, or not learn by: (task, what is replaced, by what)."""


@pytest.mark.parametrize("stage", widely(STAGE_PARAMS))
def test_training_runs_the_learners_own_functions(learner: Workspace, stage: str) -> None:
    name, old, new = SPOILT[stage]
    write(learner, course().task(name), old, new)
    mark_passed(learner, course().task(name))
    code, printed = trained(learner, stage)
    if code == 0:
        assert len(set(losses(learner, stage))) == 1, "the parameters have moved, so it was not the learner's function"
    else:
        assert "the learner was here" in printed


@wide
def test_training_with_a_right_answer_learns(learner: Workspace) -> None:
    task = course().task("5.4")
    write(learner, task)
    mark_passed(learner, task)
    code, printed = trained(learner, "stage2_numpy")
    assert code == 0, printed
    assert '"mine": [\n    "5.4"\n  ]' in printed
    first, second = losses(learner, "stage2_numpy")
    assert second < 0.95 * first


def trained(learner: Workspace, stage: str) -> tuple[int | None, str]:
    """Two epochs of `groundup train STAGE --mine`, in a process of its own: exit code and what it printed."""
    arguments = ["train", stage, "--mine", "--hidden", "4", "--epochs", "2", "--batch-size", "500", "--json"]
    code = f"from groundup.cli import main; main({arguments!r})"
    return run_limited([sys.executable, "-c", code], learner.folder.parent, 120, variables())


def losses(learner: Workspace, stage: str) -> list[float]:
    """The training loss of each epoch, to five digits: what is added up in another order differs beyond."""
    metrics = learner.folder.parent / "runs" / stage / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines()
    return [float(f"{json.loads(line)['train_loss']:.5g}") for line in lines]


def test_training_with_ones_own_functions_needs_some(learner: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run("train", "2", "--mine") == 2
    said = capsys.readouterr().err
    assert "no function of stage2_numpy in" in said
    assert "groundup learn check 4.1" in said
