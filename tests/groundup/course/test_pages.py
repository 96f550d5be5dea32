"""The book and the manifest say the same of the course."""

import re
from pathlib import Path

import pytest

from groundup.cli import main
from groundup.course.faults import KINDS
from groundup.course.manifest import ROOT, Task, Week, course
from tests.groundup.course.course_helpers import new_folder, write
from tests.groundup.course.course_pages import hours, page, rows, with_rows

PARTS = [
    "What you will be able to do",
    "The idea",
    "Exercises",
    "Predict, then measure",
    "Checkpoint",
    "Reflect",
    "Summary",
    "Three more exercises",
    "Further reading",
]


@pytest.mark.parametrize("week", course().weeks, ids=lambda week: f"week{week.number}")
def test_a_weeks_page_lists_its_exercises_as_the_manifest_has_them(week: Week) -> None:
    text = page(week).read_text(encoding="utf-8")
    assert text.startswith(f"# Week {week.number}: {week.title}\n")
    assert rows(week) in text, "python -m tests.groundup.course.course_pages writes the rows anew"
    assert with_rows(text, week) == text
    assert f"\n\n**{hours(week)} hours**, reading included." in text


@pytest.mark.parametrize("week", course().weeks, ids=lambda week: f"week{week.number}")
def test_a_weeks_page_has_every_part_in_order_and_a_figure(week: Week) -> None:
    text = page(week).read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in PARTS] == PARTS
    assert re.search(r"!\[[^\]]{20,}\]\(\.\./figures/[\w-]+\.svg\)", text), (
        "a figure with a text for those who cannot see"
    )
    reflect = text.split("## Reflect")[1].split("\n## ")[0]
    assert reflect.count("?") >= 2
    opening = text.split("\n\n")[1]
    assert "This week" in opening, "the page opens with its idea"


@pytest.mark.parametrize("week", course().weeks, ids=lambda week: f"week{week.number}")
def test_every_question_of_a_week_has_an_answer_on_a_page_apart(week: Week) -> None:
    text = page(week).read_text(encoding="utf-8")
    answers = (ROOT / "docs" / "teaching" / "answers.md").read_text(encoding="utf-8")
    assert f"../teaching/answers.md#week-{week.number})" in text
    own = answers.split(f"\n## Week {week.number}\n")[1].split("\n## ")[0]
    for heading, count in (("Reflect", 2), ("Three more exercises", 3)):
        asked = re.findall(r"^\d\. ", text.split(f"\n## {heading}\n")[1].split("\n## ")[0], re.MULTILINE)
        answered = re.findall(r"^\d\. ", own.split(f"**{heading}**")[1].split("\n**")[0], re.MULTILINE)
        assert len(asked) == len(answered) == count


def test_the_last_week_of_each_phase_names_its_checkpoint() -> None:
    for phase in course().phases:
        text = page(phase.weeks[-1]).read_text(encoding="utf-8")
        assert f"groundup learn checkpoint {phase.number}" in text


def test_the_course_page_lists_all_weeks_with_their_hours() -> None:
    text = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
    for week in course().weeks:
        assert f"[{week.title}](weeks/week{week.number:02}.md)" in text
        assert f"| {week.hours[0]} to {week.hours[1]} |" in text


def test_the_course_page_shows_a_verdict_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = new_folder(tmp_path / "groundup-course")
    monkeypatch.chdir(learner.folder)
    write(learner, course().task("1.1"), "range(k_size)", "range(k_size - 1)")
    with pytest.raises(SystemExit, match="1"):
        main(["learn", "check", "1.1"])
    shown = capsys.readouterr().out.replace("\\", "/")
    assert f"```text\n{shown}```" in (ROOT / "docs" / "course.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", course().cases, ids=lambda case: case.id)
def test_a_weeks_page_tells_its_detective_exercise_and_the_command_that_shows_the_fault(case: Task) -> None:
    week = next(week for week in course().weeks if week.number == case.week)
    text = page(week).read_text(encoding="utf-8")
    assert case.fault is not None
    assert f"### A detective exercise: {case.title}\n" in text
    for said in (case.file, case.function, f"$ {case.fault.shows}\n", f"groundup learn answer {case.id} LINE KIND"):
        assert said in text


def test_the_course_page_lists_every_kind_of_fault() -> None:
    text = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
    for kind, meaning in KINDS.items():
        assert f"| `{kind}` | {meaning} |\n" in text
