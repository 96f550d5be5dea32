"""`groundup doctor`: the report of groundup.doctor, on the screen or as JSON."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from groundup.doctor import Diagnosis, diagnose
from groundup.doctor.report import FIX, lines, outcome
from shared.machine.results import as_json
from shared.terminal import TextConsole, say

COLOURS = {"ok": "green", "note": "yellow", "problem": "bold red"}
"""The colour of each status; the word is printed, too, because not every screen and reader shows colours."""


def doctor(
    as_json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what this machine has, and what is missing.

    It lists which parts of groundup run here, and the commands that mend the others.

    A fix of several commands has a line for each, to be run in that order. If groundup itself does not start, because
    a package is missing, python -m groundup.doctor prints the same.

    Exit code: 0 when the main job, groundup race, will run; 1 when it will not.

    \b
    Examples:
      groundup doctor
      groundup doctor --json > machine.json
    """
    diagnosis = diagnose()
    if as_json_:
        say(as_json(diagnosis.as_dict()), nl=False)
    else:
        _show(diagnosis)
    if not diagnosis.ok:
        raise typer.Exit(1)


def _show(diagnosis: Diagnosis) -> None:
    console = TextConsole()
    width = max(len(about) for _, about, _ in lines(diagnosis))
    for status, about, text in lines(diagnosis):
        if status == "fix":
            line = Text.assemble(f"{'':<8}{'':<{width}}  {FIX}", (text, "bold"))
        else:
            line = Text.assemble((f"{status:<8}", COLOURS[status]), f"{about:<{width}}  ", text)
        console.print(line, soft_wrap=True)
    console.print()
    for each in outcome(diagnosis):
        console.print(Text(each), soft_wrap=True)
