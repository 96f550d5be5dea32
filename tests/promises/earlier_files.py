"""What commit aa8f7fd made (its README.md says what that is)."""

import shutil
from pathlib import Path

MADE = Path(__file__).parents[1] / "fixtures" / "aa8f7fd"

COURSE = MADE.with_name("d0c3bb7")
"""A learner's folder, which commit d0c3bb7 made, and what it said of it."""


def copied(name: str, folder: Path) -> Path:
    """The folder of a run, to go on with."""
    shutil.copytree(MADE / "trained" / name, folder / name)
    return folder / name
