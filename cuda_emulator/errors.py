"""What the emulator says when a kernel is wrong: one sentence, with the file, the line, and a way out."""

from __future__ import annotations

import linecache


class KernelError(ValueError):
    """A kernel that cannot be compiled, launched, or finished.

    The message starts with `file:line:` where the place is known, and shows the line below it.

    filename, line: the place in the learner's own file; None where there is none
    kernel: the kernel's name; None where there is none
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
    """Something that works here and may not on a device, or that works by luck."""
