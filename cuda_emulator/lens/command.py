"""The command `lens`: trace one kernel or two on the emulator, and show a report, a page or JSON."""

from __future__ import annotations

import json as json_module
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..launches import Launch
from ..scripts import ScriptFailed
from . import page
from .devices import DEFAULT
from .devices import device as device_named
from .findings import findings
from .profile import Profile
from .profiling import profile
from .targets import Wanted, launch_of


def lens(
    targets: Sequence[str],
    launch: int = 1,
    args: str | None = None,
    grid: str = "",
    block: str = "",
    sharedmem: int = 0,
    blocks: str = "",
    device: str = DEFAULT,
    html: Path | None = None,
    json: bool = False,
    source: bool = False,
    size: str = "256",
    dtype: str = "float32",
    script_arguments: Sequence[str] = (),
) -> int:
    """The command, with its options as a command line has them. Returns run_lens's exit code, raises what it raises."""
    if args is None and (grid or block or sharedmem):
        raise ValueError(f"{'--grid' if grid else '--block' if block else '--sharedmem'} belongs to --args")
    wanted = Wanted(
        size=sizes(size),
        dtype=dtype,
        number=launch,
        args=args,
        grid=extent("grid", grid),
        block=extent("block", block),
        sharedmem=sharedmem,
        script_arguments=tuple(script_arguments),
    )
    return run_lens(targets, wanted, blocks_to_trace(blocks), device, html, json, source)


def run_lens(
    targets: Sequence[str],
    wanted: Wanted,
    blocks: int | Sequence[int] | None = None,
    device: str = DEFAULT,
    html: Path | None = None,
    json: bool = False,
    source: bool = False,
) -> int:
    """Trace the targets and show their profiles. Returns the exit code: 1 if a race, an uninitialised read or a fault
    was found, or a script raised an exception.

    blocks: the argument of profile(); html: the file for the page; json: print JSON in place of the report
    source: print the generated source only, and trace nothing
    Raises ValueError for a wrong option or target, FileNotFoundError for a missing script.
    """
    device_named(device)  # an unknown name is reported before anything is compiled
    try:
        launches = [launch_of(target, wanted) for target in targets]
    except ScriptFailed as failed:
        failed.print_traceback()
        return 1
    if source:
        for launch in launches:
            print(f"# {launch.name}\n{launch.kernel.emulated_source(*launch.arguments)}")
        return 0
    return show([_profiled(launch, blocks, device) for launch in launches], html, json)


def show(profiles: Sequence[Profile], html: Path | None = None, json: bool = False) -> int:
    """Print the profiles, and write the page if there is to be one. The arguments and exit codes are run_lens's."""
    if json:
        print(as_json({"profiles": [_document(each) for each in profiles]}))
    else:
        _show(profiles)
    if html is not None:
        page.write(profiles, html)
        print(f"the page is in {html}", file=sys.stderr)
    return 0 if all(each.correct for each in profiles) else 1


def _profiled(launch: Launch, blocks: int | Sequence[int] | None, device: str) -> Profile:
    from ..words.console import TextConsole

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
    from ..words.console import TextConsole  # with the terminal's views: they need rich
    from . import terminal

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


def as_json(document: Mapping[str, Any]) -> str:
    """The document as JSON text. JSON has no NaN and no infinity, so those become the strings "nan", "inf", "-inf"."""
    return json_module.dumps(_plain(document), indent=2, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return _plain(value.tolist())
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


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
