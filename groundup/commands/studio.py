"""`groundup studio`: what is better seen than read, in a browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

NEEDED = ("starlette", "uvicorn", "plotly")
INSTALL = "python -m pip install 'groundup[web]', or in a checkout: python -m pip install -e '.[web]'"


def missing() -> list[str]:
    """The packages of the extra web that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def studio(
    page: Annotated[
        str,
        typer.Argument(help="playground, digits, runs, floors, kernel, course or benchmarks.", show_default="overview"),
    ] = "",
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Results files, run folders or scripts that the page may open."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port on 127.0.0.1.", show_default="8484 or the next free")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
) -> None:
    """Open the studio in the browser: train and watch, draw digits, walk through kernels, follow runs.

    It runs on this machine and answers this machine only. Runs are read from ./runs.

    \b
    Examples:
      groundup studio
      groundup studio digits
      groundup studio runs --port 9000 --no-browser
      groundup studio benchmarks runs/bench/results.json
    """
    from groundup.studio.frame import page_named  # here, as groundup/cli.py says

    if page:
        page_named(page)
    if missing():
        raise ValueError(f"studio: {', '.join(missing())} is not installed; install the extra web: {INSTALL}")
    for path in paths or []:
        if not path.exists():
            raise FileNotFoundError(f"studio: there is no {path}")
    if port is not None and not 0 <= port <= 65535:
        raise ValueError(f"studio: --port: expected 0 to 65535, got {port}")
    from groundup.studio.server import serve  # here, as groundup/cli.py says

    serve(page, Path.cwd(), [path.resolve() for path in paths or []], port, not no_browser, typer.echo)
