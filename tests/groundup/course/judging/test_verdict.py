"""A verdict is what the child process's events say: the check that failed, what was tried, and why it ended."""

import signal
from typing import Any

import pytest

from groundup.course.judging.verdict import Verdict, told_once, verdict_of

TRIED: list[dict[str, Any]] = [
    {"event": "check", "name": "shape"},
    {"event": "trying", "text": "f(1)"},
    {"event": "passed", "name": "shape", "comparisons": 4},
    {"event": "note", "text": "2 ms"},
    {"event": "check", "name": "values"},
    {"event": "trying", "text": "f(2)"},
]


def told(*events: dict[str, Any], code: int | None = 1, before: list[dict[str, Any]] = TRIED) -> Verdict:
    return verdict_of([*before, *events], code, " printed\n", limit=4.0, took=0.5)


def raised(kind: str, text: str, file: str = "week.py", traceback: str = "") -> dict[str, Any]:
    place = {"file": file, "line": 3, "source": "x = y"}
    return {"event": "raised", "type": kind, "text": text, "notes": ["a note"], "traceback": traceback, **place}


def test_all_checks_that_passed_are_told_and_what_was_printed() -> None:
    found = told({"event": "done"}, code=0)
    assert found == Verdict(True, "", (("shape", 4),), notes=("2 ms",), printed="printed", seconds=0.5)


def test_what_is_wrong_is_told_with_its_check() -> None:
    found = told({"event": "wrong", "what": "f(2): wrong", "expected": "1", "got": "2", "line": 7})
    assert (found.passed, found.failed_check, found.passed_checks) == (False, "values", (("shape", 4),))
    assert (found.what, found.expected, found.got, found.line) == ("f(2): wrong", "1", "2", 7)


@pytest.mark.parametrize(
    ("events", "code", "what", "cause"),
    [
        (["memory"], -9, "took more memory than a right answer needs while trying f(2), and was", "something grows"),
        (["memory together"], -9, "processes took more memory together than a right answer", "no processes of its own"),
        (["processes"], -9, "it started more processes than it may while trying f(2)", "no processes of its own"),
        ([], None, "it did not end within 4 seconds while trying f(2), and was stopped", "never ends"),
        ([], -signal.SIGSEGV, "the process crashed with SIGSEGV while trying f(2)", "outside an array"),
        ([], 0, "the process ended by itself, with exit code 0 while trying f(2)", "ends the process: os._exit"),
        ([], 0xC0000005, "the process ended by itself, with exit code 3221225477", "outside an array"),  # on Windows
    ],
)
def test_a_process_that_did_not_finish_has_failed_and_its_end_is_told(
    events: list[str], code: int | None, what: str, cause: str
) -> None:
    found = told(*({"event": each} for each in events), code=code)
    assert (found.passed, found.failed_check) == (False, "values")
    assert what in found.what
    assert cause in found.cause


@pytest.mark.parametrize(("computed", "busy"), [(1.4, True), (2.1, False), (7.0, False)])
def test_a_time_limit_on_a_busy_machine_is_told_with_the_way_to_more_time(computed: float, busy: bool) -> None:
    found = told({"event": "time", "computed": computed}, code=-9)
    assert found.what == "it did not end within 4 seconds while trying f(2), and was stopped"
    assert found.cause.endswith("a loop that never ends: does its condition ever become false?")
    more = "Of 4 seconds it computed for 1. Check again with more time, GROUNDUP_LEARN_SECONDS=20 groundup learn check"
    assert (more in found.cause, "is the machine busy?" in found.cause) == (busy, busy)


def test_what_ends_before_the_first_check_has_failed_at_its_import() -> None:
    assert told(code=3, before=[]).failed_check == "import"
    assert told(code=3, before=[]).what == "the process ended by itself, with exit code 3"
    assert told(raised("NameError", ""), before=[]).what == "NameError"


@pytest.mark.parametrize(
    ("kind", "text", "what", "cause"),
    [
        ("ValueError", "no", "ValueError: no while trying f(2)", ""),
        ("SystemExit", "1", "it called sys.exit(1) while trying f(2)", "a function returns"),
        ("MemoryError", "", "it asked for more memory than it may have while trying f(2)", "a size computed from"),
        ("ModuleNotFoundError", "no helper", "ModuleNotFoundError: no helper while trying f(2)", "put helpers into"),
        ("CompileError", "week.c: no", "week.c: no", ""),
    ],
)
def test_an_exception_is_told_with_its_place_and_what_was_tried(kind: str, text: str, what: str, cause: str) -> None:
    found = told(raised(kind, text))
    assert (found.passed, found.what, found.file, found.line, found.source) == (False, what, "week.py", 3, "x = y")
    assert cause in found.cause
    assert found.failed_check == ("compile" if kind == "CompileError" else "values")
    assert found.more == ("a note" if kind == "CompileError" else "")


def test_an_exception_without_a_line_of_the_learners_is_told_with_its_traceback() -> None:
    assert told(raised("ValueError", "no", file="", traceback="File x")).more == "a note\nFile x"


def test_a_compilers_first_error_is_told_once() -> None:
    message = "cannot compile (cc): week.c:3: error"
    assert told_once(message, ["week.c:3: error: too"]) == "cannot compile (cc)"
    assert told_once(message, ["another"]) == message
    assert told_once("cannot compile", [""]) == "cannot compile"
    assert told_once("cannot compile (cc): ", ["a note"]) == "cannot compile (cc): "


def test_the_keys_of_a_verdict_are_those_that_programs_read() -> None:
    document = told({"event": "wrong", "what": "f(2): wrong", "cause": "a sign", "picture": {}}).document()
    assert (document["rung"], document["rungs"], document["likely"]) == ("values", (("shape", 4),), "a sign")
    assert document["passed"] is False
    assert not {"picture", "failed_check", "passed_checks", "cause"} & set(document)
