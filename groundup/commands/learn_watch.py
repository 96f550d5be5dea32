"""`groundup learn watch` on a terminal: the verdict on a cleared screen, a line of progress, and keys.

A check runs in a process of its own, as `groundup learn check`. So it can be cancelled when the file is saved again,
and keys are answered while it runs. Without a terminal the command watches by groundup/course/rules/watching.py.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import typer

from groundup.commands.keyboard import Pressed, keys, lines
from groundup.commands.learn_output import place_of, show_hint, show_status
from groundup.course.learner import record as record_file
from groundup.course.learner.workspace import Workspace
from groundup.course.manifest import Task
from groundup.course.rules.hints import take_hint
from groundup.course.rules.order import next_task
from groundup.course.rules.watching import LOOK_EVERY, Saves, followed, passed_before
from shared.machine import processes
from shared.terminal import TextConsole, say

KEYS = "h hint   n next task   l list   e editor   c check again   q quit"

BAR = 40
"""Characters of the progress bar."""

CLEAR = "\x1b[2J\x1b[3J\x1b[H"
"""Clears the terminal, with what has scrolled out of it, and goes to its first line."""

AT_LINE = {"code": ["-g", "{file}:{line}"], "codium": ["-g", "{file}:{line}"], "subl": ["{file}:{line}"]}
"""How an editor is told the line; the others take +LINE FILE, as vi, emacs and nano do."""


@dataclass
class RunningCheck:
    """`groundup learn check` of some tasks, in a process of its own.

    tasks: those that it grades; had_passed: those of them that had passed before; output: what it has printed
    """

    tasks: list[Task]
    had_passed: list[Task]
    child: subprocess.Popen[bytes]
    output: IO[bytes]

    def printed(self) -> str:
        """All that the check printed, once it has ended."""
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    def end(self) -> None:
        """Cancel the check, if it still runs. The process that grades sees that its parent is gone, and ends, too."""
        processes.end(self.child)
        self.output.close()


def start_check(workspace: Workspace, tasks: list[Task]) -> RunningCheck:
    """Start the check of these tasks."""
    arguments = ["learn", "--folder", str(workspace.folder), "check", *(task.id for task in tasks)]
    command = processes.python("-c", "from groundup.cli import main; main()", *arguments)
    variables = processes.finding_our_packages(os.environ) | {"PYTHONIOENCODING": "utf-8"}
    if TextConsole().color_system:
        variables["FORCE_COLOR"] = "1"
    output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by RunningCheck.end
    child = processes.start(
        command, variables=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
    )
    return RunningCheck(tasks, passed_before(workspace, tasks), child, output)


@dataclass
class Screen:
    """What the learner sees, and what runs.

    stay: whether this task alone is watched; check: the one that runs; verdict: what the last one printed
    shown: what is shown in place of the verdict, such as "hint"; "" for the verdict
    unreadable: whether the file could not be read when it was looked at last
    """

    workspace: Workspace
    task: Task
    stay: bool = False
    check: RunningCheck | None = None
    verdict: str = ""
    shown: str = ""
    unreadable: bool = False
    actions: dict[str, Callable[[], None]] = field(init=False)

    def __post_init__(self) -> None:
        self.actions = {"h": self.hint, "n": self.next, "l": self.list_all, "e": self.editor, "c": self.again}
        self.saves = Saves(self.workspace, self.stay)
        self.due, self.graded = [self.task], list[Task]()

    def look(self) -> None:
        """Start a check of what was saved; show the verdict if the check has ended."""
        try:
            self.workspace.text(self.task.file)
            saved = self.saves.look(self.task)
        except ValueError as error:  # an editor moves a file away for a moment while it saves
            if self.shown != str(error):
                self.say(str(error), str(error))
                self.unreadable = True
            return
        if self.unreadable:
            self.unreadable = False
            self.draw_verdict()
        self.due += [task for task in saved if task not in self.due]
        if self.due:
            # What a check that is cancelled was to grade is graded now.
            tasks = [*(self.check.tasks if self.check else []), *self.due]
            self.cancel()
            self.due, tasks = [], list(dict.fromkeys(tasks))
            self.check = start_check(self.workspace, tasks)
            places = "\n".join(place_of(self.workspace, task) for task in tasks)
            self.say(f"{places}\n\nchecking ...")
        elif self.check is not None and self.check.child.poll() is not None:
            self.verdict = self.check.printed()
            self.read_record()
            self.graded = self.check.tasks
            before = self.check.had_passed
            self.task, line = followed(self.workspace, self.task, self.graded, before, self.stay)
            self.verdict += f"{line}\n" * bool(line)
            self.cancel()
            self.draw_verdict()

    def press(self, key: str) -> bool:
        """Do what a key stands for; any other key shows the verdict again. Returns False for quit."""
        if key in ("q", "\x04"):
            return False
        self.read_record()
        self.actions.get(key.lower(), self.draw_verdict)()
        return True

    def hint(self) -> None:
        """The next hint of the task."""
        level = take_hint(self.workspace, self.task, None)
        self.draw(lambda: show_hint(self.task, level), "hint")

    def next(self) -> None:
        """The next task that has neither passed nor been skipped. This one is not skipped by it.

        After a pass the next task is watched already, and is checked now.
        """
        if self.task not in self.graded:
            self.again()
            return
        following = next_task(self.workspace, self.task)
        if following is None:
            self.say("There is no other task: every other one has passed or was skipped.", "next")
            return
        self.task = following
        self.again()

    def again(self) -> None:
        """Check the file although it was not saved."""
        self.cancel()
        self.due, self.verdict = [self.task], ""
        self.look()

    def list_all(self) -> None:
        """The tasks of the current week, and how far each phase is, which fits a screen; pressed again, the verdict."""
        if self.shown == "list":
            self.draw_verdict()
        else:
            self.draw(self.show_list, "list")

    def show_list(self) -> None:
        """The state of the current week, and the command that shows every week."""
        show_status(self.workspace, False)
        say("\nevery task: groundup learn status --all")

    def editor(self) -> None:
        """Open the task's function in the learner's editor."""
        chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not chosen:
            place = place_of(self.workspace, self.task)
            self.say(f"No editor is chosen: set EDITOR, as in EDITOR=nano. The task is in\n{place}", "editor")
            return
        command = editor_command(chosen, self.workspace.folder / self.task.file, self._line())
        try:
            with lines():
                code = subprocess.run(command, check=False).returncode
        except OSError as error:
            self.say(f"{chosen} could not be started: {error.strerror}; set EDITOR to another editor", "editor")
            return
        if code:
            self.say(f"{chosen} ended with exit code {code}", "editor")
        else:
            self.draw_verdict()

    def read_record(self) -> None:
        """Read progress.toml again: a check writes it, or another terminal."""
        with contextlib.suppress(ValueError, OSError):  # another program writes it just now
            self.workspace.record = record_file.load(self.workspace.folder / record_file.NAME)

    def _line(self) -> int:
        with contextlib.suppress(ValueError):
            return self.workspace.place(self.task).first
        return 1

    def cancel(self) -> None:
        """End the check that runs, if there is one."""
        if self.check is not None:
            self.check.end()
            self.check = None

    def say(self, text: str, shown: str = "") -> None:
        """Show a text in place of the verdict."""
        self.draw(lambda: say(text), shown)

    def draw_verdict(self) -> None:
        """The last verdict; while a check runs, that it does."""
        running = "checking ...\n" if self.check is not None else ""
        self.draw(lambda: typer.echo(self.verdict + running, nl=False))  # with the colours of the check's own console

    def draw(self, content: Callable[[], None], shown: str = "") -> None:
        """Clear the screen; the line of progress, the content, and the keys."""
        self.shown = shown
        self.read_record()
        typer.echo(CLEAR + progress(self.workspace, self.task) + "\n")
        content()
        say(f"\n{KEYS}")


def progress(workspace: Workspace, task: Task) -> str:
    """The line of progress: how many of all tasks have passed, and which one is watched."""
    tasks = workspace.course.tasks
    passed = sum(workspace.passed(each) for each in tasks)
    done = BAR * passed // len(tasks)
    return f"[{'#' * done}{'-' * (BAR - done)}] {passed} of {len(tasks)} passed; now {task.id}"


def editor_command(chosen: str, file: Path, line: int) -> list[str]:
    """The command that opens a file at a line. chosen: the editor's own command, with its options"""
    parts = shlex.split(chosen, posix=os.name != "nt")
    how = AT_LINE.get(Path(parts[0]).stem, ["+{line}", "{file}"])
    return [*parts, *(each.format(file=file, line=line) for each in how)]


def watch(workspace: Workspace, task: Task, stay: bool) -> None:
    """Watch the learner's files, or with stay this task alone, on the terminal until the learner quits."""
    screen = Screen(workspace, task, stay)
    try:
        with keys() as pressed:
            _until_quit(screen, pressed)
    finally:
        screen.cancel()


def _until_quit(screen: Screen, pressed: Pressed) -> None:
    while True:
        screen.look()
        try:
            key = pressed(LOOK_EVERY)
        except EOFError:
            return
        if key and not screen.press(key):
            return
