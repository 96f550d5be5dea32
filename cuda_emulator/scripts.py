"""Run a program with CUDA kernels in this process, on the emulator, as python would run it: a script, a module or code.

The command `run` runs a program for its own sake, `lens` to find the launch of one of its kernels. Child processes of
the program run on the emulator, too.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import runpy
import select
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from .errors import KernelError
from .hooks import extensions, register_progress
from .namespace import install, uninstall
from .runtime import check_report
from .runtime.streams import observers
from .settings import Settings, set_defaults, to_environment
from .words.text import printable

CHILD = Path(__file__).parent / "child"
"""The folder that puts the emulator into child processes, through PYTHONPATH."""


@dataclass(frozen=True)
class Program:
    """What is to run, as on python's command line.

    kind: "script", "module" (-m), "code" (-c) or "stdin" (-); name: the path, the module, or the code itself
    arguments: its own, after its name in sys.argv
    """

    kind: str
    name: str
    arguments: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The program as messages and tracebacks name it."""
        return {"code": "<string>", "stdin": "<stdin>"}.get(self.kind, self.name)


def program_from(words: Sequence[str]) -> Program:
    """The program from a command line's words: SCRIPT ..., -m MODULE ..., -c CODE ..., - ...

    Raises ValueError where nothing is named.
    """
    first, rest = (words[0], tuple(words[1:])) if words else ("", ())
    for option, kind in (("-m", "module"), ("-c", "code")):
        if first == option and rest:
            return Program(kind, rest[0], rest[1:])
        if first.startswith(option) and len(first) > 2:
            return Program(kind, first[2:], rest)
    if first == "-":
        return Program("stdin", sys.stdin.read(), rest)
    if not first or first in ("-m", "-c"):
        raise ValueError("expected a program: SCRIPT.py, -m MODULE, -c CODE, or - for the standard input")
    return Program("script", first, rest)


def separated(words: Sequence[str], with_value: Sequence[str] = ("--threads",)) -> list[str]:
    """The words with `--` before the program's first, so that its own options are left alone.

    with_value: options of ours that take the next word
    """
    at = 0
    while at < len(words) and words[at].startswith("--"):
        at += 2 if words[at] in with_value else 1
        if words[at - 1] == "--":
            return [*words[:at], *words[at:]]
    starts = at < len(words) and (not words[at].startswith("-") or words[at] == "-" or words[at][:2] in ("-m", "-c"))
    return [*words[:at], "--", *words[at:]] if starts else list(words)


class ScriptFailed(Exception):
    """A program raised an exception, which is in __cause__. script: its path, module name or "<string>" """

    def __init__(self, script: Path | str) -> None:
        super().__init__(f"{script} raised an exception")
        self.script = script

    def print_traceback(self) -> None:
        """Print the exception to stderr as python would: its traceback begins in the program."""
        cause = self.__cause__ or self
        lines = traceback.format_exception(type(cause), cause, _from_program(cause.__traceback__, str(self.script)))
        sys.stderr.write(printable("".join(lines)))


def require_script(script: Path) -> None:
    """Raise FileNotFoundError or IsADirectoryError unless there is such a file."""
    if script.is_dir():
        raise IsADirectoryError(f"{script} is a folder: name the Python file in it that is to run")
    if not script.is_file():
        raise FileNotFoundError(f"there is no script {script}")


def run_script(script: Path, arguments: Sequence[str] = (), run_name: str = "__main__") -> dict[str, Any]:
    """Run a script and return its global names, as run_program does. run_name: its `__name__`"""
    return run_program(Program("script", str(script), tuple(arguments)), run_name)


def run_program(program: Program, run_name: str = "__main__") -> dict[str, Any]:
    """Run a program and return its global names. `from numba import cuda` gives it the emulator.

    Raises KernelError for a wrong kernel, ScriptFailed for every other exception of the program, and lets pass what
    ends a program: SystemExit, KeyboardInterrupt, and a BrokenPipeError of standard output.
    """
    argv, path = sys.argv, sys.path[:]
    script = Path(program.name) if program.kind == "script" else None
    if script is not None:
        require_script(script)
    sys.argv = [{"module": "-m", "code": "-c", "stdin": "-"}.get(program.kind, program.name), *program.arguments]
    sys.path.insert(0, os.getcwd() if program.kind == "module" else str(script.resolve().parent) if script else "")
    install()
    try:
        return _run(program, run_name)
    except KernelError:
        raise
    except BrokenPipeError as error:
        if reader_has_gone():
            raise
        raise ScriptFailed(program.place) from error
    except Exception as error:
        advice = extensions().import_advice
        folder = script.resolve().parent if script else Path.cwd()
        if isinstance(error, ImportError) and advice is not None and (told := advice(folder, error)):
            raise ValueError(f"{program.place}: {error}: {told}") from error
        if program.kind == "module" and _from_program(error.__traceback__, program.name) is None:
            raise ValueError(f"-m {program.name}: {error}") from error  # it was not found
        raise ScriptFailed(program.place) from error
    finally:
        uninstall()
        sys.argv, sys.path[:] = argv, path


