"""Runs what the docs say, each command or page in a process of its own and in an empty folder.

The processes are forked from one that has the slow imports behind it, which saves a second each; where a system cannot
fork, they start from nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import multiprocessing
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundup.cli import COMMANDS

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
LIMIT = 300
"""Seconds that a command may take before it is ended."""


@dataclass(frozen=True)
class Ran:
    """How a process ended: its exit code, and what it wrote to stdout and stderr together."""

    code: int
    output: str


def in_a_process(what: Callable[..., None], folder: Path, environment: dict[str, str], *arguments: Any) -> Ran:
    """Call a function of a module in a process of its own, with `folder` as the current folder and no input."""
    context: Any = multiprocessing.get_context(METHOD)
    if METHOD == "forkserver":
        commands = (f"groundup.commands.{name}" for name in COMMANDS)
        context.set_forkserver_preload(["numba", "matplotlib.figure", "groundup.cli", *commands])
    log = folder.parent / f"{folder.name}.log"
    log.touch()
    process = context.Process(target=child, args=(what, str(folder), str(log), environment, arguments))
    process.start()
    process.join(LIMIT)
    if process.is_alive():
        process.kill()
        process.join()
        return Ran(-1, f"ended after {LIMIT} s\n" + log.read_text(encoding="utf-8", errors="replace"))
    return Ran(process.exitcode or 0, log.read_text(encoding="utf-8", errors="replace"))


def child(
    what: Callable[..., None], folder: str, log: str, environment: dict[str, str], arguments: Sequence[Any]
) -> None:
    """The other process's side: its files, folder and environment as a shell would set them."""
    with open(log, "w", encoding="utf-8") as target, open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(target.fileno(), 1)
        os.dup2(target.fileno(), 2)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (they last as long as the process)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        try:
            what(*arguments)
        except Exception:  # a traceback in the log, and the exit code that Python itself would give
            traceback.print_exc()
            sys.exit(1)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()


def command(words: Sequence[str]) -> None:
    """groundup ..., python -m MODULE ..., or python SCRIPT ..."""
    program, *arguments = words
    if program == "groundup":
        from groundup.cli import main

        if arguments[0] == "serve" or (arguments[0] == "studio" and "--export" not in arguments):
            end_as_soon_as_it_answers(arguments[0])
        sys.argv = [program, *arguments]
        main(arguments)
    elif arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")


def end_as_soon_as_it_answers(program: str) -> None:
    """Let the studio or the service end after it has told its address, as Ctrl-C would."""
    server: Any = importlib.import_module(f"groundup.{program}.server")
    begin = server.Server.startup

    async def begun(self: Any, sockets: Any = None) -> None:
        await begin(self, sockets)
        assert self.started
        self.should_exit = True

    server.Server.startup = begun


def python_page(programs: Sequence[tuple[str, int, str, str | None]]) -> None:
    """Blocks of one page, in order, in one namespace: (page, line, text, what it must print or None).

    Each is a file, with its lines where the page has them: a traceback names the page's line, and a kernel's source can
    be read, as the emulator must. It lies where it lay the last time, so that the emulator finds what it compiled then.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for page, line, text, expected in programs:
        padded = "\n" * line + text + "\n"
        file = kept(f"{page.replace('/', '_')}_{line}.py", padded)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(padded, str(file), "exec"), namespace)
        if expected is not None and tidy(printed.getvalue()) != tidy(expected):
            sys.exit(f"{page}:{line}: the block prints\n{printed.getvalue()}\nand the page says\n{expected}")


def kept(name: str, text: str) -> Path:
    """A file with this text, in a place that depends on nothing but the text and the user."""
    user = os.getuid() if hasattr(os, "getuid") else "programs"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    file = Path(tempfile.gettempdir()).resolve() / f"groundup-docs-{user}" / digest / name
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        written = file.with_suffix(f".{os.getpid()}")
        written.write_text(text, encoding="utf-8")
        written.replace(file)  # whole or not at all: two tests may be here at once
    return file


def tidy(text: str) -> list[str]:
    """Lines without the white space at their ends."""
    return [line.rstrip() for line in text.strip().splitlines()]
