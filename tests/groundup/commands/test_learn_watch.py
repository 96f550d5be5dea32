"""`groundup learn watch` on a terminal, through a pseudo-terminal: keys, progress, and checks that are cancelled."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from groundup.commands.learn_watch import editor_command, progress
from groundup.course.learner.learners_folder import locate
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import course
from shared.machine import processes
from tests.groundup.course.course_helpers import mark_passed, write
from tests.interrupts import heard
from tests.wide import wide

FIRST = course().task("1.1")
CLEAR = "\x1b[2J"
PATIENCE = 600
"""Seconds: two cores may be busy with other tests."""


class Terminal:
    """The command, on a pseudo-terminal."""

    def __init__(self, folder: Path, editor: str) -> None:
        import pty
        import termios

        self.main, self.end = pty.openpty()
        self.before: Any = termios.tcgetattr(self.end)
        variables = processes.finding_our_packages(os.environ) | {"EDITOR": editor, "VISUAL": "", "TERM": "xterm"}
        command = [sys.executable, "-c", "from groundup.cli import main; main(['learn', 'watch'])"]
        with heard():
            self.child = processes.start(
                command, folder=folder, variables=variables, stdin=self.end, stdout=self.end, stderr=self.end
            )
        self.read = ""

    def press(self, key: str) -> None:
        os.write(self.main, key.encode())

    def until(self, *texts: str) -> str:
        """The newest screen, once it has these texts. What was on it does not count again."""
        last = time.monotonic() + PATIENCE
        while not all(text in self.screen() for text in texts):
            assert time.monotonic() < last, f"{texts} did not come: {self.screen()!r}"
            if select.select([self.main], [], [], 0.1)[0]:
                self.read += os.read(self.main, 1 << 16).decode(errors="replace")
        shown, self.read = self.screen(), ""
        return shown

    def screen(self) -> str:
        """What was written since the screen was last cleared, without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.read.rpartition(CLEAR)[2])


@pytest.fixture
def terminal(learner: Workspace, tmp_path: Path) -> Iterator[Terminal]:
    if sys.platform == "win32":
        pytest.skip("Windows has no pseudo-terminals of this kind")
    script = "import sys; open('opened.txt', 'w').write(' '.join(sys.argv[1:]))"
    made = Terminal(learner.folder, shlex.join([sys.executable, "-c", script]))
    yield made
    processes.end(made.child)
    os.close(made.main)
    os.close(made.end)


def waited(condition: Callable[[], Any]) -> None:
    """Wait until the condition holds."""
    last = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.05)


def runs(process: int) -> bool:
    """Whether a process of this number runs; one that has ended may wait for somebody to ask how (Linux calls it Z)."""
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat")
        return not status.is_file() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@wide
def test_keys_a_cancelled_check_and_a_pass(learner: Workspace, terminal: Terminal) -> None:
    import termios

    shown = terminal.until("not written yet", "q quit")
    assert f"0 of {len(course().tasks)} passed; now 1.1" in shown
    terminal.press("h")
    terminal.until("1.1, hint 1 of 3, an idea:", "q quit")
    terminal.press("l")
    terminal.until("6 Seeing", FIRST.title, "q quit")
    terminal.press("e")
    terminal.until("not written yet", "q quit")
    opened = (learner.folder / "opened.txt").read_text(encoding="utf-8")
    assert opened == f"+{learner.place(FIRST).first} {learner.folder / FIRST.file}"
    sleeping = learner.folder / "sleeping.txt"
    sleeps = f"    import os, time; open({str(sleeping)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    write(learner, FIRST, "    return c", sleeps)
    terminal.until("checking ...")
    waited(lambda: sleeping.is_file() and sleeping.read_text(encoding="utf-8"))
    write(learner, FIRST)
    shown = terminal.until("next: 1.2", "q quit")
    waited(lambda: not runs(int(sleeping.read_text(encoding="utf-8"))))
    assert "passed in" in shown
    assert f"1 of {len(course().tasks)} passed; now 1.2" in shown, "it goes on by itself"
    terminal.press("n")
    terminal.until("now 1.2", "not written yet")
    terminal.press("q")
    assert terminal.child.wait(PATIENCE) == 0
    assert termios.tcgetattr(terminal.end) == terminal.before, "the terminal is left as it was"
    assert locate(learner.folder, course()).record.of("1.1").hints == 1


@wide
def test_a_task_of_another_file_is_graded_when_it_is_saved_and_leads_there(
    learner: Workspace, terminal: Terminal
) -> None:
    terminal.until("not written yet", "q quit")
    write(learner, course().task("2.2"), "return", "return -")
    shown = terminal.until("2.2 ", "failed", "q quit")
    assert "now 2.2" in shown
    os.kill(terminal.child.pid, signal.SIGINT)
    terminal.until("not watching any more")
    assert terminal.child.wait(PATIENCE) == 0
    assert locate(learner.folder, course()).record.current == "2.2"


def test_the_line_of_progress_counts_what_has_passed(learner: Workspace) -> None:
    write(learner, FIRST)
    mark_passed(learner, FIRST)
    total = len(course().tasks)
    assert progress(learner, FIRST) == f"[{'-' * 40}] 1 of {total} passed; now 1.1"
    for task in course().tasks:
        learner.record.of(task.id).state = "skipped"
    assert progress(learner, FIRST).endswith(f"0 of {total} passed; now 1.1")


@pytest.mark.parametrize(
    ("chosen", "command"),
    [
        ("vi", ["vi", "+7", "a.py"]),
        ("nano -m", ["nano", "-m", "+7", "a.py"]),
        ("code --wait", ["code", "--wait", "-g", "a.py:7"]),
        ("/usr/bin/subl", ["/usr/bin/subl", "a.py:7"]),
    ],
)
def test_an_editor_opens_the_file_at_the_functions_line(chosen: str, command: list[str]) -> None:
    assert editor_command(chosen, Path("a.py"), 7) == command
