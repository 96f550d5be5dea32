"""The learner's folder: copies of the stages' own files, in which the exercises are stubs.

    groundup-course/
        README.md           what this is, and the three commands that matter
        progress.toml       what is done
        stage1_pure_python/matmul.py, …     the files with exercises in them, the learner's to write in
        .groundup/          what groundup builds from them; may be deleted at any time

The files are the project's, whole, so an exercise is written where it belongs: among its neighbours, under the
docstring that says what it owes. Nothing in here is ever overwritten without a copy in .groundup/old.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from groundup.course import progress as progress_file
from groundup.course.functions import Place, find, function_text, replaced, stub, stub_line
from groundup.course.manifest import ROOT, Course, Task
from groundup.course.migration import PLACES, migrate
from groundup.course.progress import Progress
from shared.machine.atomic import write_atomically

DEFAULT = "groundup-course"
BUILT = ".groundup"
VARIABLE = "GROUNDUP_COURSE"

README = """\
# Your copy of groundup

You write every part of the network yourself, inside the project's own files. Each exercise is a function whose body is
missing; its docstring says what it has to do.

    groundup learn           where you are, and what is next
    groundup learn check     grade the current task
    groundup learn hint      a nudge; ask again for a plan, and again for nearly the code

`groundup learn --help` lists the rest: watch, solution, next, skip, reset, status, checkpoint. What you have done
stands in progress.toml. The folder .groundup holds what is built from your files, and copies of what was reset.

Start Python itself in another folder: in this one it would find your files before groundup's own.
"""


@dataclass
class Workspace:
    """A learner's folder, opened. Call `save` after changing `progress`."""

    folder: Path
    course: Course
    progress: Progress

    def save(self) -> None:
        """Write progress.toml."""
        progress_file.save(self.progress, self.folder / progress_file.NAME)

    @property
    def built(self) -> Path:
        """Where what is made of the learner's files goes."""
        return self.folder / BUILT

    def text(self, file: str) -> str:
        """The learner's text of a file. Raises ValueError where it is gone, or is no text."""
        path = self.folder / file
        try:
            return path.read_text(encoding="utf-8-sig")  # Windows' editors put a mark at the beginning
        except FileNotFoundError:
            fix = "groundup learn start brings back files that are missing, and touches no other"
            raise ValueError(f"{path} is not there any more; {fix}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8 text: {error}; save it as UTF-8") from None

    def place(self, task: Task) -> Place:
        """Where the task's function stands in the learner's file. Raises FunctionMissing where it does not."""
        return find(self.text(task.file), task.function, task.file, 0)

    def function(self, task: Task) -> str:
        """The learner's text of the task's function."""
        return function_text(self.text(task.file), self.place(task))

    def is_stub(self, task: Task) -> bool:
        """Whether the stub's error still stands in the task's function."""
        return bool(stub_line(self.function(task), task.week, task.number))

    def passed(self, task: Task) -> bool:
        """Whether the task has passed, and its function is still what passed."""
        record = self.progress.of(task.id)
        if record.state != "passed":
            return False
        try:
            return record.digest == progress_file.digest(self.function(task)) and not self.is_stub(task)
        except ValueError:  # the function, or its file, is gone or cannot be read: not what passed
            return False

    def reset(self, task: Task, whole_file: bool = False) -> Path | None:
        """Put the task's stub back, or every stub of its file with whole_file.

        Returns where the old file was copied, None where there was none.
        Raises FunctionMissing where the file cannot be parsed or lacks the function: then whole_file helps.
        """
        path = self.folder / task.file
        kept = self.keep(path)
        if whole_file:
            text = stubbed(task.file, self.course)
        else:
            original = solution_file(task.file)
            text = replaced(
                self.text(task.file),
                self.place(task),
                stub(original, task.function, task.file, task.message, task.keep),
            )
        write_atomically(path, text.encode())
        for each in self.course.tasks:
            if each.id == task.id or (whole_file and each.file == task.file):
                self.progress.records.pop(each.id, None)
        return kept

    def keep(self, path: Path) -> Path | None:
        """Copy a file to .groundup/old. Returns the copy, None where there is no such file."""
        if not path.is_file():
            return None
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for again in itertools.count(1):
            folder = self.built / "old" / (stamp if again == 1 else f"{stamp}-{again}")
            target = folder / path.relative_to(self.folder)
            if not target.exists():
                break
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
        return target


