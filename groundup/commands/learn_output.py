"""What `groundup learn` prints: the verdict on a task, where the learner is, and the state of every task."""

from __future__ import annotations

import textwrap
from pathlib import Path

from rich.console import Console
from rich.text import Text

from groundup.course.judging.verdict import Verdict
from groundup.course.learner.functions import find
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Phase, Task
from groundup.course.rules import hints
from groundup.course.rules.checkpoints import entry_name
from groundup.course.rules.order import chosen_task
from groundup.course.rules.passing import Graded, ends_a_phase
from groundup.course.rules.states import count, state, states_of
from groundup.course.rules.style import remark
from shared.contract import STAGES
from shared.terminal import TextConsole, say

WIDTH = 100
"""The most columns of running text; a narrower terminal has fewer."""


def show_verdict(verdict: Verdict, workspace: Workspace, task: Task | None) -> None:
    """Each check that passed, then the first that failed, with its likely cause. task: None for a checkpoint."""
    console = _console()

    def say(*parts: str | tuple[str, str]) -> None:
        console.print(Text.assemble(*parts), soft_wrap=True)

    if verdict.stub and task and task.fault:
        say(("not mended yet", "yellow"), f": {verdict.what}; groundup learn hint {task.id} helps")
        return
    if verdict.stub:
        say(("not written yet", "yellow"), f"; groundup learn hint {task.id if task else ''} helps")
        return
    width = max([11, *(len(name) + 2 for name, _ in verdict.passed_checks)])
    for name, comparisons in verdict.passed_checks:
        counted = f"{comparisons} comparison{'' if comparisons == 1 else 's'}"
        say("  ", (f"{'ok':<8}", "green"), f"{name:<{width}}", (counted, "dim"))
    if not verdict.passed:
        say("  ", (f"{'failed':<8}", "bold red"), verdict.failed_check)
        say(f"\n  {verdict.what}")
        if verdict.expected:
            say("    expected  ", (verdict.expected, "green"))
        if verdict.got:
            say("    got       ", (verdict.got, "red"))
        if verdict.by_hand:
            say("\n" + textwrap.indent(verdict.by_hand.strip("\n"), "    "))
            if verdict.line:
                say()
        if verdict.line:
            path = Path(verdict.file) if verdict.file else workspace.folder / (task.file if task else "")
            say(f"    {relative(path)}:{verdict.line}", f"  {verdict.source}" if verdict.source else "")
        if verdict.cause:
            say(("\n  likely: ", "bold"), verdict.cause)
        if verdict.more:
            say(f"\n{verdict.more}")
        if task and task.stage == STAGES[3] and (verdict.failed_check == "memory" or "barrier" in verdict.cause):
            say(f"\n  groundup learn lens {task.id} shows each access of your kernel, line by line")
    for note in verdict.notes:
        say(f"  {note}")
    if verdict.printed:
        say("\n  printed:\n", verdict.printed)
    if verdict.passed:
        say(("  passed", "bold green"), f" in {verdict.seconds:.1f} s")


def show_task(workspace: Workspace, task: Task) -> None:
    """What is graded now, before the verdict on it."""
    say(f"{task.id} {task.title}\n{place_of(workspace, task)}: {task.function}")


def show_graded(graded: Graded, workspace: Workspace, task: Task) -> None:
    """The verdict on a task, and after a pass what to do next."""
    show_verdict(graded.verdict, workspace, task)
    if not graded.verdict.passed:
        return
    if graded.changed:
        say("the function was saved again while it was graded: groundup learn check grades the new version")
        return
    if line := remark(workspace, task):
        say(f"  style, {line}")
    if task.fault:
        _show_mended(workspace, task)
        return
    if ends_a_phase(workspace, task):
        phase = workspace.course.phase_of(task)
        say(f"That was the last of the phase: groundup learn checkpoint {phase.number}")
    if graded.following is None:
        say("Every task has passed or was skipped.")
    else:
        following = graded.following
        say(f"next: {following.id} {following.title}\n      {place_of(workspace, following)}")


def show_watched(workspace: Workspace, task: Task, line: str, stay: bool) -> None:
    """What a watch without a terminal waits for, after each grading. line: about other tasks, as `followed` has it"""
    what = place_of(workspace, task) if stay else "your files"
    say(f"{line}\n" * bool(line) + f"watching {what}, now for {task.id}; Ctrl-C ends it\n")


