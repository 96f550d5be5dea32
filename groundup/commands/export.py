"""`groundup export`: a trained network as an ONNX file, proven equal by another runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shared.machine.results import as_json
from shared.terminal import say


def export(
    run: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="A run's folder, or one checkpoint of it.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="FILE.onnx", help="The file to write.", show_default=False)],
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of the data set, for its test images.", show_default="as in training"),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Weights and activations of eight bits, as pairs of Q/DQ nodes.")
    ] = False,
    calibrate: Annotated[
        int | None,
        typer.Option(help="With --int8: training images that decide about the scales.", show_default="200"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of text.")] = False,
) -> None:
    """Write a trained network as an ONNX file.

    The file takes pixels from 0 to 1 and gives logits. ONNX Runtime computes test images by it before it is written; if
    its answers differ by more than rounding explains, there is no file and the exit code is 1.

    \b
    Examples:
      groundup export runs/stage2_numpy --out digits.onnx
      groundup export runs/fashion/best.safetensors --out clothes.onnx --json
      groundup export runs/stage2_numpy --out digits-int8.onnx --int8
    """
    from groundup import export as exporting  # here, as groundup/cli.py says

    if calibrate is not None and not int8:
        raise ValueError("--calibrate belongs to --int8")
    try:
        document = exporting.export(run, out, data_dir, int8, calibrate)
    except exporting.DifferentAnswers as error:
        say(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    say(as_json(document).rstrip() if json else "\n".join(exporting.lines(document)))
