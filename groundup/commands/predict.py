"""`groundup predict`: what a trained network sees in a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shared.machine.results import as_json
from shared.terminal import say


def predict(
    run: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="A run's folder, or one checkpoint of it.", show_default=False)
    ],
    pictures: Annotated[
        list[Path], typer.Argument(metavar="IMAGE", help="Pictures: PNG, JPEG, BMP or WebP.", show_default=False)
    ],
    top: Annotated[int, typer.Option(help="How many classes to name, the likeliest first.")] = 3,
    invert: Annotated[
        bool | None,
        typer.Option(
            "--invert/--no-invert",
            help="Make black white, or leave it.",
            show_default="inverted where the picture has light paper and a known set's images have dark",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Write a picture of what speaks for each answer (Grad-CAM).")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of these pictures.", show_default="this one")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of text.")] = False,
) -> None:
    """Ask a trained network what is in a picture.

    A picture is made as the images that the network learned from: of their size, grey or in colour, and inverted where
    ink is dark and theirs was light. The command says what it did. RUN_DIR is the folder that `groundup train` wrote.

    \b
    Examples:
      groundup predict runs/stage2_numpy seven.png
      groundup predict runs/lenet5 seven.png --explain
      groundup predict runs/stage2_numpy/best.safetensors *.png --top 1 --json
    """
    from groundup import predict as predicting  # here, as groundup/cli.py says

    if top < 1:
        raise ValueError(f"--top: expected at least 1, got {top}")
    if out is not None and not explain:
        raise ValueError("predict: --out goes with --explain")
    document = predicting.predict(run, pictures, top, invert, (out or Path()) if explain else None)
    say(as_json(document).rstrip() if json else "\n".join(predicting.lines(document)))
