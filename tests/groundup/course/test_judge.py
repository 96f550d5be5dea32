"""Whatever a learner's code does, there is a verdict that says so, and no process is left behind."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundup.course.assembly import Assembly
from groundup.course.checks.check import Check, Tally, Wrong
from groundup.course.checks.exercise import Exercise, checks_of
from groundup.course.checks.mistakes import Mistake, likely_cause
from groundup.course.checks.speed import times_slower
from groundup.course.grading.calling import on_lists
from groundup.course.judging import child, judge, memory_limit
from groundup.course.judging.compiler_hints import compile_hint
from groundup.course.learner.functions import find, replaced
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from tests.groundup.course.course_helpers import new_folder, write
from tests.stages import REASONS

FIRST = course().task("1.1")


@pytest.fixture
def learner(tmp_path: Path) -> Workspace:
    return new_folder(tmp_path / "my course, größer")  # a space and an umlaut: Windows' home folders have them


@pytest.mark.parametrize(
    ("line", "what", "cause"),
    [
        ("import sys; sys.exit(3)", "it called sys.exit(3)", "it does not exit"),
        ("import os; os._exit(0)", "the process ended by itself, with exit code 0", "ends the process"),
        ("return [[1.0] * 10**12]", "it asked for more memory than it may have", "wrong numbers"),
        ("input()", "EOFError", ""),
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'", ""),
        ("return undefined", "NameError: name 'undefined' is not defined", ""),
        ("return index_loops(a, b)", "RecursionError", ""),
        ("return None", "nothing came back", "no return?"),
        ("return 'text'", "expected numbers", ""),
        ("return [[1.0], [1.0, 2.0]]", "the rows do not have one length", ""),
    ],
)
def test_what_goes_wrong_is_said_with_its_line(learner: Workspace, line: str, what: str, cause: str) -> None:
    write(learner, FIRST, "    return c", f"    {line}")
    verdict = judge.judge(learner, FIRST)
    assert not verdict.passed
    assert what in verdict.what
    assert cause in verdict.cause
    assert "index_loops(a (2, 3), b (3, 2))" in verdict.what
    if verdict.line and what != "RecursionError":  # which comes wherever the stack ends
        assert verdict.file == str(learner.folder / FIRST.file)
        assert line in Path(verdict.file).read_text(encoding="utf-8").splitlines()[verdict.line - 1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_a_crash_is_told_by_its_name_and_what_was_being_tried(learner: Workspace) -> None:
    write(learner, FIRST, "    return c", "    import ctypes; ctypes.string_at(0)")
    verdict = judge.judge(learner, FIRST)
    assert verdict.what == "the process crashed with SIGSEGV while trying index_loops(a (2, 3), b (3, 2))"
    assert "outside an array" in verdict.cause


def test_an_endless_loop_is_ended(learner: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(judge.SECONDS_VARIABLE, "2")
    write(learner, FIRST, "    return c", "    while True: pass")
    verdict = judge.judge(learner, FIRST)
    assert "it did not end within 2 seconds while trying index_loops" in verdict.what
    assert verdict.failed_check == "shape"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")
def test_processes_that_the_learners_code_started_are_ended_too(learner: Workspace, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    sleeper = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    lines = ["import subprocess, sys", f"open({str(note)!r}, 'a').write(str({sleeper}.pid) + chr(10))", "return c"]
    write(learner, FIRST, "    return c", "\n".join(f"    {line}" for line in lines))
    assert judge.judge(learner, FIRST).passed is True
    deadline = time.monotonic() + 10
    started = [int(line) for line in note.read_text().split()]
    assert started
    while time.monotonic() < deadline and any(map(_alive, started)):
        time.sleep(0.05)
    assert not any(map(_alive, started))


def _alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False


def test_what_the_code_prints_is_shown_and_a_flood_is_cut(learner: Workspace) -> None:
    write(learner, FIRST, "    return c", "    print('x' * 10**6)\n    print('the end')\n    return c")
    verdict = judge.judge(learner, FIRST)
    assert verdict.passed
    assert verdict.printed.endswith("the end")
    assert len(verdict.printed) <= judge.MOST_PRINTED


def test_a_syntax_error_anywhere_in_the_file_is_told_with_its_line(learner: Workspace) -> None:
    path = learner.folder / FIRST.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\ndef later(:\n", encoding="utf-8")
    verdict = judge.judge(learner, FIRST)
    assert verdict.failed_check == "import"
    assert f"line {len(text.splitlines()) + 2}: SyntaxError" in verdict.what


def test_a_function_that_was_deleted_is_told_with_the_way_back(learner: Workspace) -> None:
    path = learner.folder / FIRST.file
    path.write_text(path.read_text(encoding="utf-8").replace("def index_loops", "def my_loops"), encoding="utf-8")
    verdict = judge.judge(learner, FIRST)
    assert "has no function index_loops" in verdict.what
    assert "groundup learn reset 1.1" in verdict.cause


def test_helpers_and_imports_of_the_learners_own_are_used(learner: Workspace) -> None:
    write(learner, FIRST, "    return c", "    return helped(c)")
    path = learner.folder / FIRST.file
    text = "import decimal\n\n\ndef helped(c):\n    return decimal and c\n"
    path.write_text(path.read_text(encoding="utf-8") + "\n\n" + text, encoding="utf-8")
    assert judge.judge(learner, FIRST).passed


def test_other_exercises_of_the_file_may_be_in_any_state(learner: Workspace) -> None:
    """Each is filled in with the project's own: a wrong answer to one task says nothing about another."""
    write(learner, FIRST)
    write(learner, course().task("1.2"), "return c", "raise RuntimeError('not this one')")
    assert judge.judge(learner, FIRST).passed


