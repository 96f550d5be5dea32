"""`groundup lens`: trace one kernel or two on the emulator, and show a report, a page or JSON."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from cuda_emulator import KernelError
from groundup.kernels.launches import Launch
from groundup.lens import page, terminal
from groundup.lens.devices import DEFAULT
from groundup.lens.devices import device as device_named
from groundup.lens.findings import findings
from groundup.lens.profile import Profile
from groundup.lens.profiling import profile
from groundup.lens.targets import Wanted, launch_of
from groundup.scripts import ScriptFailed, with_lines_as_notes
from shared.machine.results import as_json
from shared.terminal import TextConsole

BACKEND = "GROUNDUP_CUDA"


def run_lens(
    targets: Sequence[str],
    wanted: Wanted,
    blocks: int | Sequence[int] | None = None,
    device: str = DEFAULT,
    html: Path | None = None,
    json: bool = False,
    source: bool = False,
) -> None:
    """Trace the targets and show their profiles. Exits with code 1 if a race, an uninitialised read or a fault was
    found.

    blocks: the argument of profile(); html: the file for the page; json: print JSON in place of the report
    source: print the generated source only, and trace nothing
    Raises ValueError for a wrong option or target, FileNotFoundError for a missing script.
    """
    device_named(device)  # an unknown name is reported before anything is compiled
    with emulator_for_stage_4():
        try:
            launches = [launch_of(target, wanted) for target in targets]
        except ScriptFailed as failed:
            failed.print_traceback()
            raise typer.Exit(1) from None
        if source:
            for launch in launches:
                typer.echo(f"# {launch.name}\n{launch.kernel.emulated_source(*launch.arguments)}")
            return
        profiles = [_profiled(launch, blocks, device) for launch in launches]
    show(profiles, html, json)


def show(profiles: Sequence[Profile], html: Path | None = None, json: bool = False) -> None:
    """Print the profiles, and write the page if there is to be one. The arguments and exit codes are run_lens's."""
    if json:
        typer.echo(as_json({"profiles": [_document(each) for each in profiles]}), nl=False)
    else:
        _show(profiles)
    if html is not None:
        page.write(profiles, html)
        typer.echo(f"the page is in {html}", err=True)
    if not all(each.correct for each in profiles):
        raise typer.Exit(1)


def _profiled(launch: Launch, blocks: int | Sequence[int] | None, device: str) -> Profile:
    console = TextConsole(stderr=True)
    with console.status(f"tracing {launch.name}"):  # an animated line on a terminal, nothing elsewhere
        found: Profile = profile(
            launch.kernel,
            launch.grid,
            launch.block,
            *launch.arguments,
            sharedmem=launch.sharedmem,
            blocks=blocks,
            device=device,
        )
    found.kernel = launch.name  # "tiled_16" is clearer than the name of its function, "multiply"
    return found


def _show(profiles: Sequence[Profile]) -> None:
    console = TextConsole()
    for number, each in enumerate(profiles):
        if number:
            console.rule()
        console.print(terminal.report(each), crop=False)
    if len(profiles) == 2:
        console.rule()
        console.print(terminal.comparison(*profiles), crop=False)


def _document(found: Profile) -> dict[str, Any]:
    """The profile as a dictionary, with the values of its properties."""
    return asdict(found) | {
        "scale": found.scale,
        "flops": found.flops,
        "global_bytes": found.traffic("global"),
        "intensity": found.intensity,
        "correct": found.correct,
        "findings": [asdict(each) for each in findings(found)],
    }


@contextlib.contextmanager
def emulator_for_stage_4() -> Iterator[None]:
    """Select the emulator for stage 4's kernels, even with a GPU; stage 4 reads the choice at its import."""
    before = os.environ.get(BACKEND)
    os.environ[BACKEND] = "emulator"
    try:
        yield
    except KernelError as error:
        raise with_lines_as_notes(error) from error
    finally:
        if before is None:
            del os.environ[BACKEND]
        else:
            os.environ[BACKEND] = before


def sizes(text: str) -> tuple[int, int, int]:
    """(m, n, k) from "512", "512,256" (k = n) or "512,256,128". Raises ValueError for any other text."""
    numbers = _numbers("size", text)
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise ValueError(
            f"size: expected one to three whole numbers of at least 1, like 512 or 512,256,128, got {text!r}"
        )
    m, n, k = (*numbers, *[numbers[-1]] * (3 - len(numbers)))
    return m, n, k


def extent(name: str, text: str) -> tuple[int, ...]:
    """A grid or block from "4" or "4,4"; () for "". Raises ValueError with its name for any other text."""
    numbers = _numbers(name, text) if text else ()
    if len(numbers) > 3 or any(number < 1 for number in numbers):
        raise ValueError(f"{name}: expected one to three whole numbers of at least 1, like 4 or 4,4, got {text!r}")
    return numbers


def blocks_to_trace(text: str) -> int | list[int] | None:
    """A number of blocks from "8", their numbers from "0,5" or "5,", None from "". Raises ValueError for others."""
    if not text:
        return None
    numbers = _numbers("blocks", text)
    return list(numbers) if "," in text else numbers[0]


def _numbers(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(" ", "").rstrip(",").split(","))
    except ValueError:
        raise ValueError(f"{name}: expected whole numbers with commas between, got {text!r}") from None
