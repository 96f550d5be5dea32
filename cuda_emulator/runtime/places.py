"""Find the line of the learner's code that an error should point to: the launch, or the kernel's definition."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from ..errors import KernelError

#: The folders of the emulator and of Numba: an error does not point into their files.
_LIBRARIES = tuple(
    os.path.abspath(folder) + os.sep for folder in (Path(__file__).parent.parent, Path(str(numba.__file__)).parent)
)


def calling_line() -> tuple[str | None, int | None]:
    """File and line of the innermost call outside the emulator and Numba; (None, None) if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if not os.path.abspath(frame.f_code.co_filename).startswith(_LIBRARIES):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None, None


def launch_error(message: str, kernel: str | None = None) -> KernelError:
    """A KernelError that points to the launch."""
    filename, line = calling_line()
    return KernelError(message, filename=filename, line=line, kernel=kernel)


def definition_error(message: str, function: Callable[..., Any], line: int | None = None) -> KernelError:
    """A KernelError that points to a line of `function`; to its definition, if none is given."""
    code = getattr(function, "__code__", None)
    return KernelError(
        message,
        filename=getattr(code, "co_filename", None),
        line=line or getattr(code, "co_firstlineno", None),
        kernel=getattr(function, "__name__", None),
    )