def start(folder: Path, course: Course) -> tuple[Workspace, list[str]]:
    """Make the folder, or add what is missing in one that is there. Returns it and the files that were written.

    Raises ValueError for a folder with other things in it.
    """
    folder = folder.absolute()
    state = folder / progress_file.NAME
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder that is not there yet")
    ours = state.is_file() or any((folder / file).is_file() for file in [*files(course), *PLACES])
    if folder.is_dir() and any(folder.iterdir()) and not ours:
        raise ValueError(f"{folder} has other things in it; name a folder that is empty or not there yet")
    folder.mkdir(parents=True, exist_ok=True)
    if not state.exists():
        progress_file.save(Progress(course.tasks[0].id), state)
    workspace = opened(folder, course)
    written = []
    for file in files(course):
        path = folder / file
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, stubbed(file, course).encode())
            written.append(file)
    for name, text in (("README.md", README), (".gitignore", f"/{BUILT}/\n/runs/\n__pycache__/\n")):
        if not (folder / name).exists():
            write_atomically(folder / name, text.encode())
    return workspace, written


def opened(folder: Path, course: Course) -> Workspace:
    """The learner's folder, its files moved to where this version has them; stderr is told of what was moved."""
    workspace = Workspace(folder.absolute(), course, progress_file.load(folder / progress_file.NAME))
    told = migrate(workspace.folder, course, workspace.progress, workspace.keep)
    if told:
        workspace.save()
        print(told, file=sys.stderr)
    return workspace


def commit_first(folder: Path) -> str:
    """Put a fresh folder under git, where git is there and the folder is not in a repository already.

    Returns what was done, for the learner: "" where nothing was.
    """
    git = shutil.which("git")
    if git is None:
        return ""
    inside = subprocess.run([git, "-C", str(folder), "rev-parse", "--is-inside-work-tree"], capture_output=True)
    if inside.returncode == 0:
        return ""
    # A learner who has never used git has no name set, without which git makes no commit.
    who = subprocess.run([git, "config", "user.email"], cwd=folder, capture_output=True).returncode == 0
    name = [] if who else ["-c", "user.name=groundup learn", "-c", "user.email=learn@localhost"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "The stubs, as they come"]):
        done = subprocess.run([git, *name, *command], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            return f"git {command[0]} did not work, which is no harm: {done.stderr.strip()}"
    return "under git, with a first commit"


def locate(given: Path | None, course: Course) -> Workspace:
    """The learner's folder: the one given, GROUNDUP_COURSE, this folder or one above it, or groundup-course in it.

    Raises ValueError where none is found, with the command that makes one.
    """
    chosen = given or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if chosen is not None:
        candidates = [chosen]
    else:
        here = Path.cwd()
        candidates = [here, *here.parents, here / DEFAULT]
    for folder in candidates:
        state = folder / progress_file.NAME
        if state.is_file():
            return opened(folder, course)
    looked = f"{chosen} has no {progress_file.NAME}" if chosen else "there is no course folder here"
    raise ValueError(f"{looked}; groundup learn start makes one")


def files(course: Course) -> list[str]:
    """The files that have exercises in them, in the course's order."""
    return list(dict.fromkeys(task.file for task in course.tasks))


def solution_file(file: str) -> str:
    """The project's own text of a file."""
    return (ROOT / file).read_text(encoding="utf-8")


def solution(task: Task) -> str:
    """The project's own text of a task's function."""
    text = solution_file(task.file)
    return function_text(text, find(text, task.function, task.file))


def stubbed(file: str, course: Course) -> str:
    """The project's file with a stub in the place of every exercise."""
    text = solution_file(file)
    for task in course.tasks:
        if task.file == file:
            place = find(text, task.function, file, task.keep)
            text = replaced(text, place, stub(text, task.function, file, task.message, task.keep))
    return text