def test_windows_line_ends_are_no_matter(learner: Workspace) -> None:
    write(learner, FIRST)
    path = learner.folder / FIRST.file
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert judge.judge(learner, FIRST).passed


@pytest.mark.skipif(bool(REASONS.get("stage3_c")), reason=str(REASONS.get("stage3_c")))
def test_a_compilers_error_names_the_learners_file_and_line(learner: Workspace) -> None:
    task = course().task("6.2")
    text = learner.text(task.file)
    place = learner.place(task)
    body = text.splitlines(keepends=True)[place.first - 1] + "    does_not = exist;\n}\n"
    (learner.folder / task.file).write_text(replaced(text, place, body), encoding="utf-8")
    verdict = judge.judge(learner, task)
    line = find(learner.text(task.file), task.function, task.file).first + 1
    assert verdict.failed_check == "compile"
    assert f"{learner.folder / task.file}:{line}" in verdict.what + verdict.more


def graded_by(made: list[Check], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, object]]]:
    """What the child process tells of a task with these checks."""
    monkeypatch.setattr(child.grading, "task_checks", lambda task: made)
    monkeypatch.setattr(child, "limit_memory", lambda *limit: None)
    told: list[tuple[str, dict[str, object]]] = []
    request = {"task": "1.1", "megabytes": 1}
    child.grade(request, Assembly({}, ""), lambda event, **more: told.append((event, more)))
    return told


def test_a_task_without_checks_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Wrong, match="nothing is graded here"):
        graded_by([], monkeypatch)


def test_a_check_that_compares_nothing_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Wrong, match="the check shape compared nothing"):
        graded_by([Check("shape", lambda tally: None)], monkeypatch)


def test_checks_out_of_order_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="expected that of"):
        graded_by([Check("values", lambda tally: None), Check("shape", lambda tally: None)], monkeypatch)


EXPECTED = np.arange(1.0, 7).reshape(2, 3)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        (EXPECTED.T, "transposed"),
        (-EXPECTED, "wrong sign"),
        (4 * EXPECTED, "4 times too large"),
        (EXPECTED / 4, "4 times too small"),
        (0 * EXPECTED, "all zeros"),
        (EXPECTED * np.nan, "nothing was written"),
        (np.where(EXPECTED == 5, np.nan, EXPECTED), "not every element is written: the first that is not is [1, 1]"),
        (EXPECTED.ravel(), "as many numbers as there should be"),
        (EXPECTED + 1e-7, "nearly right"),
        (EXPECTED + 1, ""),
        (EXPECTED, ""),
    ],
)
def test_what_numbers_alone_tell_is_recognised(got: np.ndarray, says: str) -> None:
    found = likely_cause(got, EXPECTED, "", [], ())
    assert says in found
    assert bool(found) == bool(says)


def test_of_a_result_that_was_made_by_the_call_a_nan_was_computed() -> None:
    one = np.where(EXPECTED == 5, np.nan, EXPECTED)
    assert likely_cause(EXPECTED * np.nan, EXPECTED, "", [], (), fresh=True).startswith("NaN was computed: inf - inf")
    assert likely_cause(one, EXPECTED, "", [], (), fresh=True).startswith("NaN was computed, first at [1, 1]: ")
    assert "NaN was computed" in likely_cause(EXPECTED * np.nan, EXPECTED, "", [], ())  # or it was there before