def show_passing(task: Task, verdict: Verdict) -> None:
    """Whether a task passes, on one line."""
    passes = ("passes", "green") if verdict.passed else ("does not pass", "yellow")
    _console().print(Text.assemble(f"  {task.id:<6}", passes), soft_wrap=True)


def _show_mended(workspace: Workspace, case: Task) -> None:
    """What to do after the program of a detective exercise is mended."""
    if workspace.record.of(case.id).found:
        say(f"{case.id} has passed: found and mended. groundup learn cases lists the others.")
    else:
        say(f"mended; now say what was wrong: groundup learn answer {case.id} LINE KIND, where LINE is the line")
        say("that you have changed. groundup learn answer --help lists the kinds.")


def show_where(workspace: Workspace) -> None:
    """The current week's tasks, and what to do now."""
    show_status(workspace, False)
    current = chosen_task(workspace, None)
    say(f"\nnow: {current.id} {current.title}\n     {place_of(workspace, current)}: {current.function}")
    say("     write it, then: groundup learn check")


def show_text(text: str) -> None:
    """One paragraph of running text, its lines broken anew for the width of the terminal."""
    say(textwrap.fill(text.strip(), min(WIDTH, _console().width), break_long_words=False))


def show_hint(task: Task, level: int) -> None:
    """A hint of a task, and how to get the next one."""
    say(f"{task.id}, hint {level} of {hints.LAST}, {hints.NAMES[level - 1]}:\n")
    show_text(task.hints[level - 1])
    if level < hints.LAST:
        say(f"\nthe next one: groundup learn hint {task.id}")


def show_status(workspace: Workspace, every: bool) -> None:
    """What has passed, week by week; the tasks of the current week, or of every week."""
    console = _console()
    current = chosen_task(workspace, None)
    states = states_of(workspace)
    for phase in workspace.course.phases:
        tasks = [task for week in phase.weeks for task in week.tasks]
        console.print(Text.assemble((f"{phase.number} {phase.title}", "bold"), f"  {count(tasks, states)}"))
        if not every and current not in tasks:
            continue
        for week in phase.weeks:
            hours = f"{week.hours[0]} to {week.hours[1]} hours"
            console.print(
                f"  week {week.number}: {week.title}  ({hours})  {count(list(week.tasks), states)}", soft_wrap=True
            )
            if every or current in week.tasks:
                cases = [case for case in workspace.course.cases if case.week == week.number]
                width = max(len(_title(task)) for task in (*week.tasks, *cases)) + 2
                for task in week.tasks:
                    _show_state(console, task, states[task.id], task == current, width)
                for case in cases:
                    _show_state(console, case, state(workspace, case), False, width)
        _show_checkpoint(console, workspace, phase)


def _show_state(console: Console, task: Task, state: str, current: bool, width: int) -> None:
    colour = {"passed": "green", "skipped": "dim"}.get(state.partition(",")[0], "yellow" if state else "")
    mark = ">" if current else " "
    line = Text.assemble(f"  {mark} {task.id:<5}", f"{_title(task):<{max(62, width)}}", (state, colour))
    console.print(line, soft_wrap=True)


def _title(task: Task) -> str:
    return f"find the fault: {task.title}" if task.fault else task.title


def _show_checkpoint(console: Console, workspace: Workspace, phase: Phase) -> None:
    entry = workspace.record.of(entry_name(phase))
    reached = f"reached {entry.on}" if entry.state == "passed" else ""
    console.print(f"    checkpoint: {phase.checkpoint}  {reached}", soft_wrap=True)


def show_difference(lines: list[str]) -> None:
    """The lines of a unified difference, in colour."""
    colours = {"+": "green", "-": "red", "@": "dim"}
    text = Text("\n").join([Text(line, colours.get(line[:1], "")) for line in lines])
    _console().print(text, soft_wrap=True)


def place_of(workspace: Workspace, task: Task) -> str:
    """file:line of the task's function, as an editor opens it; the file alone if the function cannot be found."""
    path = workspace.folder / task.file
    try:
        line = find(workspace.text(task.file), task.function, task.file).first
    except ValueError:
        return relative(path)
    return f"{relative(path)}:{line}"


def relative(path: Path) -> str:
    """A path as it is typed in the folder that the shell stands in."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder that the shell stands in was deleted
        return str(path)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _console() -> Console:
    return TextConsole(highlight=False)
