"""The error and the warning for a wrong kernel: one sentence with the file, the line and how to correct it."""

from __future__ import annotations

import linecache


class KernelError(ValueError):
    """A kernel that cannot be compiled, launched, or finished.

    If the place is known, the message starts with `file:line:` and ends with the source line.

    filename, line: the place in the learner's own file, or None
    kernel: the kernel's name, or None
    """

    def __init__(
        self, message: str, *, filename: str | None = None, line: int | None = None, kernel: str | None = None
    ) -> None:
        self.filename, self.line, self.kernel = filename, line, kernel
        self.sentence = message
        if filename is not None and line is not None:
            source = linecache.getline(filename, line).strip()
            message = f"{filename}:{line}: {message}" + (f"\n    {source}" if source else "")
        super().__init__(message)


class KernelWarning(UserWarning):
    """The kernel ran, but it may fail on a device, or its result was correct by luck."""