def exercise(call: Callable[[], Any], expected: Any, fresh: bool = False) -> Exercise:
    return Exercise(call, lambda: expected, lambda: "f()", [((), expected)], lambda rng, size: (), 1, [1], fresh=fresh)


def raised_by(name: str, graded: Exercise) -> Wrong:
    with pytest.raises(Wrong) as raised:
        next(check for check in checks_of(graded) if check.name == name).run(Tally())
    return raised.value


def test_an_exercise_says_whether_a_nan_can_have_been_there_before_the_call() -> None:
    made = np.full((2, 3), np.nan)
    assert raised_by("values", exercise(lambda: made, EXPECTED)).cause.startswith("nothing was written")
    assert raised_by("values", exercise(lambda: made, EXPECTED, fresh=True)).cause.startswith("NaN was computed")


@pytest.mark.parametrize(
    ("result", "what"),
    [
        ("text" * 1000, "f(): expected numbers"),
        (["7.0"] * 1000, "f(): expected numbers"),
        ({"w": "text" * 1000}, "f(): expected numbers"),
        ([[{1: "x" * 1000}], [{}]], "f(): expected numbers"),
        (zip([1], [2], strict=True), "f(): expected numbers"),
        ([[1.0] * 1000, [1.0]], "f(): the rows do not have one length"),
    ],
)
def test_a_result_without_a_shape_is_told_in_short(result: Any, what: str) -> None:
    wrong = raised_by("shape", exercise(lambda: result, EXPECTED))
    assert wrong.what == what
    assert wrong.expected == "numbers of shape (2, 3)"
    assert 0 < len(wrong.got) <= 160


@pytest.mark.parametrize(
    ("result", "got", "cause"),
    [
        (EXPECTED, "ndarray", "this floor uses no NumPy"),
        (list(EXPECTED), "ndarray within a list", "this floor uses no NumPy"),
        ([[np.float64(1)] * 3] * 2, "float64 within a list", "this floor uses no NumPy"),
        ([(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)], "tuple within a list", "a tuple cannot be changed in place"),
        ([["1.0"] * 3] * 2, "str within a list", "float(...)"),
        ([[True] * 3] * 2, "bool within a list", "True and False are no numbers here"),
    ],
)
def test_the_first_floor_takes_only_lists_of_pythons_own_numbers(result: Any, got: str, cause: str) -> None:
    with pytest.raises(Wrong, match=r"^f\(\): expected numbers of Python's own$") as raised:
        on_lists.graded(exercise(lambda: result, EXPECTED))[0].run(Tally())
    assert (raised.value.expected, raised.value.got) == ("a list of lists of floats", got)
    assert cause in raised.value.cause


def test_the_first_floor_takes_whole_numbers_for_floats() -> None:
    on_lists.graded(exercise(lambda: [[1, 2, 3], [4, 5, 6.0]], EXPECTED))[0].run(Tally())


GCC = """/tmp/t.c: In function 'f':
/tmp/t.c:5:21: error: {0}
    5 |   for (int i = 0; i < n; i++) c[i] = s;
/tmp/t.c:9:45: error: unused parameter 'b' [-Werror=unused-parameter]
"""


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (
            "comparison of integer expressions of different signedness: 'int' and 'size_t' {aka 'long unsigned int'} "
            "[-Werror=sign-compare]",
            "count with size_t, as the sizes are",
        ),
        ("comparison of integers of different signs: 'int' and 'size_t' [-Werror,-Wsign-compare]", "with size_t"),
        ("implicit conversion changes signedness: 'int' to 'unsigned long' [-Werror,-Wsign-conversion]", "with size_t"),
        ("conversion from 'size_t' {aka 'long unsigned int'} to 'int' may change value [-Werror=conversion]", "size_t"),
        (
            "conversion from 'double' to 'real' {aka 'float'} may change value [-Werror=float-conversion]",
            "(real)s says that you mean it",
        ),
        (
            "implicit conversion loses floating-point precision: 'double' to 'real' (aka 'float') "
            "[-Werror,-Wimplicit-float-conversion]",
            "(real)s says that you mean it",
        ),
        (
            "implicit declaration of function 'printf' [-Werror=implicit-function-declaration]",
            "printf is declared in stdio.h: write #include <stdio.h> at the top of the file",
        ),
        (
            "call to undeclared library function 'memset' with type 'void *(void *, int, unsigned long)'; ISO C99 and "
            "later do not support implicit function declarations [-Wimplicit-function-declaration]",
            "write #include <string.h>",
        ),
        ("implicit declaration of function 'foo' [-Wimplicit-function-declaration]", "no function foo is declared"),
        ("unused parameter 'values' [-Werror=unused-parameter]", "your code never looks at the argument values"),
        ("unused parameter 'values' [-Werror,-Wunused-parameter]", "your code never looks at the argument values"),
        ("conversion from 'double' to 'int' may change value [-Werror=float-conversion]", ""),
        ("expected ';' before '}' token", ""),
    ],
)
def test_a_compilers_first_error_is_told_in_the_courses_words(error: str, hint: str) -> None:
    text = GCC.format(error)
    found = compile_hint(text)
    assert hint in found
    assert bool(found) == bool(hint)
    assert compile_hint(re.sub(r"'(\S+)'", "\u2018\\1\u2019", text)) == found  # as gcc writes it in UTF-8


