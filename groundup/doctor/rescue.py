"""What `groundup` does where a package that it is built on is missing: the doctor answers, the rest send there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from groundup.doctor import DEPENDENCIES, diagnose
from groundup.doctor.report import plain


def rescue(error: ModuleNotFoundError, arguments: Sequence[str]) -> NoReturn:
    """Print the doctor's report where that was asked for, else one line that sends there; leave with 1 or 2.

    arguments: the command line after the program's name
    Raises the error itself where what is missing is none of groundup's dependencies.
    """
    name = (error.name or "").partition(".")[0]
    if name not in DEPENDENCIES:
        raise error
    if arguments[:1] == ["doctor"]:
        print(plain(diagnose()))
        sys.exit(1)
    print(f"error: {name} is not installed, and groundup needs it. See: groundup doctor", file=sys.stderr)
    sys.exit(2)
