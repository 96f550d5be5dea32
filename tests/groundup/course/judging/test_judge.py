"""Whatever a learner's code does, there is a verdict that says so, and no process is left behind."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from groundup.course.judging import judge, memory_limit, surroundings
from groundup.course.learner.functions import find, replaced
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from shared.machine import processes
from tests.groundup.course.course_helpers import new_folder, write
from tests.interrupts import heard
from tests.stages import REASONS
from tests.wide import widely

FIRST = course().task("1.1")


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv(judge.SECONDS_VARIABLE, "600")  # the usual time does not suffice on a busy machine
    return new_folder(tmp_path / "my course, größer")  # a space and an umlaut: Windows' home folders have them


@pytest.mark.parametrize(
    ("line", "what", "cause"),
    [
        ("import sys; sys.exit(3)", "it called sys.exit(3)", "it does not exit"),
        ("import os; os._exit(0)", "the process ended by itself, with exit code 0", "ends the process"),
        ("return [[1.0] * 10**12]", "it asked for more memory than it may have", "wrong numbers"),
        ("return None", "nothing came back", "no return?"),
        *widely(
            [
                ("return index_loops(a, b)", "RecursionError", ""),
                ("input()", "EOFError", ""),
                ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'", ""),
                ("return undefined", "NameError: name 'undefined' is not defined", ""),
                ("return 'text'", "expected numbers", ""),
                ("return [[1.0], [1.0, 2.0]]", "the rows do not have one length", ""),
            ],
            first=0,
        ),
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


@pytest.fixture
def limit(learner: Workspace, monkeypatch: pytest.MonkeyPatch) -> int:
    """A time limit that leaves time to begin, however busy the machine is: several times what the imports take now."""
    begin = time.monotonic()
    subprocess.run(processes.python("-c", "import groundup.course.judging.child"), check=True)
    seconds = 2 + math.ceil(4 * (time.monotonic() - begin))
    monkeypatch.setenv(judge.SECONDS_VARIABLE, str(seconds))
    return seconds


def test_an_endless_loop_is_ended(learner: Workspace, limit: int) -> None:
    write(learner, FIRST, "    return c", "    while True: pass")
    verdict = judge.judge(learner, FIRST)
    assert f"it did not end within {limit} seconds while trying index_loops" in verdict.what
    assert verdict.failed_check == "shape"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's warden measures the processor time")
def test_a_function_that_waits_is_told_how_little_it_computed(learner: Workspace, limit: int) -> None:
    write(learner, FIRST, "    return c", "    import time; time.sleep(600)")
    assert f"is the machine busy? Of {limit} seconds it computed for " in judge.judge(learner, FIRST).cause


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")
def test_processes_that_the_learners_code_started_are_ended_too(learner: Workspace, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    sleeper = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    lines = ["import subprocess, sys", f"open({str(note)!r}, 'a').write(str({sleeper}.pid) + chr(10))", "return c"]
    write(learner, FIRST, "    return c", "\n".join(f"    {line}" for line in lines))
    # A program of its own could do the exercise; and those of all repeated calls together are too many.
    assert judge.judge(learner, FIRST).failed_check in ("again", "way")
    assert all_ended(note) > 0


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to another process than the first")


def graded_with(learner: Workspace, *lines: str) -> judge.Verdict:
    """The verdict on the first exercise when it does these lines before it returns."""
    write(learner, FIRST, "    return c", "\n".join(f"    {line}" for line in [*lines, "return c"]))
    return judge.judge(learner, FIRST)


@LINUX
@pytest.mark.parametrize("end", widely(["time.sleep(600)", "return c", "import ctypes; ctypes.string_at(0)"], 2))
def test_a_process_that_left_its_group_is_ended_too(
    learner: Workspace, tmp_path: Path, request: pytest.FixtureRequest, end: str
) -> None:
    if "sleep" in end:
        request.getfixturevalue("limit")
    note = tmp_path / "pid"
    daemon = (
        f"os.setsid(); os.fork() and os._exit(0); open({str(note)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    )
    first = f"first = not os.path.exists({str(note)!r})"  # a check calls the function many times
    noted = f"while not (os.path.exists({str(note)!r}) and os.path.getsize({str(note)!r})): time.sleep(0.01)"
    fork = ["if first and os.fork() == 0:", f"    {daemon}", noted]
    graded_with(learner, "import os, time", first, *fork, end)
    assert all_ended(note) > 0


@LINUX
def test_a_flood_of_processes_is_stopped_and_told(learner: Workspace) -> None:
    verdict = graded_with(
        learner, "import os, time", "for _ in range(100):", "    if os.fork() == 0: time.sleep(600)", "time.sleep(90)"
    )
    assert verdict.what.startswith("it started more processes than it may while trying index_loops(")
    assert verdict.what.endswith("and all were stopped")


@LINUX
def test_memory_counts_for_a_process_and_its_children_together(
    learner: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "OWN_MEGABYTES", -200)  # 300 MB in all, and each may take 500
    takes = "    if os.fork() == 0: x = bytearray(b'1') * (150 << 20); time.sleep(600)"
    verdict = graded_with(learner, "import os, time", "for _ in range(3):", takes, "time.sleep(90)")
    assert verdict.what.startswith("its processes took more memory together than a right answer needs")


@LINUX
def test_a_file_that_grows_without_end_is_an_error_of_the_learners(learner: Workspace, tmp_path: Path) -> None:
    big = tmp_path / "big"
    verdict = graded_with(
        learner,
        "import os",
        f"file = os.open({str(big)!r}, os.O_WRONLY | os.O_CREAT)",
        "os.pwrite(file, b'x', 2 << 30)",
    )
    assert "File too large" in verdict.what
    assert big.stat().st_size <= 1 << 30


@LINUX
@heard()
def test_grading_that_is_interrupted_leaves_no_process(learner: Workspace, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    write(
        learner,
        FIRST,
        "    return c",
        # The function never returns: the grader waits for it, however busy the machine is.
        f"    import os, time\n    if os.fork() == 0:\n        os.setsid()\n        os.fork()\n"
        f"    open({str(note)!r}, 'a').write(f'{{os.getpid()}} ')\n    time.sleep(600)\n    return c",
    )

    def interrupt() -> None:
        while len(note.read_text().split() if note.exists() else ()) < 3:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        judge.judge(learner, FIRST)
    assert all_ended(note) == 3


def all_ended(note: Path) -> int:
    """The number of processes whose numbers a file holds, when all of them have ended."""
    started = [int(word) for word in note.read_text().split()]
    deadline = time.monotonic() + 100
    while any(map(_alive, started)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return len(started)


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
    assert f"{verdict.what}\n{verdict.more}".count(f"{learner.folder / task.file}:{line}:5: error: ") == 1


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
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and not (note.exists() and note.read_text()):
        time.sleep(0.05)
    asking.kill()
    asking.wait()
    assert all_ended(note) == 1


def test_exercises_are_graded_on_the_emulator_unless_the_learner_names_another_backend(monkeypatch):
    monkeypatch.delenv(surroundings.BACKEND, raising=False)
    assert surroundings.variables()["GROUNDUP_CUDA"] == "emulator"
    assert "GROUNDUP_CUDA" not in surroundings.variables(checkpoint=True)  # it trains on the GPU, if there is one
    monkeypatch.setenv("GROUNDUP_CUDA", "")
    assert surroundings.variables()["GROUNDUP_CUDA"] == "emulator"
    monkeypatch.setenv("GROUNDUP_CUDA", "gpu")
    assert [surroundings.variables(each)["GROUNDUP_CUDA"] for each in (False, True)] == ["gpu", "gpu"]
