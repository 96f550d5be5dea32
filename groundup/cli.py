"""The `groundup` program: the commands of groundup/commands, and how errors are shown.

Exit codes: 0 success; 1 a check failed (stages disagree, a gradient is wrong, something needed is missing); 2 the
command could not be carried out (wrong input, a missing file, an interruption); 70 a mistake of groundup's own. An
error is one line on stderr, with its notes below (such as the messages of a C compiler). GROUNDUP_TRACEBACK=1 shows
the traceback as well.

Every command starts by importing this file, so it imports little: of the commands only the one that is asked for.
matplotlib takes longer to import than all else together, so what draws imports it where it draws.
"""

import io
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

NEEDED = ("numpy", "numba", "matplotlib", "rich", "pooch", "safetensors")
"""What groundup depends on besides Typer. Looked for at the start: otherwise a command would fail after long work."""

COMMANDS = (
    *("race", "train", "look", "predict", "export", "check", "profile", "charts", "doctor", "run", "lens", "studio"),
    *("serve", "bench", "learn"),
)
"""In the order of the help. Each is a file of groundup/commands, with a function of the same name or a group, `app`."""

try:
    import typer

    from groundup import __version__
    from groundup.course.judging.verdict import told_once
    from groundup.crash import crashed
    from shared.contract import StageUnavailable
    from shared.text import printable

    for name in NEEDED:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
except ModuleNotFoundError as error:  # a package that groundup needs is missing; the doctor works without it
    from groundup.doctor.rescue import rescue

    rescue(error, sys.argv[1:])


def program(arguments: Sequence[str]) -> typer.Typer:
    """The program as far as these arguments need it: with the command that they begin with, or else with all commands.

    The help lists all commands, and a misspelt one is compared with them. But importing all takes far longer than one.
    """
    app = typer.Typer(
        name="groundup",
        help="One neural network built four times, each time closer to the hardware, and proven equal at every step.",
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(groundup)
    if arguments and arguments[0] in COMMANDS:
        asked: Sequence[str] = arguments[:1]
    else:
        asked = () if list(arguments) == ["--version"] else COMMANDS
    for name in asked:
        module = import_module(f"groundup.commands.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name, cls=getattr(module, "COMMAND_CLASS", None))(getattr(module, name))
    return app


def groundup(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    """One neural network built four times, each time closer to the hardware, and proven equal at every step."""
    if version:
        typer.echo(f"groundup {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


INTERRUPTED = 130
"""What some versions of Typer return for Ctrl-C where others raise it."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program and leave through SystemExit with its exit code.

    argv: the arguments after the program's name; sys.argv's where None
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _write_in_any_encoding()
    warnings.formatwarning = _as_note
    app = program(arguments)
    try:
        code = app(args=arguments, prog_name="groundup", standalone_mode=False, obj=arguments)
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted")
    except BrokenPipeError:  # the reader of our output has gone, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
        sys.exit(1)
    except MemoryError as error:
        fail(f"the memory of this machine does not suffice{f': {error}' if str(error) else ''}")
    except (ValueError, OSError, StageUnavailable) as error:
        if os.environ.get("GROUNDUP_TRACEBACK"):
            traceback.print_exc()
        if isinstance(error, FileNotFoundError) and _folder_is_gone():
            fail("the folder that you stand in was deleted; go to another one (cd) and try again")
        notes = getattr(error, "__notes__", ())
        fail(told_once(_sentence(error), notes), notes)
    except Exception as error:
        # Typer's usage errors have this method. Their class belongs to click or to Typer, depending on the version.
        if not hasattr(error, "format_message"):
            crashed(error)
        message = error.format_message().rstrip(".")
        fail(f"{message}{'' if message.endswith('?') else '.'} See: {_reached(error, arguments)} --help")
    if code == INTERRUPTED:
        fail("interrupted")
    sys.exit(code if isinstance(code, int) else 0)


def _as_note(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
    """A warning as Python prints it, but for a DataNote, which is meant for the user: a line without a place."""
    if category.__name__ != "DataNote":  # by its name: its module takes NumPy along
        return FORMAT(message, category, *place, **line)
    return f"note: {printable(str(message))}\n"


FORMAT = warnings.formatwarning


def _sentence(error: Exception) -> str:
    """The text of an error. The system's own, "[Errno 13] Permission denied: 'a/b'", gets its paths in front."""
    paths = (error.filename, error.filename2) if isinstance(error, OSError) else ()
    names = [os.fsdecode(path) for path in paths if path and isinstance(path, str | bytes | os.PathLike)]
    if names and isinstance(error, OSError) and error.strerror:
        return f"{' -> '.join(names)}: {error.strerror}"
    return str(error)


def _write_in_any_encoding() -> None:
    """Let an output whose encoding lacks a character, as ASCII lacks µ, show a question mark in its place."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def _reached(error: Exception, arguments: Sequence[str]) -> str:
    """The command that a usage error is about, such as "groundup bench compare"."""
    path = getattr(getattr(error, "ctx", None), "command_path", "")
    if path:
        return str(path)
    known = [arguments[0]] if arguments and arguments[0] in COMMANDS else []
    return " ".join(["groundup", *known])


def _folder_is_gone() -> bool:
    """Whether this process's working folder no longer exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def fail(message: str, notes: Sequence[str] = ()) -> NoReturn:
    """Print the message as one line on stderr and the notes below it, and exit with code 2."""
    said = [f"error: {' '.join(message.split())}", *notes]
    print(*map(printable, said), sep="\n", file=sys.stderr)
    sys.exit(2)
