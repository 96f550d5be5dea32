"""The size of the project stays below the ceilings of lines.toml, which says what is counted.

python -m tests.layout.test_lines    prints the lines and the ceiling of every place
"""

from __future__ import annotations

import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.layout.source_tree import ROOT, STAGES

RULES = tomllib.loads(Path(__file__).with_name("lines.toml").read_text(encoding="utf-8"))
CEILINGS: dict[str, int] = RULES["ceilings"]
COURSE, STUDIO, PROGRAM, PROGRAMS = "groundup/course", "groundup/studio", "the rest of groundup", "scripts and docs"
ALL, TESTS = "all source", "tests"


def tracked_files() -> list[str]:
    """The paths that git knows, from the project's root. Raises RuntimeError where this is no git repository."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"git cannot be started: {error}") from None
    paths = sorted(set(done.stdout.split("\0")))  # an unmerged file is named more than once
    if "pyproject.toml" not in paths:
        raise RuntimeError(f"{ROOT} is no git repository of groundup: {done.stderr.strip() or 'no files in it'}")
    return paths


def place_of(path: str) -> str:
    """The place of a counted file outside `all source`; "" for a file that is not counted."""
    top, _, below = path.partition("/")
    ending = Path(path).suffix.removeprefix(".")
    endings = RULES["source_endings"] + (RULES["text_endings"] if top in ("groundup", "shared", "tests") else [])
    if ending not in endings or path.startswith(tuple(RULES["not_counted"])):
        return ""
    if top == "groundup":
        return next((place for place in (COURSE, STUDIO) if path.startswith(f"{place}/")), PROGRAM)
    return PROGRAMS if top in ("scripts", "docs") else top if below else ""


def lines_by_place() -> Counter[str]:
    lines: Counter[str] = Counter()
    for path in tracked_files():
        place = place_of(path)
        if place and (ROOT / path).is_file():  # a file that was removed is tracked until the commit
            count = (ROOT / path).read_bytes().count(b"\n")
            lines[place] += count
            lines[ALL] += count if place != TESTS else 0
    return lines


def test_no_place_has_more_lines_than_its_ceiling() -> None:
    try:
        lines = lines_by_place()
    except RuntimeError as reason:
        pytest.skip(str(reason))
    above = [
        f"{place} has {lines[place]:,} lines, its ceiling in tests/layout/lines.toml is {ceiling:,}: remove "
        f"{lines[place] - ceiling:,} lines there, or lower another ceiling by as much as you raise this one"
        for place, ceiling in CEILINGS.items()
        if lines[place] > ceiling
    ]
    assert not above, "\n".join(above)
    assert lines.keys() == CEILINGS.keys(), "every place needs a ceiling, and every ceiling its place"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("groundup/course/weeks/week1.toml", COURSE),
        ("groundup/studio/race/static/lanes.js", STUDIO),
        ("groundup/cli.py", PROGRAM),
        ("groundup/new_table.json", PROGRAM),
        ("groundup/studio/race/recorded.json", ""),
        ("shared/data/mnist_subset/LICENCE.txt", ""),
        ("docs/conf.py", PROGRAMS),
        ("docs/benchmarks/results.json", ""),
        ("stage3_c/csrc/groundup.h", STAGES[2]),
        ("tests/fixtures/aa8f7fd/make.sh", ""),
        ("tests/layout/lines.toml", TESTS),
    ],
)
def test_every_kind_of_file_is_counted_at_its_place(path: str, place: str) -> None:
    assert place_of(path) == place


if __name__ == "__main__":
    counted = lines_by_place()
    for name, ceiling in CEILINGS.items():
        print(f"{name:22}{counted[name]:>9,} of {ceiling:>9,}")
