"""The exercises as the week pages list them: one row for each, as course.toml has them.

`python -m tests.groundup.course.course_pages` writes the rows into docs/weeks anew; test_pages.py compares.
"""

from __future__ import annotations

import re
from pathlib import Path

from groundup.course.manifest import ROOT, Week, course

ROW = re.compile(r"^\| \d+\.\d+ \|.*\n", re.MULTILINE)
HOURS = re.compile(r"(?<=^\*\*)\d+ to \d+(?= hours\*\*)", re.MULTILINE)


def page(week: Week) -> Path:
    """The page of a week."""
    return ROOT / "docs" / "weeks" / f"week{week.number:02}.md"


def rows(week: Week) -> str:
    """The rows of the week's table of exercises."""
    return "".join(f"| {task.id} | {task.title} | `{task.file}` `{task.function}` |\n" for task in week.tasks)


def hours(week: Week) -> str:
    """How long it takes."""
    return f"{week.hours[0]} to {week.hours[1]}"


def with_rows(text: str, week: Week) -> str:
    """A page's text with these rows in the place of those that are there, and the line of hours likewise."""
    found = ROW.search(text)
    if found is None:
        raise ValueError(f"week {week.number}: the page has no table of exercises")
    text = text[: found.start()] + rows(week) + ROW.sub("", text[found.start() :])
    return HOURS.sub(lambda match: hours(week), text)


if __name__ == "__main__":
    for each in course().weeks:
        path = page(each)
        path.write_text(with_rows(path.read_text(encoding="utf-8"), each), encoding="utf-8")
