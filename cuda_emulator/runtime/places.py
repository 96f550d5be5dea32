"""Where the learner's own code is: an error about a launch points to the line that launched, not into the emulator."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from ..errors import KernelError

#: The emulator and Numba: code that learners call but do not write.
_NOT_THEIRS = tuple(
    os.path.abspath(folder) + os.sep for folder in (Path(__file__).parent.parent, Path(str(numba.__file__)).parent)
)


def calling_line() -> tuple[str | None, int | None]:
    """File and line of the innermost call from neither this package nor Numba; (None, None) where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if not os.path.abspath(frame.f_code.co_filename).startswith(_NOT_THEIRS):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None, None


def launch_error(message: str, kernel: str | None = None) -> KernelError:
    """A KernelError that points to the launch."""
    filename, line = calling_line()
    return KernelError(message, filename=filename, line=line, kernel=kernel)


def definition_error(message: str, function: Callable[..., Any]) -> KernelError:
    """A KernelError that points to where `function` is defined."""
    code = getattr(function, "__code__", None)
    return KernelError(
        message,
        filename=getattr(code, "co_filename", None),
        line=getattr(code, "co_firstlineno", None),
        kernel=getattr(function, "__name__", None),
    )
