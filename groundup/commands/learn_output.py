"""What `groundup learn` prints: the verdict on a task, where the learner is, and the state of every task."""

from __future__ import annotations

import textwrap
from pathlib import Path

import typer
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
from groundup.course.rules.states import count, states_of

WIDTH = 100
"""Columns of running text."""


def show_verdict(verdict: Verdict, workspace: Workspace, task: Task | None) -> None:
    """Each check that passed, then the first that failed, with its likely cause. task: None for a checkpoint."""
    console = _console()

    def say(*parts: str | tuple[str, str]) -> None:
        console.print(Text.assemble(*parts), soft_wrap=True)

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
        if verdict.line:
            path = Path(verdict.file) if verdict.file else workspace.folder / (task.file if task else "")
            say(f"    {_relative(path)}:{verdict.line}", f"  {verdict.source}" if verdict.source else "")
        if verdict.cause:
            say(("\n  likely: ", "bold"), verdict.cause)
        if verdict.more:
            say(f"\n{verdict.more}")
    for note in verdict.notes:
        say(f"  {note}")
    if verdict.printed:
        say("\n  printed:\n", verdict.printed)
    if verdict.passed:
        say(("  passed", "bold green"), f" in {verdict.seconds:.1f} s")


def show_task(workspace: Workspace, task: Task) -> None:
    """What is graded now, before the verdict on it."""
    typer.echo(f"{task.id} {task.title}\n{place_of(workspace, task)}: {task.function}")


def show_graded(graded: Graded, workspace: Workspace, task: Task) -> None:
    """The verdict on a task, and after a pass what to do next."""
    show_verdict(graded.verdict, workspace, task)
    if not graded.verdict.passed:
        return
    if graded.changed:
        typer.echo("the function was saved again while it was graded: groundup learn check grades what is there now")
        return
    if ends_a_phase(workspace, task):
        phase = workspace.course.phase_of(task)
        typer.echo(f"That was the last of the phase: groundup learn checkpoint {phase.number}")
    if graded.following is None:
        typer.echo("Every task has passed or was skipped.")
    else:
        following = graded.following
        typer.echo(f"next: {following.id} {following.title}\n      {place_of(workspace, following)}")


def show_where(workspace: Workspace) -> None:
    """The current week's tasks, and what to do now."""
    show_status(workspace, False)
    current = chosen_task(workspace, None)
    typer.echo(f"\nnow: {current.id} {current.title}\n     {place_of(workspace, current)}: {current.function}")
    typer.echo("     write it, then: groundup learn check")


def show_hint(task: Task, level: int) -> None:
    """A hint of a task, in lines of at most WIDTH columns, and how to get the next one."""
    typer.echo(f"{task.id}, hint {level} of {hints.LAST}, {hints.NAMES[level - 1]}:\n")
    for line in task.hints[level - 1].strip().split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        typer.echo(textwrap.fill(line, WIDTH, subsequent_indent=indent) if len(line) > WIDTH else line)
    if level < hints.LAST:
        typer.echo(f"\nthe next one: groundup learn hint {task.id}")


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
                for task in week.tasks:
                    _show_state(console, task, states[task.id], task == current)
        _show_checkpoint(console, workspace, phase)


def _show_state(console: Console, task: Task, state: str, current: bool) -> None:
    colour = {"passed": "green", "skipped": "dim"}.get(state.partition(",")[0], "yellow" if state else "")
    mark = ">" if current else " "
    line = Text.assemble(f"  {mark} {task.id:<5}", f"{task.title:<62}", (state, colour))
    console.print(line, soft_wrap=True)


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
        return _relative(path)
    return f"{_relative(path)}:{line}"


def _relative(path: Path) -> str:
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder that the shell stands in was deleted
        return str(path)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _console() -> Console:
    return Console(highlight=False)
