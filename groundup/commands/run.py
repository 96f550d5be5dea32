"""`groundup run`: any script that says `from numba import cuda`, on the emulator."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer

#: What stands after the script's name belongs to the script, also where it looks like an option of ours.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}


def run(
    script: Annotated[Path, typer.Argument(help="The Python script.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The script's own arguments and options.", show_default=False)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run each kernel in several orders and compare: finds races.")
    ] = False,
    step: Annotated[
        bool, typer.Option("--step", help="Run kernels line by line in Python, slowly: print and pdb work.")
    ] = False,
    source: Annotated[bool, typer.Option("--source", help="Print what each kernel is compiled from.")] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="No bounds checks: a wrong index may end the process.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(help="How many cores a kernel may use; 1 runs its blocks in order. Default: all.")
    ] = None,
) -> None:
    """Run a script with CUDA kernels in Python on the CPU: `from numba import cuda` gives the emulator.

    The script runs as python would run it: as __main__, with its arguments in sys.argv and its folder first in
    sys.path. Exit code: the script's own; 1 with its traceback where it raises; 2 with what is wrong where a kernel is
    wrong, or Ctrl-C ended it.

    \b
    Examples:
      groundup run kernels.py
      groundup run --check kernels.py --size 512
      groundup run --threads 1 --source kernels.py
    """
    import cuda_emulator as emulator

    chosen = emulator.current()
    settings = emulator.Settings(
        bounds=chosen.bounds and not unchecked,
        check=check or (chosen.check and not step),
        step=step or (chosen.step and not check),
        show_source=chosen.show_source or source,
        threads=threads if threads is not None else chosen.threads,
        divergence=chosen.divergence,
        seed=chosen.seed,
    )
    if script.is_dir():
        raise IsADirectoryError(f"{script} is a folder: name the Python file in it that is to run")
    if not script.is_file():
        raise FileNotFoundError(f"there is no script {script}")
    argv, path = sys.argv, sys.path[:]
    sys.argv = [str(script), *(arguments or ())]
    sys.path.insert(0, str(script.resolve().parent))
    emulator.settings.set_defaults(settings)
    emulator.install()
    try:
        runpy.run_path(str(script), run_name="__main__")
    except emulator.KernelError as error:
        raise _line_by_line(error) from error
    except KeyboardInterrupt:
        raise typer.Abort() from None
    except Exception as error:
        traceback.print_exception(type(error), error, _from_script(error.__traceback__, str(script)))
        raise typer.Exit(1) from None
    finally:
        emulator.uninstall()
        emulator.settings.set_defaults(None)
        sys.argv, sys.path[:] = argv, path


def _line_by_line(error: ValueError) -> ValueError:
    """The same, with what follows its first line (the kernel's line) as notes, which are printed as they are."""
    first, *rest = str(error).splitlines() or [""]
    told = ValueError(first)
    for note in (*rest, *getattr(error, "__notes__", ())):
        told.add_note(note)
    return told


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The traceback without what called the script; None where it ended before its first line."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace
