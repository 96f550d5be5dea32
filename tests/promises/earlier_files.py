"""What commit aa8f7fd made (its README.md says what that is), and today's program called with it."""

import shutil
from pathlib import Path

import pytest

from groundup.cli import main

MADE = Path(__file__).parents[1] / "fixtures" / "aa8f7fd"

COURSE = MADE.with_name("d0c3bb7")
"""A learner's folder, which commit d0c3bb7 made, and what it said of it."""


def run(*arguments: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def copied(name: str, folder: Path) -> Path:
    """The folder of a run, to go on with."""
    shutil.copytree(MADE / "trained" / name, folder / name)
    return folder / name
