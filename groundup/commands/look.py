"""`groundup look`: look inside a network that `groundup train` trained, whichever stage trained it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from shared.machine.results import as_json
from shared.terminal import attempt, say


def look(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN_DIR", help="A run's folder, or one checkpoint of it.", show_default=False),
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option(
            help="Draw the layers of a known network, like lenet5, or of a run, by its folder; --out saves a figure."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the page.", show_default="RUN_DIR/look")] = None,
    png: Annotated[bool, typer.Option("--png", help="Save each figure as PNG and SVG, light and dark.")] = False,
    count: Annotated[int, typer.Option(help="How many of the network's mistakes to show.")] = 12,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the IDX files of a full data set.", show_default="as in training")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of text.")] = False,
) -> None:
    """Look inside a trained network.

    It shows weights as images, the classes that the network confuses, its surest mistakes, and dead units. For a
    convolutional network it also shows the filters of its first layer, each layer's output for one image, and where its
    last maps speak for the answer (Grad-CAM).

    All figures are on one page, look.html. RUN_DIR is the folder that `groundup train` wrote. The command takes its
    last checkpoint, unless you name best.safetensors.

    \b
    Examples:
      groundup look runs/stage2_numpy
      groundup look runs/stage2_numpy/best.safetensors --png --out figures --count 24
      groundup look --architecture lenet5
      groundup look --architecture runs/stage3_c --out figures
    """
    if (run is None) == (architecture is None):
        raise ValueError(
            "look: name the folder of a run, or --architecture and a network like lenet5 or a run; one of the two"
        )
    if architecture is not None:
        _draw(architecture, out, json)
        return
    assert run is not None
    from groundup import look as looking  # here, as groundup/cli.py says

    if count < 1:
        raise ValueError(f"--count: expected at least 1, got {count}")
    document, findings = looking.look(run, out, count, data_dir, png)
    say(as_json(document).rstrip() if json else "\n".join(looking.lines(document, findings)))


def _draw(name: str, out: Path | None, json: bool) -> None:
    from groundup.run_architecture import NetworkForm, of_run  # here, as groundup/cli.py says
    from shared.architectures import NAMED, named
    from shared.charts.figures.architecture import TITLES, drawing

    if name in NAMED:
        form = NetworkForm(named(name), TITLES[name])
    elif Path(name).exists():
        form = of_run(Path(name))
    else:
        raise ValueError(
            f"unknown architecture {name!r}; choose one of {', '.join(NAMED)}, or name the folder of a run"
        )
    say(as_json(form.architecture.to_json()).rstrip() if json else form.as_text())
    if out is not None:
        from shared.charts.drawing.save import save

        stem = name if name in NAMED else "architecture"
        figure = partial(drawing, form.architecture, form.title, form.seconds, form.measured)
        files = attempt(f"the figure {stem} was not drawn", lambda: save(figure().figure, out / stem, dark=True))
        if files and not json:
            say(f"figure in {out}: {', '.join(path.name for path in files)}")