def test_a_guess_is_told_only_where_it_gives_what_came_out() -> None:
    mistakes = [
        Mistake("rows", lambda z: z / z.sum(axis=1, keepdims=True)),
        Mistake("columns", lambda z: z / z.sum(axis=0)),
    ]
    wrong = EXPECTED / EXPECTED.sum(axis=0)
    right = EXPECTED / EXPECTED.sum(axis=1, keepdims=True)
    assert likely_cause(wrong, right, "", mistakes, (EXPECTED,)) == "columns"
    assert likely_cause(right + 0.1, right, "", mistakes, (EXPECTED,)) == ""


def test_a_guess_that_is_right_by_chance_is_not_told() -> None:
    """With one column both axes may agree: then the number is wrong for another reason."""
    mistakes = [Mistake("never", lambda z: z)]
    assert likely_cause(EXPECTED, EXPECTED, "", mistakes, (EXPECTED,)) == ""


def test_a_tally_counts_each_comparison_and_shows_the_worst_place() -> None:
    tally = Tally()
    tally.equal(EXPECTED, EXPECTED, case="f(x)")
    with pytest.raises(Wrong, match=r"f\(x\): wrong at index \[1, 2\]") as raised:
        tally.equal(np.where(EXPECTED == 6, 7, EXPECTED), EXPECTED, case="f(x)")
    assert (raised.value.expected, raised.value.got, tally.count) == ("6", "7", 2)


def test_numbers_that_read_the_same_are_told_with_all_digits_and_their_distance() -> None:
    with pytest.raises(Wrong, match=r"^f\(x\): wrong, by 9.4e-14 where rounding allows 3.6e-15$") as raised:
        Tally().equal(1 - 9.4e-14, 1.0, case="f(x)")
    assert (raised.value.expected, raised.value.got) == ("1", "0.99999999999990596")
    assert "clamped" in raised.value.cause


def test_a_time_is_the_median_of_ratios_taken_in_turn() -> None:
    clock = {"now": 0.0}

    def takes(seconds: float) -> None:
        clock["now"] += seconds

    original = time.perf_counter
    try:
        time.perf_counter = lambda: clock["now"]  # type: ignore[assignment]
        assert times_slower(lambda: takes(3.0), lambda: takes(1.0)) == pytest.approx(3.0)
    finally:
        time.perf_counter = original


def test_what_a_process_holds_is_known() -> None:
    assert memory_limit.resident_bytes() > 10 * memory_limit.MEGABYTE


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_grading_ends_when_who_asked_for_it_is_gone(learner: Workspace, tmp_path: Path) -> None:
    """A closed terminal ends the command, not its child: an endless loop would go on for ever."""
    note = tmp_path / "pid"
    lines = [f"import os; open({str(note)!r}, 'w').write(str(os.getpid()))", "while True: pass"]
    write(learner, FIRST, "    return c", "\n".join(f"    {line}" for line in lines))
    code = "import sys; from groundup.cli import main; main(['learn', '--folder', sys.argv[1], 'check', '1.1'])"
    asking = subprocess.Popen([sys.executable, "-c", code, str(learner.folder)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (note.exists() and note.read_text()):
        time.sleep(0.05)
    asking.kill()
    asking.wait()
    pid = int(note.read_text())
    while time.monotonic() < deadline and _alive(pid):
        time.sleep(0.05)
    assert not _alive(pid)
