"""Run a script with CUDA kernels in this process, on the emulator, as python would run it.

The command `run` runs a script for its own sake, `lens` to find the launch of one of its kernels.
"""

from __future__ import annotations

import runpy
import select
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from .errors import KernelError
from .hooks import extensions
from .namespace import install, uninstall
from .words.text import printable


class ScriptFailed(Exception):
    """A script raised an exception, which is in __cause__. script: its path"""

    def __init__(self, script: Path) -> None:
        super().__init__(f"{script} raised an exception")
        self.script = script

    def print_traceback(self) -> None:
        """Print the exception to stderr as python would: its traceback begins in the script."""
        cause = self.__cause__ or self
        lines = traceback.format_exception(type(cause), cause, _from_script(cause.__traceback__, str(self.script)))
        sys.stderr.write(printable("".join(lines)))


def require_script(script: Path) -> None:
    """Raise FileNotFoundError or IsADirectoryError unless there is such a file."""
    if script.is_dir():
        raise IsADirectoryError(f"{script} is a folder: name the Python file in it that is to run")
    if not script.is_file():
        raise FileNotFoundError(f"there is no script {script}")


def run_script(script: Path, arguments: Sequence[str] = (), run_name: str = "__main__") -> dict[str, Any]:
    """Run a script and return its global names. `from numba import cuda` gives it the emulator.

    arguments: its own, after its name in sys.argv; run_name: its `__name__`
    Raises KernelError for a wrong kernel, ScriptFailed for every other exception of the script, and lets pass what ends
    a program: SystemExit, KeyboardInterrupt, and a BrokenPipeError of standard output.
    """
    require_script(script)
    argv, path = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    install()
    try:
        return runpy.run_path(str(script), run_name=run_name)
    except KernelError:
        raise
    except BrokenPipeError as error:
        if reader_has_gone():
            raise
        raise ScriptFailed(script) from error
    except Exception as error:
        advice = extensions().import_advice
        if isinstance(error, ImportError) and advice is not None and (told := advice(script.resolve().parent, error)):
            raise ValueError(f"{script}: {error}: {told}") from error
        raise ScriptFailed(script) from error
    finally:
        uninstall()
        sys.argv, sys.path[:] = argv, path


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
    """The same error with only its first line as message; the kernel's lines are notes, which are printed unchanged."""
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
