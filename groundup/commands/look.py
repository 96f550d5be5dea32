"""`groundup look`: look inside a network that `groundup train` trained, whichever stage trained it."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer


def look(
    run: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="A run's folder, or one checkpoint of it.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the figures.", show_default="RUN_DIR/look")] = None,
    count: Annotated[int, typer.Option(help="How many of its mistakes to show.")] = 12,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the IDX files of a full data set.", show_default="as in training")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of text.")] = False,
) -> None:
    """Look inside a trained network: weights as images, what it confuses, where it is sure and wrong, dead units.

    The figures are saved as PNG and SVG, light and dark. RUN_DIR is the folder that `groundup train` wrote; of its
    checkpoints the last is looked into, unless you name best.safetensors.

    \b
    Examples:
      groundup look runs/stage2_numpy
      groundup look runs/stage2_numpy/best.safetensors --out figures --count 24
    """
    from groundup import look as looking  # here, as groundup/cli.py says

    if count < 1:
        raise ValueError(f"--count: expected at least 1, got {count}")
    document, found = looking.look(run, out, count, data_dir)
    typer.echo(json_module.dumps(document, indent=2) if json else "\n".join(looking.lines(document, found)))
