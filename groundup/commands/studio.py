"""`groundup studio`: what is better seen than read, in a browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from shared.machine.software import extra

NEEDED = ("starlette", "uvicorn", "plotly", "mdit_py_plugins", "latex2mathml")
INSTALL = extra("web")


def missing() -> list[str]:
    """The packages of the extra web that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def studio(
    page: Annotated[
        str,
        typer.Argument(
            help="playground, digits, convolution, race, runs, floors, kernel, course or benchmarks.",
            show_default="overview",
        ),
    ] = "",
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Results files, run folders or scripts that the page may open."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port on 127.0.0.1.", show_default="8484 or the next free")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write the page as one file that needs no server; not every page can."),
    ] = None,
    walk: Annotated[
        str | None, typer.Option(help="With --export: which walk of the page kernel.", show_default="tiles")
    ] = None,
) -> None:
    """Open the studio in the browser.

    There you can train and watch, draw digits, walk through kernels and follow runs. It runs on this machine and
    answers this machine only. Runs are read from ./runs.

    \b
    Examples:
      groundup studio
      groundup studio digits
      groundup studio runs --port 9000 --no-browser
      groundup studio benchmarks runs/bench/results.json
      groundup studio digits --export digits.html
      groundup studio digits runs/stage2_numpy --export digits.html
      groundup studio race runs/race --export race.html
    """
    from groundup.studio.frame import page_named  # here, as groundup/cli.py says

    if page:
        page_named(page)
    if export is not None:
        _export(page, files or [], export, walk)
        return
    if walk is not None:
        raise ValueError("studio: --walk goes with --export")
    if missing():
        raise ValueError(f"studio: not installed: {', '.join(missing())}; install the extra web: {INSTALL}")
    for path in files or []:
        if not path.exists():
            raise FileNotFoundError(f"studio: there is no {path}")
    if port is not None and not 0 <= port <= 65535:
        raise ValueError(f"studio: --port: expected 0 to 65535, got {port}")
    from groundup.studio.server import serve  # here, as groundup/cli.py says
    from shared.machine.regular import real

    serve(page, Path.cwd(), [real(path) for path in files or []], port, not no_browser, typer.echo)


def _export(page: str, paths: list[Path], target: Path, walk: str | None) -> None:
    """Write a page as one file. This works without the extra web."""
    from groundup.studio.export import export as write  # here, as groundup/cli.py says

    if not page:
        raise ValueError("studio: --export: name the page, such as groundup studio digits --export digits.html")
    if walk is not None and page != "kernel":
        raise ValueError(f"studio: --walk belongs to the page kernel, not to {page}")
    if len(paths) > (page in ("digits", "convolution", "race")):
        raise ValueError(
            f"studio: --export: {paths[-1]} is too much; digits, convolution and race take one, the folder of a run"
        )
    options: dict[str, Any] = {"run": paths[0]} if paths else {"walk": walk} if walk else {}
    write(page, target, options)
    typer.echo(f"{target}: {target.stat().st_size:,} bytes; open it in a browser")
