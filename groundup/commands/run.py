"""`groundup run`: run a script that says `from numba import cuda` on the emulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shared.countdown import Countdown
from shared.terminal import say

#: Arguments after the script's name belong to the script, even if they look like options of groundup.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}


def run(
    script: Annotated[Path, typer.Argument(help="The Python script.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The script's own arguments and options.", show_default=False)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Find races and reads of unwritten memory; compare several orders.")
    ] = False,
    step: Annotated[
        bool, typer.Option("--step", help="Run kernels line by line in Python, slowly: print and pdb work.")
    ] = False,
    source: Annotated[
        bool, typer.Option("--source", help="Print the Python source that each kernel is compiled from.")
    ] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="No bounds checks: a wrong index may end the process.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(help="How many cores a kernel may use; 1 runs its blocks in order. Default: all.")
    ] = None,
) -> None:
    """Run a script with CUDA kernels in Python on the CPU.

    In the script, `from numba import cuda` gives the emulator. The script runs as python would run it: as __main__,
    with its arguments in sys.argv and its folder first in sys.path. Exit code: the script's own; 1 with the traceback
    if the script raises; 2 with a message if a kernel is wrong, or if Ctrl-C ended it.

    \b
    Examples:
      groundup run kernels.py
      groundup run --check kernels.py --size 512
      groundup run --threads 1 --source kernels.py
    """
    # Imported here, because the emulator's imports take longer than most commands.
    import cuda_emulator as emulator
    from cuda_emulator.inspection import ScriptFailed, check_report, require_script, run_script, with_lines_as_notes

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

    def told() -> None:
        if settings.check:
            say(check_report.report(), err=True)

    require_script(script)
    emulator.settings.set_defaults(settings)
    check_report.reset()
    try:
        with Countdown() as line:
            before = emulator.register_progress(line.show)
            try:
                run_script(script, arguments or ())
            finally:
                emulator.register_progress(before)
        told()
    except SystemExit:
        told()
        raise
    except emulator.KernelError as error:
        raise with_lines_as_notes(error) from error
    except KeyboardInterrupt:
        raise typer.Abort() from None
    except ScriptFailed as failed:
        failed.print_traceback()
        raise typer.Exit(1) from None
    finally:
        emulator.settings.set_defaults(None)
