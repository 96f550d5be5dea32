"""Where the program `groundup` begins: Ctrl-C is as quiet while the program is loaded as later.

Loading takes some tenths of a second. An interruption inside an import would show a traceback, or appear as a package
that is missing; so during that time Ctrl-C ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Load the program and run it."""
    before = signal.signal(signal.SIGINT, _end)
    from groundup import cli

    cli.program(sys.argv[1:])  # imports the command that is asked for
    signal.signal(signal.SIGINT, before)
    cli.main()


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(2)  # nothing has been begun that would have to be undone
