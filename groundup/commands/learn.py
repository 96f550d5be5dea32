"""`groundup learn`: the course, from the first stub to the last checkpoint."""

from __future__ import annotations

import datetime
import difflib
import os
import textwrap
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from groundup.course.judging.judge import judge, judge_checkpoint
from groundup.course.judging.verdict import Verdict
from groundup.course.learner import record as record_file
from groundup.course.learner.finding import DEFAULT, VARIABLE, commit_first, locate
from groundup.course.learner.finding import start as start_folder
from groundup.course.learner.functions import FunctionMissing, dedented, find
from groundup.course.learner.project_files import solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Course, Phase, Task, course
from shared.bench.results import as_json

WIDTH = 100
"""Columns of running text."""

LOOK_EVERY = 0.3
"""Seconds between two looks at the file that `watch` watches."""

TaskName = Annotated[
    str | None, typer.Argument(metavar="[TASK]", help="Such as 1.2, or a function's name.", show_default="the current")
]

app = typer.Typer(
    name="learn",
    help="The course: write every part of the network yourself, graded on your own machine.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def learn(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option(help="Your course folder.", show_default=f"{VARIABLE}, this folder or one above, {DEFAULT}"),
    ] = None,
) -> None:
    """Where you are in the course, and what is next.

    \b
    Examples:
      groundup learn start          make your folder, with a stub for every exercise
      groundup learn check          grade the task you are at
      groundup learn watch          grade it again whenever you save
      groundup learn hint           a nudge; again: a plan; again: nearly the code
      groundup learn status --all   every task
    """
    context.obj = folder
    if context.invoked_subcommand is None:
        _where(locate(folder, course()))


@app.command()
def start(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Argument(help="A folder that is not there yet.", show_default=DEFAULT)] = None,
) -> None:
    """Make your course folder: the project's own files, with a stub in the place of every exercise.

    In a folder that is there, files that are missing come back; no other is touched.

    \b
    Examples:
      groundup learn start
      groundup learn start ~/my-network
    """
    chosen = folder or context.obj or _found()
    new = not (chosen / record_file.NAME).exists()
    workspace, written = start_folder(chosen, course())
    weeks = course().weeks
    if new:
        git = commit_first(workspace.folder)
        typer.echo(f"{workspace.folder}: {len(course().tasks)} tasks in {len(weeks)} weeks{'; ' if git else ''}{git}")
    else:
        typer.echo(f"{workspace.folder} is there; written: {', '.join(written) or 'nothing, for nothing was missing'}")
    _where(workspace)


