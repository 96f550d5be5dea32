"""`groundup run`: run a program that says `from numba import cuda` on the emulator."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from shared.countdown import Countdown


class Command(TyperCommand):
    """A command whose options end where the program begins: the words after it are the program's own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Mark the program's first word."""
        from cuda_emulator.inspection import separated

        return super().parse_args(ctx, separated(args))


def run(
    program: Annotated[list[str], typer.Argument(help="SCRIPT.py, -m MODULE, -c CODE, or - ; and its own arguments.")],
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
    wrap: Annotated[
        bool, typer.Option("--wrap", help="Negative indices are meant to count from the end: --check is content.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(help="How many cores a kernel may use; 1 runs its blocks in order. Default: all.")
    ] = None,
) -> None:
    """Run a program with CUDA kernels in Python on the CPU.

    In the program, and in the processes that it starts, `from numba import cuda` gives the emulator. The program runs
    as python would run it: as __main__, with its arguments in sys.argv. Exit code: the program's own; 1 with the
    traceback if it raises; 2 with a message if a kernel is wrong, or if Ctrl-C ended it.

    \b
    Examples:
      groundup run kernels.py
      groundup run --check kernels.py --size 512
      groundup run --threads 1 --source kernels.py
      groundup run -m pytest tests
    """
    # Imported here, because the emulator's imports take longer than most commands.
    from cuda_emulator import inspection

    settings = inspection.settings_for(check, step, source, unchecked, wrap, threads)
    try:
        with Countdown() as line:
            code = inspection.run(inspection.program_from(program), settings, line.show)
    except KeyboardInterrupt:
        raise typer.Abort() from None
    if code:
        raise typer.Exit(code)


COMMAND_CLASS = Command
