"""The error and the warning for a wrong kernel: one sentence with the file, the line and how to correct it."""

from __future__ import annotations

import linecache
from collections.abc import Sequence


class KernelError(ValueError):
    """A kernel that cannot be compiled, launched, or finished.

    If the place is known, the message starts with `file:line:` and ends with the source line.

    filename, line: the place in the learner's own file, or None
    kernel: the kernel's name, or None
    called_from: where the place is in a device function: (file, line) of each call that led there, the kernel's first;
        known in step mode, of barriers and of the warp's collectives
    """

    def __init__(
        self,
        message: str,
        *,
        filename: str | None = None,
        line: int | None = None,
        kernel: str | None = None,
        called_from: Sequence[tuple[str, int]] = (),
    ) -> None:
        self.filename, self.line, self.kernel, self.called_from = filename, line, kernel, tuple(called_from)
        self.sentence = message
        if filename is not None and line is not None:
            source = linecache.getline(filename, line).strip()
            message = f"{filename}:{line}: {message}" + (f"\n    {source}" if source else "")
        super().__init__(message)


class KernelWarning(UserWarning):
    """The kernel ran, but it may fail on a device, or its result was correct by luck."""