@app.command()
def check(
    context: typer.Context,
    task: TaskName = None,
    all_: Annotated[bool, typer.Option("--all", help="Every task that you have written something for.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Grade a task by its checks, one after the other, and show the first that fails.

    Exit code: 0 when all that was graded passes, 1 when something does not.

    \b
    Examples:
      groundup learn check
      groundup learn check 10.2
      groundup learn check --all
    """
    workspace = locate(context.obj, course())
    if all_ and task is not None:
        raise ValueError(f"check: name a task or give --all, not both; got {task} and --all")
    tasks = [each for each in course().tasks if _begun(workspace, each)] if all_ else [_task(workspace, task)]
    current = workspace.record.current
    verdicts = {each.id: _grade(workspace, each, quiet=as_json_) for each in tasks}
    if all_:
        workspace.record.current = current
        workspace.save()
    if as_json_:
        told = {name: verdict.document() for name, verdict in verdicts.items()}
        typer.echo(as_json({"schema": 1, "kind": "groundup learn check", "verdicts": told}), nl=False)
    elif all_:
        passed = sum(verdict.passed for verdict in verdicts.values())
        typer.echo(f"{passed} of {len(tasks)} written tasks pass" if tasks else "no task has been written yet")
    if not all(verdict.passed for verdict in verdicts.values()):
        raise typer.Exit(1)


@app.command()
def watch(
    context: typer.Context,
    task: TaskName = None,
    once: Annotated[bool, typer.Option("--once", help="Grade once and end, as check does.")] = False,
) -> None:
    """Grade a task whenever its file is saved, and go on to the next one when it passes. Ctrl-C ends it.

    \b
    Examples:
      groundup learn watch
      groundup learn watch 6.4
    """
    workspace = locate(context.obj, course())
    current = _task(workspace, task)
    seen = told = None
    try:
        while True:
            try:
                text = workspace.text(current.file)
            except ValueError as error:  # an editor moves a file away for a moment while it saves
                if once:
                    raise
                if str(error) != told:
                    told = str(error)
                    typer.echo(told)
                pause()
                continue
            if text == seen:
                pause()
                continue
            seen = text
            verdict = _grade(workspace, current)
            if once:
                raise typer.Exit(0 if verdict.passed else 1)
            following = _next(workspace, current) if verdict.passed else None
            if following is not None:
                seen = text if following.file == current.file else workspace.text(following.file)
                current = following
            typer.echo(f"watching {_place(workspace, current)} for {current.id}; Ctrl-C ends it\n")
    except KeyboardInterrupt:
        typer.echo("not watching any more")


@app.command()
def hint(
    context: typer.Context,
    task: TaskName = None,
    level: Annotated[
        int | None, typer.Option(min=1, max=3, help="1 a nudge, 2 a plan, 3 nearly the code.", show_default="the next")
    ] = None,
) -> None:
    """Help with a task: a nudge first; asked again, a plan; asked again, nearly the code.

    \b
    Examples:
      groundup learn hint
      groundup learn hint 1.2 --level 2
    """
    workspace = locate(context.obj, course())
    chosen = _task(workspace, task)
    entry = workspace.record.of(chosen.id)
    asked = level or min(entry.hints + 1, 3)
    entry.hints = max(entry.hints, asked)
    workspace.save()
    names = ("a nudge", "a plan", "nearly the code")
    typer.echo(f"{chosen.id}, hint {asked} of 3, {names[asked - 1]}:\n")
    for line in chosen.hints[asked - 1].strip().split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        typer.echo(textwrap.fill(line, WIDTH, subsequent_indent=indent) if len(line) > WIDTH else line)
    if asked < 3:
        typer.echo(f"\nthe next one: groundup learn hint {chosen.id}")


@app.command(name="solution")
def show_solution(
    context: typer.Context,
    task: TaskName = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show it before the task has passed.")] = False,
) -> None:
    """The project's own function, as the difference from yours. It opens when the task passes.

    \b
    Examples:
      groundup learn solution 1.1
      groundup learn solution 1.2 --reveal
    """
    workspace = locate(context.obj, course())
    chosen = _task(workspace, task)
    passed = workspace.passed(chosen)
    if not passed and not reveal:
        typer.echo(f"{chosen.id} has not passed yet: groundup learn hint {chosen.id} helps, --reveal opens it now")
        raise typer.Exit(1)
    entry = workspace.record.of(chosen.id)
    if not passed and not entry.revealed:
        entry.revealed = True
        workspace.save()
    theirs = dedented(solution(chosen))
    try:
        yours = dedented(workspace.function(chosen))
    except ValueError:  # it is not in the file, or the file cannot be read: all of the project's is the difference
        yours = ""
    if yours == theirs:
        typer.echo(f"{chosen.id}: yours is the project's own, letter for letter")
        return
    difference = difflib.unified_diff(
        yours.splitlines(), theirs.splitlines(), "yours", f"the project's {chosen.file}", n=1000, lineterm=""
    )
    _console().print(_coloured(list(difference)), soft_wrap=True)


@app.command(name="next")
def next_task(context: typer.Context) -> None:
    """What to do next: the first task, from the current one on, that has neither passed nor been skipped.

    \b
    Examples:
      groundup learn next
    """
    workspace = locate(context.obj, course())
    following = _next(workspace, _task(workspace, None), itself=True)
    if following is None:
        typer.echo("every task has passed or was skipped: groundup learn status --all shows which")
    else:
        _where(workspace)


@app.command()
def skip(context: typer.Context, task: TaskName = None) -> None:
    """Leave a task out. No other needs it: each is graded with the project's functions around it.

    \b
    Examples:
      groundup learn skip
      groundup learn skip 2.3
    """
    workspace = locate(context.obj, course())
    chosen = _task(workspace, task)
    entry = workspace.record.of(chosen.id)
    if workspace.passed(chosen):
        typer.echo(f"{chosen.id} has passed, so there is nothing to skip")
        return
    entry.state, entry.on, entry.digest = "skipped", _today(), ""
    workspace.save()
    typer.echo(f"{chosen.id} skipped; groundup learn check {chosen.id} takes it up again")
    if _next(workspace, chosen) is not None:
        _where(workspace)


@app.command()
def reset(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="Such as 1.2, or a function's name.")],
    file: Annotated[
        bool, typer.Option("--file", help="Every stub of the task's file, whatever state it is in.")
    ] = False,
) -> None:
    """Put a task's stub back. What was there is copied to .groundup/old first.

    \b
    Examples:
      groundup learn reset 1.2
      groundup learn reset 1.2 --file
    """
    workspace = locate(context.obj, course())
    chosen = course().task(task)
    try:
        kept = workspace.reset(chosen, whole_file=file)
    except FunctionMissing as missing:
        raise ValueError(f"{missing}; groundup learn reset {chosen.id} --file brings back all of the file") from None
    workspace.record.current = chosen.id
    workspace.save()
    copy = f"; the file as it was: {kept}" if kept else ""
    typer.echo(f"{_place(workspace, chosen)} is a stub again{copy}")


@app.command()
def status(
    context: typer.Context,
    all_: Annotated[bool, typer.Option("--all", help="Every task, not only the current week's.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the state of every task as JSON.")] = False,
) -> None:
    """What has passed, week by week. A task that was changed since it passed does not count until it passes again.

    \b
    Examples:
      groundup learn status
      groundup learn status --all
    """
    workspace = locate(context.obj, course())
    if as_json_:
        states = {task.id: _state(workspace, task) for task in course().tasks}
        document = {"schema": 1, "kind": "groundup learn status", "current": workspace.record.current}
        typer.echo(as_json({**document, "tasks": states}), nl=False)
        return
    _show_status(workspace, course(), all_)


@app.command()
def checkpoint(
    context: typer.Context,
    phase: Annotated[int | None, typer.Argument(help="1 to 6.", show_default="the current task's")] = None,
) -> None:
    """What ends a phase: all your functions that pass, at work together.

    Exit code: 0 when it is reached, 1 when it is not.

    \b
    Examples:
      groundup learn checkpoint 1
    """
    workspace = locate(context.obj, course())
    chosen = course().phase(phase) if phase is not None else course().phase_of(_task(workspace, None))
    mine = [task for week in chosen.weeks for task in week.tasks if workspace.passed(task)]
    there = sum(len(week.tasks) for week in chosen.weeks)
    typer.echo(f"checkpoint {chosen.number}: {chosen.checkpoint}")
    typer.echo(f"{len(mine)} of the phase's {there} functions are yours, the others the project's\n")
    verdict = judge_checkpoint(workspace, chosen)
    _show_verdict(verdict, workspace, None)
    if not verdict.passed:
        raise typer.Exit(1)
    entry = workspace.record.of(f"checkpoint {chosen.number}")
    if len(mine) == there:
        entry.state, entry.on = "passed", _today()
        workspace.save()
    else:
        typer.echo("reached; it counts as yours once all of the phase's functions are")


def pause() -> None:
    """Between two looks at a file."""
    time.sleep(LOOK_EVERY)


def _grade(workspace: Workspace, task: Task, quiet: bool = False) -> Verdict:
    """Grade, show and remember. After a pass the current task is the next one."""
    if not quiet:
        typer.echo(f"{task.id} {task.title}\n{_place(workspace, task)}: {task.function}")
    graded = _digest(workspace, task)
    verdict = judge(workspace, task)
    workspace.record = record_file.load(workspace.folder / record_file.NAME)  # others may have written meanwhile
    entry = workspace.record.of(task.id)
    workspace.record.current = task.id
    changed = _digest(workspace, task) != graded
    if verdict.passed and not changed and graded is not None:
        if entry.state != "passed" or entry.digest != graded:
            entry.state, entry.on, entry.digest = "passed", _today(), graded
    elif not verdict.passed and not verdict.stub and (entry.state == "skipped" or entry.digest == graded):
        entry.state, entry.on, entry.digest = "", "", ""  # taken up again, or something around it does not hold
    if not quiet:
        _show_verdict(verdict, workspace, task)
    following = _next(workspace, task) if verdict.passed and not changed else None
    workspace.save()
    if verdict.passed and not quiet:
        if changed:
            typer.echo("the function was saved anew while it was graded: groundup learn check grades what is there now")
        else:
            _after_pass(workspace, task, following)
    return verdict


def _digest(workspace: Workspace, task: Task) -> str | None:
    """Of the task's function as it is now; None where it cannot be found."""
    try:
        return record_file.digest(workspace.function(task))
    except ValueError:
        return None


def _found() -> Path:
    """The course folder that other commands would take, else one to be made here."""
    try:
        return locate(None, course()).folder
    except ValueError:
        return Path(os.environ.get(VARIABLE) or DEFAULT)


def _after_pass(workspace: Workspace, task: Task, following: Task | None) -> None:
    phase = course().phase_of(task)
    if all(workspace.passed(each) for week in phase.weeks for each in week.tasks):
        typer.echo(f"That was the last of the phase: groundup learn checkpoint {phase.number}")
    if following is None:
        typer.echo("Every task has passed or was skipped.")
    else:
        typer.echo(f"next: {following.id} {following.title}\n      {_place(workspace, following)}")


def _show_verdict(verdict: Verdict, workspace: Workspace, task: Task | None) -> None:
    console = _console()

    def say(*parts: str | tuple[str, str]) -> None:
        console.print(Text.assemble(*parts), soft_wrap=True)

    if verdict.stub:
        say(("not written yet", "yellow"), f"; groundup learn hint {task.id if task else ''} helps")
        return
    width = max([11, *(len(name) + 2 for name, _ in verdict.passed_checks)])
    for name, count in verdict.passed_checks:
        say(
            "  ", (f"{'ok':<8}", "green"), f"{name:<{width}}", (f"{count} comparison{'' if count == 1 else 's'}", "dim")
        )
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


def _where(workspace: Workspace) -> None:
    """The current week's tasks, and what to do now."""
    _show_status(workspace, course(), False)
    current = _task(workspace, None)
    typer.echo(f"\nnow: {current.id} {current.title}\n     {_place(workspace, current)}: {current.function}")
    typer.echo("     write it, then: groundup learn check")


def _show_status(workspace: Workspace, all_of: Course, every: bool) -> None:
    console = _console()
    current = _task(workspace, None)
    states = {task.id: _state(workspace, task) for task in all_of.tasks}
    for phase in all_of.phases:
        tasks = [task for week in phase.weeks for task in week.tasks]
        console.print(Text.assemble((f"{phase.number} {phase.title}", "bold"), f"  {_count(tasks, states)}"))
        if not every and current not in tasks:
            continue
        for week in phase.weeks:
            hours = f"{week.hours[0]} to {week.hours[1]} hours"
            console.print(
                f"  week {week.number}: {week.title}  ({hours})  {_count(list(week.tasks), states)}", soft_wrap=True
            )
            if every or current in week.tasks:
                for task in week.tasks:
                    _show_task(console, task, states[task.id], task == current)
        _show_checkpoint(console, workspace, phase)


def _show_task(console: Console, task: Task, state: str, current: bool) -> None:
    colour = {"passed": "green", "skipped": "dim"}.get(state.partition(",")[0], "yellow" if state else "")
    mark = ">" if current else " "
    line = Text.assemble(f"  {mark} {task.id:<5}", f"{task.title:<62}", (state, colour))
    console.print(line, soft_wrap=True)


def _show_checkpoint(console: Console, workspace: Workspace, phase: Phase) -> None:
    entry = workspace.record.of(f"checkpoint {phase.number}")
    reached = f"reached {entry.on}" if entry.state == "passed" else ""
    console.print(f"    checkpoint: {phase.checkpoint}  {reached}", soft_wrap=True)


def _state(workspace: Workspace, task: Task) -> str:
    """In words: what has become of a task."""
    entry = workspace.record.of(task.id)
    if entry.state == "passed":
        if not workspace.passed(task):
            return "changed since it passed"
        helped = [f"{entry.hints} hint{'' if entry.hints == 1 else 's'}"] if entry.hints else []
        return ", ".join(["passed", *helped, *(["solution seen"] if entry.revealed else [])])
    if entry.state == "skipped":
        return "skipped"
    return "begun" if _begun(workspace, task) else ""


def _begun(workspace: Workspace, task: Task) -> bool:
    """Whether there is something to grade, which may be a file that cannot be read any more."""
    try:
        return not workspace.is_stub(task)
    except ValueError:
        return True


def _count(tasks: list[Task], states: dict[str, str]) -> str:
    passed = sum(states[task.id].startswith("passed") for task in tasks)
    skipped = sum(states[task.id] == "skipped" for task in tasks)
    return f"{passed} of {len(tasks)}" + (f", {skipped} skipped" if skipped else "")


def _task(workspace: Workspace, name: str | None) -> Task:
    """The task of that name; without one the current, or the first where what stands there is no task (any more)."""
    if name is not None:
        return course().task(name)
    known = {task.id: task for task in course().tasks}
    return known.get(workspace.record.current, course().tasks[0])


def _next(workspace: Workspace, after: Task, itself: bool = False) -> Task | None:
    """The next task in order, round to the first, that has neither passed nor been skipped; it becomes the current.

    itself: whether it may be the task `after`
    """
    tasks = course().tasks
    place = tasks.index(after) + (0 if itself else 1)
    for task in [*tasks[place:], *tasks[:place]]:
        if (itself or task != after) and not workspace.passed(task) and workspace.record.of(task.id).state != "skipped":
            workspace.record.current = task.id
            workspace.save()
            return task
    return None


def _place(workspace: Workspace, task: Task) -> str:
    """file:line of the task's function, as an editor opens it."""
    path = workspace.folder / task.file
    try:
        line = find(workspace.text(task.file), task.function, task.file).first
    except ValueError:  # gone or unreadable: grading says so
        return _relative(path)
    return f"{_relative(path)}:{line}"


def _relative(path: Path) -> str:
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder that the shell stands in was deleted
        return str(path)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _coloured(lines: list[str]) -> Text:
    colours = {"+": "green", "-": "red", "@": "dim"}
    return Text("\n").join([Text(line, colours.get(line[:1], "")) for line in lines])


def _console() -> Console:
    return Console(highlight=False)


def _today() -> str:
    return datetime.date.today().isoformat()
