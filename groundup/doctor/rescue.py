"""`groundup` where a package is missing that it needs: the doctor reports it, every other command names it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from groundup.doctor import DEPENDENCIES, diagnose
from groundup.doctor.report import plain


def rescue(error: ModuleNotFoundError, arguments: Sequence[str]) -> NoReturn:
    """End the program: with the doctor's report and code 1 if the command is doctor, else with an error and code 2.

    arguments: the command line after the program's name
    Raises the error itself where the missing module is none of groundup's dependencies.
    """
    name = (error.name or "").partition(".")[0]
    if name not in DEPENDENCIES:
        raise error
    if arguments[:1] == ["doctor"]:
        print(plain(diagnose()))
        sys.exit(1)
    print(f"error: {name} is not installed, and groundup needs it. See: groundup doctor", file=sys.stderr)
    sys.exit(2)
