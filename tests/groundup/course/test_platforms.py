"""What the course does on Windows and macOS, as far as it can be seen from here."""

import ctypes
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any

from groundup.course import assembly
from groundup.course.judging import judge, memory_limit
from groundup.course.judging.verdict import CRASHES, verdict_of
from groundup.course.learner.learners_folder import start
from groundup.course.manifest import course
from tests.groundup.course.course_helpers import new_folder, write

FIRST = course().task("1.1")
WINDOWS_FILE = str(PureWindowsPath("C:/Users/Jörg Å/groundup-course/stage3_c/csrc/dense.c"))


def test_a_crash_on_windows_is_told_like_one_elsewhere() -> None:
    """Windows has no signals: the exit code of a process that touched memory that is not its own is 0xC0000005."""
    verdict = verdict_of([{"event": "trying", "text": "ijk(a, b)"}], 0xC0000005, "", 1.0, 1.0)
    assert "while trying ijk(a, b)" in verdict.what
    assert verdict.cause == CRASHES["SIGSEGV"]


def test_memory_is_asked_of_windows_by_its_own_call() -> None:
    def tell(process: Any, counters: Any, size: int) -> int:
        assert process == 42
        assert size == counters._obj.size == ctypes.sizeof(memory_limit._Counters)
        counters._obj.working_set = 123 * memory_limit.MEGABYTE
        return 1

    class Call:
        def __init__(self, function: Any) -> None:
            self.function, self.restype, self.argtypes = function, None, None

        def __call__(self, *arguments: Any) -> Any:
            return self.function(*arguments)

    kernel = SimpleNamespace(
        GetCurrentProcess=Call(lambda: 42),
        K32GetProcessMemoryInfo=Call(lambda process, counters, size: tell(process, counters, size)),
    )
    assert memory_limit.working_set(kernel) == 123 * memory_limit.MEGABYTE


def test_a_windows_path_survives_a_line_directive() -> None:
    text = assembly._with_line_directives([("int a;\n", 7)], WINDOWS_FILE)
    assert text.splitlines()[0] == '#line 7 "' + WINDOWS_FILE.replace("\\", "\\\\") + '"'


def test_places_in_messages_are_told_as_the_learners_on_windows_too() -> None:
    built = str(PureWindowsPath("C:/w/.groundup/check/9.1/stage4_numba_cuda/kernels/dense.py"))
    mine = str(PureWindowsPath("C:/w/stage4_numba_cuda/kernels/dense.py"))
    made = assembly.Assembly({}, "", {built: [0, 0, 11, 12]}, {built: mine})
    assert made.told(f"{built}:4: index out of bounds") == f"{mine}:12: index out of bounds"
    assert made.told(f'File "{built}", line 3, in multiply') == f'File "{mine}", line 11, in multiply'
    assert made.told(f"{built}:1: out of bounds").endswith("dense.py: out of bounds")
    assert made.told(f"{built}:1: out of bounds").startswith("the project's own part of ")


def test_files_are_written_with_the_same_line_ends_everywhere(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    for path in learner.folder.rglob("*.py"):
        assert b"\r" not in path.read_bytes()


def test_files_of_a_windows_editor_are_read_and_reset(tmp_path: Path) -> None:
    learner = new_folder(tmp_path / "course")
    write(learner, FIRST)
    path = learner.folder / FIRST.file
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    learner.reset(FIRST)
    assert learner.is_stub(FIRST)


def test_the_folder_may_lie_on_a_path_with_spaces_and_letters_of_any_alphabet(tmp_path: Path) -> None:
    learner, _ = start(tmp_path / "Eigene Dateien" / "学習", course())
    write(learner, FIRST)
    assert judge.judge(learner, FIRST).passed