def _run(program: Program, run_name: str) -> dict[str, Any]:
    if program.kind == "script":
        return runpy.run_path(program.name, run_name=run_name)
    if program.kind == "module":
        return runpy.run_module(program.name, run_name=run_name, alter_sys=True)
    main, before = ModuleType(run_name), sys.modules.get(run_name)
    vars(main)["__builtins__"] = __builtins__
    # Kernels are compiled from their text, which is found here.
    linecache.cache[program.place] = (len(program.name), None, program.name.splitlines(keepends=True), program.place)
    sys.modules[run_name] = main
    try:
        exec(compile(program.name, program.place, "exec"), vars(main))
    finally:
        if before is not None:
            sys.modules[run_name] = before
    return vars(main)


@contextlib.contextmanager
def emulator_in_children(settings: Settings) -> Iterator[None]:
    """Within the `with`, new processes of this Python run on the emulator with these settings."""
    folders = [str(CHILD), *filter(None, [os.environ.get("PYTHONPATH")])]
    changes = {**to_environment(settings), "PYTHONPATH": os.pathsep.join(folders)}
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def run(program: Program, settings: Settings, progress: Any = None) -> int:
    """The command `run`: the program with these settings, and the report of check mode after it; without check mode a
    line that says so, on a terminal. Returns 1 after an exception of the program, which is printed, else 0.

    progress: is told what takes long (hooks.py). Raises ValueError for a wrong kernel, with its lines as notes, and
    what run_program lets pass.
    """
    set_defaults(settings)
    check_report.reset()
    before = register_progress(progress)
    seen: set[str] = set()
    observers.append(note := lambda what, *details: seen.add(what))
    try:
        with emulator_in_children(settings):
            run_program(program)
    except SystemExit:
        _told(settings, "launched" in seen)
        raise
    except KernelError as error:
        raise with_lines_as_notes(error) from error
    except ScriptFailed as failed:
        failed.print_traceback()
        return 1
    finally:
        observers.remove(note)
        register_progress(before)
        set_defaults(None)
    _told(settings, "launched" in seen)
    return 0


def _told(settings: Settings, launched: bool) -> None:
    if settings.check:
        print(printable(check_report.report()), file=sys.stderr)
    elif launched and sys.stderr.isatty():
        print("races and reads of unwritten memory were not looked for: run --check finds them", file=sys.stderr)


def reader_has_gone() -> bool:
    """Whether nobody reads our standard output any more, as when `head` has seen enough. Any other broken pipe is a
    script's own affair."""
    try:
        number = sys.stdout.fileno()
        asked = select.poll()  # writing once more would succeed, or write something
    except (AttributeError, OSError, ValueError):  # Windows has no poll, and no broken pipes; a stand-in has no number
        return False
    asked.register(number, select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0))


def with_lines_as_notes(error: KernelError) -> ValueError:
    """A ValueError with the first line of a kernel's error; the other lines are notes, which are printed unchanged."""
    first, *rest = str(error).splitlines() or [""]
    told = ValueError(first)
    for note in (*rest, *getattr(error, "__notes__", ())):
        told.add_note(note)
    return told


def _from_program(trace: TracebackType | None, place: str) -> TracebackType | None:
    """The traceback without what called the program; None where it ended before the program's first line."""
    while trace is not None and place not in (trace.tb_frame.f_code.co_filename, _module_of(trace)):
        trace = trace.tb_next
    return trace


def _module_of(trace: TracebackType) -> str:
    """The name of the module that a frame of `python -m` runs; "" for all other frames."""
    names = trace.tb_frame.f_globals
    if names.get("__name__") != "__main__":
        return ""
    return str(getattr(names.get("__spec__"), "name", "")).removesuffix(".__main__")
