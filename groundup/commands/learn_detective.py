"""The commands of the detective exercises, `groundup learn answer` and `groundup learn cases`, and what they print."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from groundup.commands.learn_output import place_of, show_text
from groundup.course.faults import KINDS
from groundup.course.learner.learners_folder import locate
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course
from groundup.course.rules.detecting import Answered
from groundup.course.rules.detecting import answer as judge_answer
from groundup.course.rules.states import state
from shared.machine.results import as_json
from shared.terminal import say

KINDS_HELP = "\n".join(
    textwrap.fill(f"  {name:<18} {meaning}", 78, subsequent_indent=" " * 21) for name, meaning in KINDS.items()
)


def add_commands(app: typer.Typer) -> None:
    """Add both commands to `groundup learn`."""
    app.command(epilog=f"\b\nThe kinds of fault:\n{KINDS_HELP}")(answer)
    app.command()(cases)


def answer(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="A detective exercise, such as 9.d.", show_default=False)],
    line: Annotated[
        str,
        typer.Argument(
            help="The line of the fault in your file; if something is missing between two lines, either of them, or "
            "both, such as 31-32.",
            show_default=False,
        ),
    ],
    kind: Annotated[list[str], typer.Argument(help="The kind of the fault; see below.", show_default=False)],
) -> None:
    """Name the line and the kind of a detective exercise's fault.

    Then mend it, and have it graded.

    Exit code: 0 when both are right, 1 when one is not.

    \b
    Examples:
      groundup learn answer 9.d 31 bank-conflicts
      groundup learn answer 9.d 31-32 wrong reduction
    """
    workspace = locate(context.obj, course())
    case = course().case(task)
    answered = judge_answer(workspace, case, line, " ".join(kind))
    show_answered(workspace, case, answered)
    if not answered.right:
        raise typer.Exit(1)


def cases(
    context: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the state of every case as JSON.")] = False,
) -> None:
    """List the detective exercises.

    They are programs with one fault each, which you find, name and mend. They stand beside the tasks of the weeks: no
    task and no checkpoint needs them.

    \b
    Examples:
      groundup learn cases
    """
    workspace = locate(context.obj, course())
    states = {case.id: state(workspace, case) for case in course().cases}
    if as_json_:
        say(as_json({"schema": 1, "kind": "groundup learn cases", "cases": states}), nl=False)
        return
    for case in course().cases:
        say(f"  {case.id:<5} {case.title:<50} {case.file:<40} {states[case.id]}".rstrip())
    say("\nOpen a file: its first lines say what the program should do, and which command shows what goes wrong.")
    say("Found it? groundup learn answer TASK LINE KIND. Mended it? groundup learn check TASK.")


def show_answered(workspace: Workspace, case: Task, answered: Answered) -> None:
    """What is right in an answer and what is not, and what to do next."""
    assert case.fault is not None
    first, last = answered.lines
    where = f"line {first}" if first == last else f"lines {first} and {last}"
    shown = f": {answered.source}" if answered.source else ""
    if answered.right:
        say(f"{case.id}: right, {where}, {answered.kind}{shown}\n")
        because = " ".join(case.fault.because.split())
        show_text(because[0].upper() + because[1:])
        if answered.passed:
            say(f"\nYou have mended it already: {case.id} has passed.")
        else:
            say(f"\nNow mend it: {place_of(workspace, case)}\nthen: groundup learn check {case.id}")
        return
    say(f"{case.id}: the line is {'right' if answered.line_right else 'not right'}{shown}")
    say(f"{' ' * len(case.id)}  the kind is {'right' if answered.kind_right else 'not right'}: {answered.kind}")
    for sentence in answered.help:
        show_text(sentence)
    if not answered.kind_right:
        show_text(f"{answered.kind} means that {KINDS[answered.kind]}.")
        say("All kinds and what they mean: groundup learn answer --help")
    say(f"A hint: groundup learn hint {case.id}")
