"""The net under the program: a mistake of groundup's own ends with one sentence that asks for a report.

A user's mistake is a ValueError or an OSError with a sentence; `cli.py` prints it. Any other exception is ours. Its
traceback goes into a file that the reader can send, and onto the terminal with GROUNDUP_TRACEBACK=1.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from typing import NoReturn

from groundup import __version__
from shared.text import one_line

SOFTWARE_ERROR = 70
"""The exit code of a mistake in the program itself: EX_SOFTWARE of sysexits.h."""


def crashed(error: BaseException) -> NoReturn:
    """Print the sentence on stderr, keep the traceback in a file of the user's own, and exit with code 70."""
    told = "".join(traceback.format_exception(error))
    if os.environ.get("GROUNDUP_TRACEBACK"):
        print(told, end="", file=sys.stderr)
    what = one_line(f"{type(error).__name__}: {error}")
    print(f"error: groundup made a mistake of its own ({what}). {_kept(told)}", file=sys.stderr)
    sys.exit(SOFTWARE_ERROR)


def _kept(told: str) -> str:
    """What to do now; the traceback is in the file that the sentence names."""
    versions = f"groundup {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    try:
        handle, name = tempfile.mkstemp(prefix="groundup-", suffix=".txt")  # for this user's eyes only: mode 0600
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(versions + told)
    except OSError as reason:
        return f"Please report it, with what GROUNDUP_TRACEBACK=1 shows (no file could be written: {reason.strerror})."
    return f"Please report it, with the file {name}."
