"""`groundup learn answer`: which lines and kinds are right, and what is said of wrong ones."""

import pytest

from groundup.course.faults import KINDS, kind_of, places
from groundup.course.learner import record
from groundup.course.learner.project_files import program, solution
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task, course
from groundup.course.rules.detecting import Answered, answer
from groundup.course.rules.resetting import reset
from groundup.course.rules.states import state
from tests.groundup.course.course_helpers import new_folder

CASES = list(course().cases)
SMOOTH, PRODUCT = course().case("9.d"), course().case("11.d")


@pytest.fixture
def learner(tmp_path) -> Workspace:
    return new_folder(tmp_path / "learner")


def line_of(learner: Workspace, case: Task, text: str) -> str:
    """The number of the line of the learner's file with this text."""
    (number,) = [n for n, line in enumerate(learner.text(case.file).split("\n"), start=1) if line.strip() == text]
    return str(number)


def told(learner: Workspace, case: Task, line: str, kind: str) -> Answered:
    return answer(learner, case, line, kind)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_place_with_the_kind_is_right_and_every_other_line_or_kind_is_not(case: Task, learner: Workspace) -> None:
    assert case.fault is not None
    right = places(program(case), case.fault)
    for number in range(1, program(case).count("\n") + 1):
        found = told(learner, case, str(number), case.fault.kind)
        assert (found.line_right, found.kind_right) == (number in right, True), number
        assert found.right or any(found.help), number
    for kind in KINDS.keys() - {case.fault.kind}:
        found = told(learner, case, str(min(right)), kind)
        assert found.line_right
        assert not found.right


def test_an_answer_is_written_down_and_changes_no_task(learner: Workspace) -> None:
    line = line_of(learner, SMOOTH, "if i == 0 or i > last:")
    assert state(learner, SMOOTH) == ""
    assert not told(learner, SMOOTH, line, "race").right
    assert not learner.record.of("9.d").found
    assert told(learner, SMOOTH, line, "out of bounds").right
    assert state(learner, SMOOTH) == "found, not mended yet"
    again = record.load(learner.folder / record.NAME)
    assert again.of("9.d").found
    assert again.current == "1.1"


def test_the_line_where_a_fault_only_shows_is_told_from_its_place(learner: Workspace) -> None:
    line = line_of(learner, SMOOTH, "total = values[i - 1] + values[i] + values[i + 1]")
    found = told(learner, SMOOTH, line, "out-of-bounds")
    assert not found.line_right
    assert found.help[0].startswith("That line is where the fault shows.")


def test_a_line_outside_the_function_is_told_where_the_function_is(learner: Workspace) -> None:
    assert "The fault is in smooth, which has the lines 14 to 25." in told(learner, SMOOTH, "1", "race").help


def test_a_missing_statement_is_named_by_the_line_before_or_after_it_or_by_both(learner: Workspace) -> None:
    before = int(line_of(learner, PRODUCT, "k += 1"))
    for line in (f"{before}", f"{before + 1}", f"{before}-{before + 1}", f"{before} - {before + 1}"):
        assert told(learner, PRODUCT, line, "missing barrier").right, line


def test_a_kind_that_is_nearly_right_gets_a_sentence_of_its_own(learner: Workspace) -> None:
    found = told(learner, PRODUCT, line_of(learner, PRODUCT, "k += 1"), "race")
    assert found.help == (PRODUCT.fault.near["race"],)


def test_lines_count_in_the_file_as_the_learner_has_changed_it(learner: Workspace) -> None:
    path = learner.folder / SMOOTH.file
    text = program(SMOOTH).replace("import numpy", "# a comment\n# and another\nimport numpy", 1)
    text = text.replace("    while i <= last:\n", "    while i <= last:\n        # here?\n")
    path.write_text(text)
    line = line_of(learner, SMOOTH, "if i == 0 or i > last:")
    assert int(line) > max(places(program(SMOOTH), SMOOTH.fault))
    assert told(learner, SMOOTH, line, "out-of-bounds").right
    assert not told(learner, SMOOTH, str(int(line) + 4), "out-of-bounds").right


def test_a_program_that_is_mended_first_passes_with_the_answer(learner: Workspace) -> None:
    (learner.folder / SMOOTH.file).write_text(solution(SMOOTH))
    learner.record.of("9.d").digest = record.digest(solution(SMOOTH))  # as a check leaves it
    assert state(learner, SMOOTH) == "mended, not named yet"
    found = told(learner, SMOOTH, line_of(learner, SMOOTH, "if i == 0 or i == last:"), "out-of-bounds")
    assert found.passed
    assert state(learner, SMOOTH) == "passed"
    reset(learner, SMOOTH, whole_file=False)
    assert state(learner, SMOOTH) == ""
    assert learner.text(SMOOTH.file) == program(SMOOTH)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Out of Bounds", "out-of-bounds"),
        ("missing_barrier", "missing-barrier"),
        ("uninitialized", "uninitialised"),
        ("bank conflict", "bank-conflicts"),
        ("float64 leak", "float64"),
        ("data race", "race"),
    ],
)
def test_a_kind_may_be_written_in_several_ways(words: str, kind: str) -> None:
    assert kind_of(words) == kind


def test_a_word_that_is_no_kind_gets_the_list() -> None:
    with pytest.raises(ValueError, match="KIND: 'rase' is no kind of fault; did you mean race") as caught:
        kind_of("rase")
    assert all(kind in str(caught.value) for kind in KINDS)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x", "expected a line's number, such as 31, or two neighbours, such as 31-32; got 'x'"),
        ("-3", "expected a line's number"),
        ("3-9", "expected one line, or two neighbours"),
        ("4-3", "expected one line, or two neighbours"),
        ("0", "the file has the lines 1 to 37; got '0'"),
        ("38", "the file has the lines 1 to 37; got '38'"),
    ],
)
def test_a_line_that_is_not_there_is_refused(learner: Workspace, line: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"LINE: .*{says}"):
        told(learner, SMOOTH, line, "race")


def test_a_task_of_a_week_has_no_fault_to_find() -> None:
    with pytest.raises(ValueError, match=r"9\.1 is no detective exercise: .*those are 7\.d, 8\.d"):
        course().case("9.1")
