"""`groundup doctor`: the report of shared.doctor, on the screen or as JSON."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from shared.doctor import Diagnosis, diagnose
from shared.results import as_json

# The word stands beside the colour, for screens and eyes without it.
MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "bold red")}


def doctor(
    as_json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what this machine has, what will run on it, and the command that mends what will not.

    Exit code: 0 when the main job, groundup race, will run; 1 when it will not.

    \b
    Examples:
      groundup doctor
      groundup doctor --json > machine.json
    """
    diagnosis = diagnose()
    if as_json_:
        typer.echo(as_json(diagnosis.as_dict()), nl=False)
    else:
        _show(diagnosis)
    if not diagnosis.ok:
        raise typer.Exit(1)


def _show(diagnosis: Diagnosis) -> None:
    console = Console()
    width = max(len(finding.about) for finding in diagnosis.findings)
    for finding in diagnosis.findings:
        mark, colour = MARKS[finding.status]
        line = Text.assemble((f"{mark:<8}", colour), f"{finding.about:<{width}}  ", finding.text)
        console.print(line, soft_wrap=True)
        if finding.fix:
            console.print(Text.assemble(f"{'':<8}{'':<{width}}  fix: ", (finding.fix, "bold")), soft_wrap=True)
    console.print()
    if diagnosis.ok:
        console.print("What will run here:")
        for command in diagnosis.runs:
            console.print(Text(f"  {command}"), soft_wrap=True)
    else:
        console.print("The main job, groundup race, will not run here before the problems above are mended.")
