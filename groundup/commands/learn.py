"""`groundup learn`: the course, from the first stub to the last checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from groundup.commands.keyboard import is_interactive
from groundup.commands.learn_detective import add_commands
from groundup.commands.learn_grade import grade as grade_many
from groundup.commands.learn_output import (
    place_of,
    relative,
    show_difference,
    show_graded,
    show_hint,
    show_passing,
    show_status,
    show_task,
    show_verdict,
    show_watched,
    show_where,
)
from groundup.commands.learn_watch import watch as watch_on_terminal
from groundup.course.judging.verdict import Verdict
from groundup.course.learner import record as record_file
from groundup.course.learner.learners_folder import (
    DEFAULT,
    VARIABLE,
    around,
    commit_first,
    folder_for_start,
    has_learners_files,
    locate,
    repair,
)
from groundup.course.learner.learners_folder import start as start_folder
from groundup.course.learner.project_files import CASES
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course
from groundup.course.rules import checkpoints, order, resetting
from groundup.course.rules import style as style_of
from groundup.course.rules.hints import take_hint
from groundup.course.rules.passing import grade, grade_again
from groundup.course.rules.solutions import difference, open_solution
from groundup.course.rules.states import begun, states_of
from groundup.course.rules.watching import watch as watch_files
from shared.machine.results import as_json
from shared.terminal import say

TaskName = Annotated[str | None, typer.Argument(help="Such as 1.2, or a function's name.", show_default="the current")]

TaskNames = Annotated[list[str] | None, typer.Argument(help="As 1.2, or functions' names.", show_default="the current")]
StyleRemark = Annotated[
    bool, typer.Option("--style/--no-style", help=f"One remark on style after a pass; {style_of.VARIABLE}=off, too.")
]

app = typer.Typer(
    name="learn",
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
    """The course: you write the network, your machine grades it.

    Without a command it says where you are, and what is next.

    \b
    Examples:
      groundup learn start          make your folder, with a stub for every exercise
      groundup learn check          grade the task you are at
      groundup learn watch          grade whatever you save
      groundup learn hint           an idea; again: a plan; again: nearly the code
      groundup learn status --all   every task
    """
    context.obj = folder
    if context.invoked_subcommand is None:
        show_where(locate(folder, course()))


@app.command()
def start(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Argument(help="The folder to make.", show_default=DEFAULT)] = None,
) -> None:
    """Make your course folder.

    It has the project's own files, with a stub in the place of every exercise. In a folder that exists already, missing
    files come back; no other file is changed. If its progress.toml is missing or damaged, it is made anew, and your
    functions are graded again.

    \b
    Examples:
      groundup learn start
      groundup learn start ~/my-network
    """
    chosen = folder or context.obj or folder_for_start(course())
    outer = around(chosen, course())
    if outer is not None:
        raise ValueError(f"{chosen} would lie in your course folder, {outer}; name a folder outside of it")
    new = not has_learners_files(chosen, course()) and not (chosen / record_file.NAME).exists()
    repaired = repair(chosen, course())
    had_cases = (chosen / CASES).exists()
    workspace, written = start_folder(chosen, course())
    weeks = course().weeks
    if new:
        git = commit_first(workspace.folder)
        say(f"{workspace.folder}: {len(course().tasks)} tasks in {len(weeks)} weeks{'; ' if git else ''}{git}")
    else:
        whole = had_cases and not repaired and not written
        said = "; nothing was missing" if whole else ""
        say(f"{workspace.folder} is there{'; written: ' + ', '.join(written) if written else said}")
        if not had_cases:
            say(f"new in {CASES}/: {len(course().cases)} detective exercises; groundup learn cases lists them")
    if repaired:
        say(f"{repaired}; what you have written is graded again:")
        grade_again(workspace, show_passing)
    show_where(workspace)


@app.command()
def check(
    context: typer.Context,
    task: TaskNames = None,
    all_: Annotated[bool, typer.Option("--all", help="Grade every task that you have begun.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
    style: StyleRemark = True,
) -> None:
    """Grade a task, or several, and show the first check that fails.

    Exit code: 0 if all graded tasks pass, 1 if one does not.

    \b
    Examples:
      groundup learn check
      groundup learn check 10.2
      groundup learn check --all
    """
    workspace = locate(context.obj, course())
    _set_style(style)
    if all_ and task:
        raise ValueError(f"check: name a task or give --all, not both; got {' '.join(task)} and --all")
    every = [*course().tasks, *course().cases]
    named = [course().task(name) for name in task or []] or [order.chosen_task(workspace, None)]
    chosen = [other for other in every if begun(workspace, other)] if all_ else named
    current = workspace.record.current
    verdicts: dict[str, Verdict] = {}
    for one_task in chosen:
        if verdicts and task and not as_json_:
            say("")
        verdicts[one_task.id] = _graded(workspace, one_task, quiet=as_json_)
    if all_:
        workspace.record.current = current
        workspace.save()
    if as_json_:
        documents = {name: verdict.document() for name, verdict in verdicts.items()}
        say(as_json({"schema": 1, "kind": "groundup learn check", "verdicts": documents}), nl=False)
    elif all_:
        passed = sum(verdict.passed for verdict in verdicts.values())
        say(f"{passed} of {len(chosen)} written tasks pass" if chosen else "no task has been written yet")
    if not all(verdict.passed for verdict in verdicts.values()):
        raise typer.Exit(1)


add_commands(app)
app.command(name="grade")(grade_many)


@app.command()
def watch(
    context: typer.Context,
    task: TaskName = None,
    once: Annotated[bool, typer.Option("--once", help="Grade once and end, as check does.")] = False,
    stay: Annotated[bool, typer.Option("--stay", help="Grade this task alone, and stay with it after a pass.")] = False,
    style: StyleRemark = True,
) -> None:
    """Grade whatever you save.

    It begins with the current task, or the one that you name. Then it grades each exercise that a save has changed, in
    whichever file; after a pass it goes on to the next task.

    On a terminal there are keys for a hint, the next task, the list of all tasks, your editor ($VISUAL or $EDITOR), and
    to quit. Saving again cancels the check that runs. If the output goes into a file or a pipe, there are no keys, and
    Ctrl-C ends it.

    \b
    Examples:
      groundup learn watch
      groundup learn watch 6.4 --stay
    """
    _set_style(style)
    workspace = locate(context.obj, course())
    current = order.chosen_task(workspace, task)
    try:
        if once:
            workspace.text(current.file)  # a file that is missing is an error before anything is shown
            raise typer.Exit(0 if _graded(workspace, current).passed else 1)
        if is_interactive():
            watch_on_terminal(workspace, current, stay)
            say("not watching any more")
            return
        watch_files(
            workspace,
            current,
            grade=lambda chosen: _graded(workspace, chosen),
            unreadable=typer.echo,
            waiting=lambda chosen, line: show_watched(workspace, chosen, line, stay),
            stay=stay,
        )
    except KeyboardInterrupt:
        say("not watching any more")


@app.command()
def hint(
    context: typer.Context,
    task: TaskName = None,
    level: Annotated[
        int | None,
        typer.Option(min=1, max=3, help="1 an idea, 2 a plan, 3 nearly the code.", show_default="the next"),
    ] = None,
) -> None:
    """Help with a task.

    The first time you get an idea, the second time a plan, the third time nearly the code.

    \b
    Examples:
      groundup learn hint
      groundup learn hint 1.2 --level 2
    """
    workspace = locate(context.obj, course())
    chosen = order.chosen_task(workspace, task)
    show_hint(chosen, take_hint(workspace, chosen, level))


@app.command()
def lens(
    context: typer.Context,
    task: TaskName = None,
    device: Annotated[
        str, typer.Option(help="For occupancy and roofline: T4, RTX 3080, RTX 4090, A100 or H100.")
    ] = "H100",
    html: Annotated[Path | None, typer.Option(help="Also write a page with pictures to this file.")] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead.")] = False,
) -> None:
    """Show line by line how your kernel uses memory.

    It shows the launch that the check `memory` looks at, and needs no GPU.

    Exit code: 0; 1 if a race, an uninitialised read or a fault was found; 2 for a mistake.

    \b
    Examples:
      groundup learn lens 9.1
      groundup learn lens 11.3 --html tiled.html
    """
    from cuda_emulator.inspection import show
    from groundup.compiling.emulator_hooks import emulator_for_stage_4
    from groundup.course.learners_lens import look  # here, because only this command traces a kernel in this process

    workspace = locate(context.obj, course())
    with emulator_for_stage_4():
        profile = look(workspace, order.chosen_task(workspace, task), device)
    if show([profile], html, as_json_):
        raise typer.Exit(1)


@app.command()
def debug(context: typer.Context, task: TaskName = None) -> None:
    """Write the call that fails as a script, and say how it runs in a debugger.

    The script lies in the folder debug, and calls your function with the numbers of the check that fails. It stops in
    Python's debugger; in C, in gdb; a kernel runs line by line on the emulator.

    Exit code: 0 if there is a script, 1 if there is no call that fails.

    \b
    Examples:
      groundup learn debug 1.2
    """
    from groundup.course.rules.debugging import debug as write_script

    if (task or "").startswith("checkpoint"):
        raise ValueError("debug: a checkpoint names the function that is wrong; name the task of that function")
    workspace = locate(context.obj, course())
    script, text = write_script(workspace, order.chosen_task(workspace, task))
    if script is None:
        say(text)
        raise typer.Exit(1)
    say(f"the call that fails, as a script:\n\n  {text.replace(str(script.parent), relative(script.parent))}")


@app.command(name="solution")
def show_solution(
    context: typer.Context,
    task: TaskName = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show it before the task has passed.")] = False,
) -> None:
    """Show the project's function beside yours.

    It opens when the task passes, and is printed as the difference from yours.

    \b
    Examples:
      groundup learn solution 1.1
      groundup learn solution 1.2 --reveal
    """
    workspace = locate(context.obj, course())
    chosen = order.chosen_task(workspace, task)
    if not open_solution(workspace, chosen, reveal):
        say(f"{chosen.id} has not passed yet: groundup learn hint {chosen.id} helps, --reveal opens it now")
        raise typer.Exit(1)
    lines = difference(workspace, chosen)
    if lines:
        show_difference(lines)
    else:
        say(f"{chosen.id}: your function is the same as the project's, letter for letter")


@app.command(name="next")
def next_task(context: typer.Context) -> None:
    """Say what to do next.

    That is the first task, from the current one on, that has neither passed nor been skipped.

    \b
    Examples:
      groundup learn next
    """
    workspace = locate(context.obj, course())
    if order.next_task(workspace, order.chosen_task(workspace, None), itself=True) is None:
        say("every task has passed or was skipped: groundup learn status --all shows which")
    else:
        show_where(workspace)


@app.command()
def skip(context: typer.Context, task: TaskName = None) -> None:
    """Leave a task out.

    No other task needs it: each task is graded with the project's functions around it.

    \b
    Examples:
      groundup learn skip
      groundup learn skip 2.3
    """
    workspace = locate(context.obj, course())
    chosen = order.chosen_task(workspace, task)
    if not order.skip(workspace, chosen):
        say(f"{chosen.id} has passed, so there is nothing to skip")
        return
    say(f"{chosen.id} skipped; groundup learn check {chosen.id} takes it up again")
    if order.next_task(workspace, chosen) is not None:
        show_where(workspace)


@app.command()
def reset(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="Such as 1.2, or a function's name.")],
    file: Annotated[
        bool, typer.Option("--file", help="Put back every stub of the task's file, also if the file is damaged.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Bring back what the last reset of the task put away.")] = False,
) -> None:
    """Put a task's stub back.

    Your code is copied to .groundup/old first, and --undo brings it back from there: the function, or the whole file
    where the reset was one of a file. What is in its place then is kept, too: a second --undo brings that back.

    \b
    Examples:
      groundup learn reset 1.2
      groundup learn reset 1.2 --undo
      groundup learn reset 1.2 --file
    """
    workspace = locate(context.obj, course())
    chosen = course().task(task)
    kept = (resetting.undo if undo else resetting.reset)(workspace, chosen, whole_file=file)
    copy = f"; the file as it was: {kept}" if kept else ""
    if undo:
        say(f"{place_of(workspace, chosen)} is as it was before the reset{copy}")
        return
    outcome = ": the program is as it came again" if chosen.fault else " is a stub again"
    say(f"{place_of(workspace, chosen)}{outcome}{copy}")
    if kept:
        say(f"groundup learn reset {chosen.id} --undo brings yours back")


@app.command()
def status(
    context: typer.Context,
    all_: Annotated[bool, typer.Option("--all", help="Every task, not only the current week's.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the state of every task as JSON.")] = False,
) -> None:
    """Show which tasks have passed, week by week.

    A task that was changed after its pass must pass again to count.

    \b
    Examples:
      groundup learn status
      groundup learn status --all
    """
    workspace = locate(context.obj, course())
    if as_json_:
        document = {"schema": 1, "kind": "groundup learn status", "current": workspace.record.current}
        say(as_json({**document, "tasks": states_of(workspace)}), nl=False)
        return
    show_status(workspace, all_)


@app.command()
def checkpoint(
    context: typer.Context,
    phase: Annotated[int | None, typer.Argument(help="Its number.", show_default="the current task's")] = None,
) -> None:
    """Run the checkpoint of a phase.

    In it all your functions that pass work together.

    Exit code: 0 when it is reached, 1 when it is not.

    \b
    Examples:
      groundup learn checkpoint 1
    """
    workspace = locate(context.obj, course())
    chosen = course().phase(phase) if phase is not None else course().phase_of(order.chosen_task(workspace, None))
    own, there = checkpoints.own_functions(workspace, chosen), sum(len(week.tasks) for week in chosen.weeks)
    say(f"checkpoint {chosen.number}: {chosen.checkpoint}")
    say(f"{len(own)} of the phase's {there} functions are yours, the others the project's")
    for task in checkpoints.changed_functions(workspace, chosen):
        say(f"{task.function} was changed after its pass: the project's takes its place until {task.id} passes again")
    say("")
    verdict, counts = checkpoints.grade_checkpoint(workspace, chosen, own)
    show_verdict(verdict, workspace, None)
    if not verdict.passed:
        raise typer.Exit(1)
    if not counts:
        say("reached; it counts as passed when all of the phase's functions are yours")


def _graded(workspace: Workspace, task: Task, quiet: bool = False) -> Verdict:
    """Grade a task, write the result down and show it; with quiet show nothing."""
    if quiet:
        return grade(workspace, task).verdict
    show_task(workspace, task)
    graded = grade(workspace, task)
    show_graded(graded, workspace, task)
    return graded.verdict


def _set_style(wanted: bool) -> None:
    """Turn the remark off, also for the checks that a watch starts as processes of their own."""
    if not wanted:
        os.environ[style_of.VARIABLE] = "off"
